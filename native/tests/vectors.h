// The vectors that every implementation shares: tests/golden/{clock,histogram,pacer,ledger,lag,
// readlimit,acks,payload,traffic}.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden.h"

namespace hydra {

// Calls `each` with every case of a kind; fails if there is none.
void for_each_vector(const std::string& kind, auto each) {
    int cases = 0;
    for (const auto& file : std::filesystem::directory_iterator(golden(kind))) {
        CAPTURE(file.path());
        each(nlohmann::json::parse(content(file.path())));
        ++cases;
    }
    CHECK(cases > 5);
}

}  // namespace hydra
