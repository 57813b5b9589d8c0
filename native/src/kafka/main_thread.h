// librdkafka's main thread; every client has one.
#pragma once

#include <librdkafka/rdkafka.h>
#include <sys/prctl.h>

#include <cstddef>

namespace hydra {

// From this version on it sleeps until a timer is due (librdkafka's pull request 4671). Older versions sleep
// for whole milliseconds and spin for the rest: for its timer of one second, 0.8 ms of CPU each second; with
// 1,920 clients one and a half cores.
inline constexpr int kSleepsUntilDue = 0x020400ff;

// How late the kernel may wake it for a timer, so it wakes when the timer is due. A new entry in its
// queue wakes it at once.
inline constexpr unsigned long kMainThreadLateNs = 20'000'000;

// Makes the main thread of the client from this configuration wake up late enough not to spin.
inline void keep_from_spinning(rd_kafka_conf_t* conf) {
    if (rd_kafka_version() >= kSleepsUntilDue) {
        return;
    }
    rd_kafka_conf_interceptor_add_on_new(
        conf, "hydra",
        [](rd_kafka_t* kafka, const rd_kafka_conf_t*, void*, char*, std::size_t) {
            return rd_kafka_interceptor_add_on_thread_start(
                kafka, "hydra",
                [](rd_kafka_t*, rd_kafka_thread_type_t type, const char*, void*) {
                    if (type == RD_KAFKA_THREAD_MAIN) {
                        prctl(PR_SET_TIMERSLACK, kMainThreadLateNs, 0, 0, 0);
                    }
                    return RD_KAFKA_RESP_ERR_NO_ERROR;
                },
                nullptr);
        },
        nullptr);
}

}  // namespace hydra
