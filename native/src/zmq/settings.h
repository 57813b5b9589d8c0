// ZMQ's part of `configure`.
#pragma once

namespace hydra {

struct ZmqSettings {
    int sndhwm = 1000;  // 0: no high-water mark
    int rcvhwm = 1000;
    bool nodrop = false;

    static void describe(auto& it, auto& fields) {
        fields.optional("sndhwm", it.sndhwm);
        fields.optional("rcvhwm", it.rcvhwm);
        fields.optional("nodrop", it.nodrop);
    }
};

}  // namespace hydra
