#include "nats/ack_inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/clock.h"

namespace hydra {

const char* ReplySubject::of(std::uint32_t epoch, std::uint64_t sequence) {
    std::array<char, 20> digits;
    const auto append = [&](std::uint64_t number) {
        text_.append(digits.data(), std::to_chars(digits.begin(), digits.end(), number).ptr);
    };
    text_.resize(inbox_);
    append(epoch);
    text_ += '.';
    append(sequence);
    return text_.c_str();
}

ReplySubject::Message ReplySubject::read(std::string_view subject) {
    Message it;
    const std::size_t second = subject.rfind('.');
    const std::size_t first = subject.rfind('.', second - 1) + 1;
    std::from_chars(subject.data() + first, subject.data() + second, it.epoch);
    std::from_chars(subject.data() + second + 1, subject.data() + subject.size(), it.sequence);
    return it;
}

// The stream answers {"error":{…},"stream":…,"seq":0}; a stream of this name has no colon behind it. Without
// a stream the server answers with a status.
std::optional<FirstReason> refusal(natsMsg* answer) {
    if (natsMsg_IsNoResponders(answer)) {
        FirstReason it;
        it.add(reason::kNoDestination, "no responders: no stream takes messages of this subject", 1);
        return it;
    }
    const std::string_view text(natsMsg_GetData(answer),
                                static_cast<std::size_t>(natsMsg_GetDataLength(answer)));
    if (text.find("\"error\":") == std::string_view::npos) {
        return std::nullopt;
    }
    const auto object = nlohmann::json::parse(text, nullptr, false);
    if (!object.is_object() || !object.contains("error") || !object["error"].is_object()) {
        FirstReason it;
        it.add(reason::kOther, text, 1);
        return it;
    }
    const nlohmann::json& error = object["error"];
    const auto code = error.find("err_code");
    const auto description = error.find("description");
    return refusal(
        code != error.end() && code->is_number_integer() ? code->get<int>() : 0,
        description != error.end() && description->is_string() ? description->get<std::string>() : "");
}

// The codes are those of hydra/natstest/refusal_reasons.py.
FirstReason refusal(int code, const std::string& description) {
    constexpr int kStoreFailed = 10'077;  // a limit of the stream, or no space
    const bool limit = code == kStoreFailed && description.starts_with("maximum ");
    const char* why = reason::kOther;
    switch (code) {
        case 10'002:
            why = reason::kQuota;
            break;
        case 10'008:
        case 10'009:
            why = reason::kNoReplicas;
            break;
        case 10'023:
        case 10'028:
        case 10'047:
            why = reason::kNoSpace;
            break;
        case kStoreFailed:
            why = limit ? reason::kFull : reason::kNoSpace;
            break;
        case 10'054:
            why = reason::kTooLarge;
            break;
        case 10'059:
            why = reason::kNoDestination;
            break;
        default:
            break;
    }
    FirstReason it;
    it.add(why, description.empty() ? "error " + std::to_string(code) : description, 1);
    return it;
}

Answers::Answers() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "eventfd");
    }
}

Answers::~Answers() {
    close(fd_);
}

void Answers::put(std::uint32_t epoch, std::uint64_t sequence, const std::optional<FirstReason>& refusal) {
    const bool failed = refusal.has_value();
    const std::lock_guard lock(mutex_);
    if (epoch == kProbeEpoch) {
        probes_ -= probes_ > 0 ? 1 : 0;
        came_.notify_one();
    } else if (epoch == epoch_) {
        put_.push_back({sequence, failed});
        if (failed) {
            refused_.add(refusal->reason, refusal->text, 1);
        }
    }
    if (awaited_ > 0 && put_.size() >= awaited_) {
        came_.notify_one();
    }
    if (put_.size() == 1) {
        const std::uint64_t one = 1;
        static_cast<void>(!write(fd_, &one, sizeof one));  // an eventfd can hold 2⁶⁴ − 2 of these writes
    }
}

void Answers::begin(std::uint32_t epoch) {
    const std::lock_guard lock(mutex_);
    put_.clear();
    refused_ = {};
    epoch_ = epoch;
    probes_ = 0;
    ledger_ = AckLedger();
    given_up_ = expected_ = 0;
    last_ack_ns_ = 0;
}

void Answers::give_up() {
    drain();
    given_up_ = ledger_.sent();
    expected_ = 0;
    const std::lock_guard lock(mutex_);
    probes_ = 0;
}

void Answers::accept_probe() {
    const std::lock_guard lock(mutex_);
    ++probes_;
}

std::uint64_t Answers::probes() const {
    const std::lock_guard lock(mutex_);
    return probes_;
}

void Answers::drain() {
    {
        const std::lock_guard lock(mutex_);
        taken_.swap(put_);
    }
    enter();
}

bool Answers::wait(std::int64_t timeout_ns, std::size_t answers) {
    bool answered = false;
    {
        std::unique_lock lock(mutex_);
        const std::uint64_t probes = probes_;
        awaited_ = answers;
        came_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                       [&] { return put_.size() >= answers || probes_ != probes; });
        awaited_ = 0;
        answered = !put_.empty() || probes_ != probes;
        taken_.swap(put_);
    }
    enter();
    return answered;
}

// Answers arrive in order, except for failures: a run of them costs one entry.
void Answers::enter() {
    if (taken_.empty()) {
        return;
    }
    last_ack_ns_ = monotonic_ns();
    for (std::size_t i = 0; i < taken_.size();) {
        const Answer first = taken_[i];
        std::uint64_t count = 1;
        for (++i; i < taken_.size() && taken_[i].failed == first.failed &&
                  taken_[i].sequence == first.sequence + count;
             ++i) {
            ++count;
        }
        const std::uint64_t before =
            given_up_ > first.sequence ? std::min(given_up_ - first.sequence, count) : 0;
        expected_ -= std::min(expected_, count - before);
        if (first.failed) {
            ledger_.fail(first.sequence, count);
        } else {
            ledger_.acknowledge(first.sequence, count);
        }
    }
    taken_.clear();
}

}  // namespace hydra
