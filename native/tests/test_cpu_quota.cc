// (Python: tests/client/test_threads.py.)
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/cpu_quota.h"

namespace {

void write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("the time without quota is that of the control group and those above it") {
    const auto folder = std::filesystem::temp_directory_path() / ("hydra-quota-" + std::to_string(getpid()));
    hydra::QuotaReader reader(folder / "proc", folder / "groups");
    std::string line = "9:memory:/elsewhere\n";
    SUBCASE("version 1") {
        line += "3:cpu,cpuacct:/server\n";
        write(folder / "groups/cpu/server/cpu.stat", "nr_throttled 7\nthrottled_time 700000\n");
    }
    SUBCASE("version 2") {
        line += "0::/user/server\n";
        write(folder / "groups/user/server/cpu.stat", "usage_usec 1\nthrottled_usec 500\n");
        write(folder / "groups/user/cpu.stat", "throttled_usec 200\n");
    }
    write(folder / "proc/11/cgroup", line);
    write(folder / "proc/12/cgroup", "0::/../outside\n");
    for (int reading = 0; reading < 2; ++reading) {
        auto stopped_ns = reader.stopped_ns({11, 12, 13});
        CHECK(stopped_ns[11] == 700'000);
        CHECK(stopped_ns[12] == 0);
        CHECK(stopped_ns[13] == 0);
    }
    std::filesystem::remove_all(folder);
}
