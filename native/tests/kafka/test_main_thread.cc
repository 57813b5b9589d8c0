#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "kafka/handles.h"
#include "kafka/main_thread.h"

using namespace hydra;

namespace {

std::string first_line(const std::filesystem::path& path) {
    std::string line;
    std::getline(std::ifstream(path), line);
    return line;
}

// The timer slack (ns) of the thread of this process that has this name; "" if none has.
std::string lateness_of(const std::string& name) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        if (first_line(task.path() / "comm") == name) {
            return first_line("/proc" / task.path().filename() / "timerslack_ns");
        }
    }
    return "";
}

}  // namespace

TEST_CASE("librdkafka's main thread is woken late where it would spin until a timer is due") {
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    char what[512] = "";
    rd_kafka_conf_set(conf, "log_level", "0", what, sizeof what);
    keep_from_spinning(conf);
    const KafkaHandle kafka(rd_kafka_new(RD_KAFKA_CONSUMER, conf, what, sizeof what));
    REQUIRE_MESSAGE(kafka != nullptr, what);

    const std::string usual = first_line("/proc/self/timerslack_ns");
    const std::string late = rd_kafka_version() < kSleepsUntilDue ? std::to_string(kMainThreadLateNs) : usual;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (lateness_of("rdk:main") != late && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::yield();
    }
    CHECK(lateness_of("rdk:main") == late);
    CHECK(first_line("/proc/self/timerslack_ns") == usual);
}
