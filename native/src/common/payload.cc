#include "common/payload.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <tuple>

#include "common/json_payload.h"
#include "common/split_mix.h"
#include "common/transport.h"

namespace hydra {
namespace {

// Numbers of the two random streams of a seed.
constexpr std::uint64_t kSizes = 0;
constexpr std::uint64_t kContents = 1;
// Zeros of one size: as many as are handed over at a time, but no more than stay in the first-level cache.
constexpr std::uint64_t kMostZeros = 64;
constexpr std::uint64_t kZeroBytes = 16 * 1024;
constexpr std::uint64_t kMostMessages = 16'384;
// If sizes differ, at least kLeastMessages payloads are prepared, up to kLeastBytes.
constexpr std::uint64_t kLeastMessages = 64;
constexpr std::uint64_t kLeastBytes = 64 * 1024 * 1024;
// Most bytes of a file's lines that are prepared, with headers.
constexpr std::uint64_t kLinesBytes = 16 * 1024 * 1024;

std::uint64_t smallest(const Settings& settings) {
    return std::min(settings.message_size_min.value_or(settings.message_size), settings.message_size);
}

// The settings that determine the messages of a step.
auto key(const Settings& it) {
    return std::tuple(it.payload, it.message_size, smallest(it), it.payload_file, it.payload_seed);
}

class Sizes {
  public:
    explicit Sizes(const Settings& settings)
        : numbers_(settings.payload_seed, kSizes),
          smallest_(smallest(settings)),
          number_(settings.message_size - smallest_ + 1) {}

    std::uint64_t next() { return number_ == 1 ? smallest_ : smallest_ + numbers_.next() % number_; }

  private:
    SplitMix64 numbers_;
    std::uint64_t smallest_;
    std::uint64_t number_;
};

// At most most_bytes of a file.
std::string first_bytes(const std::string& name, std::uint64_t most_bytes) {
    std::error_code error;
    const auto status = std::filesystem::status(name, error);
    if (status.type() == std::filesystem::file_type::not_found || error) {
        const int number = error ? error.value() : ENOENT;
        throw TransportError("cannot read payload_file " + name + ": " + std::strerror(number));
    }
    // Opening a pipe would wait for its other end.
    if (!std::filesystem::is_regular_file(status)) {
        throw TransportError("payload_file " + name + " is no regular file");
    }
    std::ifstream file(name, std::ios::binary);
    if (!file) {
        throw TransportError("cannot read payload_file " + name + ": " + std::strerror(errno));
    }
    std::string text(std::min<std::uint64_t>(most_bytes, std::filesystem::file_size(name, error)), '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.empty()) {
        throw TransportError("payload_file " + name + " is empty; it needs a line for each message");
    }
    return text;
}

void write_random(std::span<char> room, SplitMix64& numbers) {
    for (std::size_t at = 0; at < room.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t number = numbers.next();
        for (std::size_t i = at; i < std::min(at + sizeof number, room.size()); ++i, number >>= 8) {
            room[i] = static_cast<char>(number & 0xFF);
        }
    }
}

}  // namespace

void PayloadBlock::set(const Configure& command, std::uint64_t most_bytes) {
    if (most_bytes_ == most_bytes && share_ == command.payload_share &&
        key(settings_) == key(command.settings)) {
        return;
    }
    most_bytes_ = 0;
    settings_ = command.settings;
    share_ = command.payload_share;
    begins_ = {0};
    if (settings_.payload == Payload::lines) {
        take_lines();
    } else {
        most_bytes_ = most_bytes;
        prepare();
    }
    most_bytes_ = most_bytes;
}

void PayloadBlock::prepare() {
    const bool one_size = smallest(settings_) == settings_.message_size;
    if (one_size && settings_.payload == Payload::zeros) {
        lay_out(kZeroBytes, kMostZeros);
        return;
    }
    std::uint64_t most_bytes = most_bytes_;
    std::uint64_t total = 0;
    Sizes sizes(settings_);
    for (std::uint64_t i = 0; !one_size && i < kLeastMessages; ++i) {
        total += sizes.next();
        most_bytes = total <= kLeastBytes ? std::max(most_bytes, total) : most_bytes;
    }
    lay_out(most_bytes, kMostMessages);
    SplitMix64 numbers(settings_.payload_seed, kContents);
    JsonPayload records(numbers, share_);
    for (std::size_t i = 0; i < messages(); ++i) {
        const std::span<char> room(bytes_.data() + begins_[i] + kHeaderBytes,
                                   begins_[i + 1] - begins_[i] - kHeaderBytes);
        if (settings_.payload == Payload::random) {
            write_random(room, numbers);
        } else if (settings_.payload == Payload::json) {
            records.write(room);
        }
    }
}

// As many messages as fit into most_bytes, at least one; all are zeros.
void PayloadBlock::lay_out(std::uint64_t most_bytes, std::uint64_t most_messages) {
    Sizes sizes(settings_);
    std::uint64_t end = sizes.next();
    do {
        begins_.push_back(end);
        end += sizes.next();
    } while (end <= most_bytes && messages() < most_messages);
    bytes_ = std::vector<char>(begins_.back());
}

// The file's lines, cut to the longest message and filled with spaces to the shortest.
void PayloadBlock::take_lines() {
    const std::uint64_t longest = settings_.message_size - kHeaderBytes;
    const std::uint64_t shortest =
        std::min(settings_.message_size_min.value_or(kHeaderBytes), settings_.message_size) - kHeaderBytes;
    const std::string text = first_bytes(settings_.payload_file, kLinesBytes + longest + 1);
    bytes_.clear();
    for (std::string_view left = text; !left.empty();) {
        const std::size_t end = left.find('\n');
        std::string_view line = left.substr(0, end);
        // If the last line was not read to its end, it counts only if it fills a message.
        if (end == std::string_view::npos && text.size() > kLinesBytes + longest && line.size() < longest) {
            break;
        }
        left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
        line = line.substr(0, longest);
        const std::uint64_t size = kHeaderBytes + std::max<std::uint64_t>(line.size(), shortest);
        if (messages() > 0 && begins_.back() + size > kLinesBytes) {
            break;
        }
        begins_.push_back(begins_.back() + size);
        bytes_.resize(begins_.back(), ' ');
        std::copy(line.begin(), line.end(), bytes_.end() - static_cast<std::ptrdiff_t>(size - kHeaderBytes));
    }
}

std::uint64_t PayloadBlock::total_bytes(std::uint64_t messages,
                                        const std::function<std::uint64_t(std::uint64_t size)>& of,
                                        const PublisherTraffic* traffic) const {
    const std::uint64_t rounds = messages / this->messages();
    const std::uint64_t rest = messages % this->messages();
    std::uint64_t total = 0;
    if (traffic != nullptr && traffic->has_sizes()) {
        for (std::uint64_t n = 0; n < messages; ++n) {
            total += of(traffic->size(n));
        }
        return total;
    }
    for (std::uint64_t i = 0; i < this->messages(); ++i) {
        total += (rounds + (i < rest ? 1 : 0)) * of(begins_[i + 1] - begins_[i]);
    }
    return total;
}

}  // namespace hydra
