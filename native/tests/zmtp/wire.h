// Bytes that the other end of a connection sends, and the decoder's results.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/batch.h"
#include "common/header.h"
#include "zmtp/decoder.h"

namespace hydra {

inline std::string long_size(std::uint64_t size) {
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8) {
        bytes += static_cast<char>(size >> shift & 0xFF);
    }
    return bytes;
}

inline std::string frame(std::uint8_t flags, const std::string& body) {
    return static_cast<char>(flags) +
           ((flags & kLong) != 0 ? long_size(body.size()) : std::string(1, static_cast<char>(body.size()))) +
           body;
}

inline std::string command(const std::string& name, const std::string& data, std::uint8_t flags = kCommand) {
    return frame(flags, static_cast<char>(name.size()) + name + data);
}

inline std::string property(const std::string& name, const std::string& value) {
    return static_cast<char>(name.size()) + name + long_size(value.size()).substr(4) + value;
}

inline std::string ready(const std::string& type) {
    return command("READY", property("Socket-Type", type) + property("Identity", ""));
}

// The greeting of libzmq 4.3: ZMTP 3.1.
inline std::string greeting_of(const std::string& mechanism = "NULL", char major = 3, char minor = 1) {
    std::string bytes = '\xFF' + std::string(7, '\0') + "\1\x7F" + major + minor + mechanism;
    bytes.resize(kGreetingBytes);
    return bytes;
}

inline std::string beginning() {
    return greeting_of() + ready("PUB");
}

inline std::string message(std::uint64_t sequence, std::size_t size = kHeaderBytes, std::uint8_t flags = 0) {
    std::string body(size, 'x');
    write_header(body.data(), {1, 2, sequence, 3});
    return frame(size > 255 ? flags | kLong : flags, body);
}

// The decoder's results for the pieces that it gets.
struct Received final : ZmtpEvents {
    int openings = 0;
    std::vector<std::string> pings{};
    std::vector<std::uint64_t> sequences{};
    std::vector<std::uint32_t> sizes{};

    void opened() override { ++openings; }
    void pinged(std::string_view context) override { pings.emplace_back(context); }

    void take(ZmtpDecoder& decoder, std::string_view piece) {
        Batch batch;
        while (!piece.empty()) {
            batch.reset(kBatchLimit);
            // In a buffer of exactly this length: nothing beyond its end may be read.
            const std::string part(piece.substr(0, ZmtpDecoder::most_bytes(batch.room())));
            piece.remove_prefix(part.size());
            decoder.take(part, batch, *this);
            for (const Run& run : batch.runs()) {
                for (std::uint64_t i = 0; i < run.count; ++i) {
                    sequences.push_back(run.first.sequence + i);
                }
                sizes.insert(sizes.end(), run.count, run.size);
            }
        }
    }

    bool operator==(const Received& other) const {
        return openings == other.openings && pings == other.pings && sequences == other.sequences &&
               sizes == other.sizes;
    }
};

}  // namespace hydra
