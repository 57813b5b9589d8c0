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
constexpr std::size_t kWakeAt = 128;

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

Inbox::Inbox(std::size_t most)
    : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      most_(most),
      wake_at_(most == 0 ? kWakeAt : std::min(most, kWakeAt)) {
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "eventfd");
    }
}

Inbox::~Inbox() {
    ::close(fd_);
}

bool Inbox::put(const natsMsg* message, bool more) {
    const auto size = static_cast<std::uint32_t>(natsMsg_GetDataLength(message));
    Run run{.first = {}, .count = 1, .size = size};
    if (size >= kHeaderBytes) {
        run.first = read_header(natsMsg_GetData(message));
    }
    const StreamSequences sequences = stream_sequences(natsMsg_GetReply(message));
    std::unique_lock lock(mutex_);
    if (most_ == 0) {
        room_.wait(lock, [this] { return waiting_ < kBatchLimit || closed_; });
    } else if (waiting_ >= most_) {
        ++dropped_;
        return !closed_;
    }
    if (closed_) {
        return false;
    }
    add(run, sequences);
    ++waiting_;
    if (!woken_ && (!more || waiting_ >= wake_at_)) {
        woken_ = true;
        wake();
    }
    return true;
}

void Inbox::add(const Run& message, const StreamSequences& sequences) {
    if (!put_.empty()) {
        auto& [run, first] = put_.back();
        if (run.continued_by(message.first) && run.first.time_ns == message.first.time_ns &&
            run.size == message.size && sequences == first.after(run.count)) {
            ++run.count;
            return;
        }
    }
    put_.push_back({message, sequences});
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
            waiting_ = 0;
            woken_ = false;
            room_.notify_one();
        }
        auto& [run, first] = taking_[taken_];
        const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(run.count, batch.room()));
        batch.add({.first = run.first, .count = count, .size = run.size});
        const StreamSequences last = first.after(count - 1);
        position_ = std::max(position_, last.stream);
        delivered_ = std::max(delivered_, last.consumer);
        first = first.after(count);
        run.first.sequence += count;
        run.count -= count;
        taken_ += run.count == 0 ? 1 : 0;
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
