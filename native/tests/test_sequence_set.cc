#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

#include "common/sequence_set.h"

using namespace hydra;

namespace {

// The same results from a plain set.
struct Model {
    std::set<std::uint64_t> seen;
    std::uint64_t duplicates = 0;
    std::uint64_t reordered = 0;

    void add(std::uint64_t first, std::uint64_t last) {
        for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
            if (seen.contains(sequence)) {
                ++duplicates;
                continue;
            }
            if (!seen.empty() && *seen.rbegin() > sequence) {
                ++reordered;
            }
            seen.insert(sequence);
        }
    }

    [[nodiscard]] std::vector<Range> gaps() const {
        std::vector<Range> them;
        std::uint64_t expected = 0;
        for (const std::uint64_t sequence : seen) {
            if (sequence != expected) {
                them.push_back({expected, sequence - 1});
            }
            expected = sequence + 1;
        }
        return them;
    }
};

void same(const SequenceSet& received, const Model& model) {
    REQUIRE(received.count() == model.seen.size());
    REQUIRE(received.next() == (model.seen.empty() ? 0 : *model.seen.rbegin() + 1));
    REQUIRE(received.duplicates() == model.duplicates);
    REQUIRE(received.reordered() == model.reordered);
    REQUIRE(received.gaps() == model.gaps());
}

}  // namespace

TEST_CASE("in order and whole") {
    SequenceSet received;
    received.add(0, 99);
    received.add(100, 100);
    CHECK(received.next() == 101);
    CHECK(received.gaps().empty());
}

TEST_CASE("whatever comes, it is the same as a plain set of numbers") {
    // From the smallest ring to one that holds everything, so that messages arrive inside it, too late and
    // far ahead.
    for (const std::uint64_t window : {128, 256, 1024, 8192}) {
        for (unsigned seed = 0; seed < 60; ++seed) {
            CAPTURE(window);
            CAPTURE(seed);
            std::mt19937 random(seed);
            const auto below = [&](unsigned limit) { return static_cast<std::uint64_t>(random() % limit); };
            SequenceSet received(window, seed % 2 == 0 ? window : window * 8);
            Model model;
            const unsigned reach = 1U << (seed % 12);
            for (int i = 0; i < 400; ++i) {
                const std::uint64_t next = received.next();
                std::uint64_t first = next;
                const std::uint64_t kind = below(10);
                if (kind < 3) {
                    first = next + below(reach);
                } else if (kind < 6) {
                    first = next - std::min(next, below(reach));
                } else if (kind == 6) {
                    first = next + below(5) * window / 2;
                } else if (kind == 7) {
                    first = next == 0 ? 0 : below(static_cast<unsigned>(next));
                }
                const std::uint64_t length = below(3) == 0 ? 1 + below(300) : 1 + below(4);
                received.add(first, first + length - 1);
                model.add(first, first + length - 1);
                if (i % 20 == 0) {
                    same(received, model);
                }
            }
            same(received, model);
        }
    }
}

TEST_CASE("many partitions far apart from each other") {
    constexpr std::uint64_t total = 200'000;
    for (const std::uint64_t lead : {10'000, 40'000}) {
        SequenceSet received;
        // Four partitions, each `lead` messages at a time.
        for (std::uint64_t block = 0; block < total; block += lead) {
            for (std::uint64_t partition = 0; partition < 4; ++partition) {
                for (std::uint64_t sequence = block + partition; sequence < block + lead; sequence += 4) {
                    received.add(sequence, sequence);
                }
            }
        }
        CHECK(received.count() == total);
        CHECK(received.duplicates() == 0);
        CHECK(received.gaps().empty());
    }
}

TEST_CASE("long gaps of a stream in order, and late arrivals that fill them") {
    SequenceSet received;
    Model model;
    const auto add = [&](std::uint64_t first, std::uint64_t last) {
        received.add(first, last);
        model.add(first, last);
        same(received, model);
    };
    add(0, 499);
    add(2'000, 2'499);
    add(2'563, 2'600);    // a gap of 63
    add(20'000, 20'500);  // while that gap is open
    add(40'000, 40'999);
    add(41'064, 41'070);  // a gap of 64
    add(41'064, 41'070);  // again
    add(50'000, 50'000);  // still nothing was late
    add(1'000, 1'009);    // the first late arrival
    add(60'000, 60'000);  // long gaps stay in the ring from here on
    add(52'000, 59'999);
    add(41'000, 51'999);
    add(500, 2'300);
}

TEST_CASE("a copy stays as it was") {
    SequenceSet received;
    received.add(0, 9);
    received.add(20, 29);
    const SequenceSet frozen = received;
    received.add(10, 19);
    CHECK(frozen.gaps() == std::vector<Range>{{10, 19}});
    CHECK(received.gaps().empty());
}
