// The parts of a system's options, without a header of CLI11, which takes seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hydra {

// An option that is a whole number of digits only, from `least` to `most`.
void add_whole_number(CLI::App& app, const std::string& name, int& into, const std::string& text,
                      std::uint64_t least, std::uint64_t most);

// An option that is one of these words.
void add_choice(CLI::App& app, const std::string& name, const std::function<void(const std::string&)>& into,
                const std::string& text, const std::vector<std::string>& words);

// An option without a value.
void add_flag(CLI::App& app, const std::string& name, bool& into, const std::string& text);

}  // namespace hydra
