// Functions that both bare loops use.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

inline double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// CPU of this process, in seconds.
inline double cpu_s() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

[[noreturn]] inline void fail(const std::string& what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::exit(1);
}

// A configuration from the arguments: BOOTSTRAP, and name=value from the fourth on.
inline rd_kafka_conf_t* bare_conf(int argc, char** argv, const char* usage) {
    if (argc < 4) {
        fail(usage);
    }
    char what[512] = "";
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", argv[1], what, sizeof what);
    rd_kafka_conf_set(conf, "log_level", "0", what,
                      sizeof what);  // standard error has only the program's error
    for (int i = 4; i < argc; ++i) {
        const std::string property = argv[i];
        const std::size_t equals = property.find('=');
        if (equals == std::string::npos ||
            rd_kafka_conf_set(conf, property.substr(0, equals).c_str(), property.substr(equals + 1).c_str(),
                              what, sizeof what) != RD_KAFKA_CONF_OK) {
            fail(property + ": " + what);
        }
    }
    return conf;
}

inline rd_kafka_t* bare_client(rd_kafka_type_t type, rd_kafka_conf_t* conf) {
    char what[512] = "";
    rd_kafka_t* kafka = rd_kafka_new(type, conf, what, sizeof what);
    if (kafka == nullptr) {
        fail(what);
    }
    return kafka;
}
