#include "common/clock.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace hydra {
namespace {

std::string read_boot_id() {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    return id;
}

std::string read_namespace(const char* kind) {
    std::error_code missing;
    return std::filesystem::read_symlink(std::filesystem::path("/proc/self/ns") / kind, missing).string();
}

}  // namespace

std::int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * kSecondNs + now.tv_nsec;
}

std::int64_t to_ns(double seconds) {
    return static_cast<std::int64_t>(seconds * 1e9);
}

const std::string& boot_id() {
    static const std::string id = read_boot_id();
    return id;
}

const std::string& time_namespace() {
    static const std::string name = read_namespace("time");
    return name;
}

const std::string& network_namespace() {
    static const std::string name = read_namespace("net");
    return name;
}

int milliseconds_until(std::int64_t monotonic) {
    const std::int64_t left_ns = std::clamp<std::int64_t>(monotonic - monotonic_ns(), 0, 3600 * kSecondNs);
    return static_cast<int>((left_ns + kMillisecondNs - 1) / kMillisecondNs);
}

void sleep_until_ns(std::int64_t monotonic) {
    const timespec until{monotonic / kSecondNs, monotonic % kSecondNs};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until,
                    nullptr);  // a signal may end it early: the loop then checks the time again
}

}  // namespace hydra
