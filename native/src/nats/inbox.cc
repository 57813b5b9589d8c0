#include "nats/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include "common/transport.h"

namespace hydra {
namespace {

// $JS.ACK.stream.consumer.deliveries.stream_sequence.consumer_sequence.time.pending; newer servers have two
// more parts before the stream, and may have one more at the end.
constexpr std::size_t kShortReply = 9;
constexpr std::size_t kMostParts = 12;

std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

}  // namespace

StreamSequences stream_sequences(const char* reply) {
    std::array<std::string_view, kMostParts> parts;
    std::size_t count = 0;
    std::string_view rest = reply == nullptr ? "" : reply;
    while (count < kMostParts && !rest.empty()) {
        const std::size_t dot = rest.find('.');
        parts[count++] = rest.substr(0, dot);
        rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    }
    if (count < kShortReply || parts[1] != "ACK") {
        return {};
    }
    const std::size_t at = count == kShortReply ? 5 : 7;
    return {.stream = number(parts[at]), .consumer = number(parts[at + 1])};
}

Inbox::Inbox(std::size_t most) : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), most_(most) {
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "eventfd");
    }
}

Inbox::~Inbox() {
    ::close(fd_);
}

bool Inbox::put(const natsMsg* message) {
    const auto size = static_cast<std::uint32_t>(natsMsg_GetDataLength(message));
    Entry entry{.header = {}, .size = size, .sequences = stream_sequences(natsMsg_GetReply(message))};
    if (size >= kHeaderBytes) {
        entry.header = read_header(natsMsg_GetData(message));
    }
    std::unique_lock lock(mutex_);
    if (most_ == 0) {
        room_.wait(lock, [this] { return put_.size() < kBatchLimit || closed_; });
    } else if (put_.size() >= most_) {
        ++dropped_;
        return !closed_;
    }
    if (closed_) {
        return false;
    }
    put_.push_back(entry);
    if (put_.size() == 1) {
        wake();
    }
    return true;
}

void Inbox::fail(const std::string& what) {
    const std::lock_guard lock(mutex_);
    failure_ = what;
    wake();
}

bool Inbox::take(Batch& batch) {
    while (!batch.full()) {
        if (taken_ == taking_.size()) {
            taking_.clear();
            taken_ = 0;
            const std::lock_guard lock(mutex_);
            if (!failure_.empty()) {
                throw TransportError(failure_);
            }
            if (put_.empty()) {
                return false;
            }
            taking_.swap(put_);
            room_.notify_one();
        }
        const Entry& entry = taking_[taken_++];
        batch.add(&entry.header, entry.size);
        position_ = std::max(position_, entry.sequences.stream);
        delivered_ = std::max(delivered_, entry.sequences.consumer);
    }
    return true;
}

void Inbox::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
}

bool Inbox::closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
}

void Inbox::wake() const {
    const std::uint64_t one = 1;
    static_cast<void>(!write(fd_, &one, sizeof one));  // an eventfd can hold 2⁶⁴ − 2 of these writes
}

}  // namespace hydra
