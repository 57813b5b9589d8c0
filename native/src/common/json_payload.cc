#include "common/json_payload.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace hydra {
namespace {

constexpr std::uint64_t kShareOf = 10'000;
// Length in bytes of a JSON record whose two texts (random characters, words) are empty.
constexpr std::uint64_t kRecordBytes = 109;
constexpr std::uint64_t kBeforeTrace = 24;
constexpr std::uint64_t kIds = 10'000'000;
// Random characters from one number, six bits each.
constexpr std::uint64_t kCharacters = 10;
constexpr std::string_view kTraceAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::array<int, 8> kStatus = {200, 200, 200, 201, 304, 404, 429, 500};
constexpr std::array<std::string_view, 8> kSentences = {
    "order accepted and sent to the warehouse. ", "payment confirmed by the bank. ",
    "user signed in from a new device. ",         "retrying after a timeout of the upstream service. ",
    "cache miss, value read from the database. ", "request rejected: the quota is used up. ",
    "connection closed by the remote host. ",     "report written to the archive. ",
};

// A buffer that accepts what fits of all that is written to it.
class Room {
  public:
    explicit Room(std::span<char> left) : left_(left) {}

    void write(std::string_view text) {
        const std::size_t length = std::min(text.size(), left_.size());
        std::copy_n(text.begin(), length, left_.begin());
        left_ = left_.subspan(length);
    }
    [[nodiscard]] std::size_t left() const { return left_.size(); }

  private:
    std::span<char> left_;
};

}  // namespace

// The number of random characters in a record. It is a difference of running totals, so shares of short
// records are not rounded down to zero.
std::uint64_t JsonPayload::target_bytes(std::uint64_t length) {
    const std::uint64_t before = characters_ * share_ / kShareOf;
    characters_ += length;
    const std::uint64_t most = length >= kRecordBytes   ? length - kRecordBytes
                               : length >= kBeforeTrace ? length - kBeforeTrace
                                                        : 0;
    return std::min(characters_ * share_ / kShareOf - before, most);
}

void JsonPayload::write(std::span<char> room) {
    std::string trace;
    const std::uint64_t traced = target_bytes(room.size());
    while (trace.size() < traced) {
        std::uint64_t number = numbers_.next();
        for (std::uint64_t i = 0; i < kCharacters; ++i, number >>= 6) {
            trace += kTraceAlphabet[number & 63];
        }
    }
    trace.resize(traced);
    milliseconds_ += numbers_.next() % 250;
    const std::uint64_t what = numbers_.next();
    const std::uint64_t seconds = milliseconds_ / 1000;
    char text[96];
    Room record(room);
    record.write("{\"id\":" + std::to_string(kIds + index_++ % kIds) + ",\"trace\":\"");
    record.write(trace);
    std::snprintf(text, sizeof text, R"(","time":"2026-01-01T%02u:%02u:%02u.%03uZ","host":"web-%02u")",
                  static_cast<unsigned>(seconds / 3600 % 24), static_cast<unsigned>(seconds / 60 % 60),
                  static_cast<unsigned>(seconds % 60), static_cast<unsigned>(milliseconds_ % 1000),
                  static_cast<unsigned>(what % 32));
    record.write(text);
    std::snprintf(text, sizeof text, R"(,"status":%d,"ms":%u,"text":")", kStatus[(what >> 8) % 8],
                  static_cast<unsigned>(1000 + (what >> 16) % 9000));
    record.write(text);
    while (record.left() > 2) {
        const std::string_view sentence = kSentences[numbers_.next() % 8];
        record.write(sentence.substr(0, record.left() - 2));
    }
    record.write("\"}");
}

}  // namespace hydra
