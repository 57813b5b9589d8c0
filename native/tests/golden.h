// The files that every implementation reads in its tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

inline std::filesystem::path golden(const std::string& name) {
    return std::filesystem::path(HYDRA_GOLDEN) / name;
}

inline std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}
