// Why messages of a publisher were not accepted, and whether they are accepted all the time. Pure. (Python:
// hydra/model/system_reports.py and hydra/client/progress_watch.py.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace hydra {

// The words of every system for the reason; programs decide by them.
namespace reason {
inline constexpr const char* kTooLarge = "message_too_large";
inline constexpr const char* kQuota = "quota";
inline constexpr const char* kNotAuthorized = "not_authorized";
inline constexpr const char* kNoSpace = "no_space";
inline constexpr const char* kFull = "stream_full";
inline constexpr const char* kNoReplicas = "no_replicas";
inline constexpr const char* kNoDestination = "no_destination";
inline constexpr const char* kTimeout = "timeout";
inline constexpr const char* kConnectionLost = "connection_lost";
inline constexpr const char* kOther = "other";
}  // namespace reason

// A text of a server or a library as reports have it: it may be cut within a character, so only ASCII is
// passed on.
inline std::string reported(std::string text) {
    constexpr std::size_t kMostBytes = 200;
    std::erase_if(text, [](char each) { return each < ' ' || each > '~'; });
    text.resize(std::min(text.size(), kMostBytes));
    return text;
}

// The first reason of a step, and the messages that were rejected for it.
struct FirstReason {
    std::string reason;  // "": none was rejected
    std::string text;    // of the server or the library
    std::uint64_t messages = 0;

    void add(std::string_view why, std::string_view words, std::uint64_t count) {
        if (reason.empty()) {
            reason = why;
            text = reported(std::string(words));
        }
        messages += reason == why ? count : 0;
    }
};

// How often the connection was lost since `configure`, and why the first time.
struct ConnectionLosses {
    std::uint64_t count = 0;
    std::string why;
};

// The longest time in which the number of accepted messages did not grow, though messages were offered.
class ProgressWatch {
  public:
    // Messages are offered from `begin_ns` on.
    explicit ProgressWatch(std::int64_t begin_ns) : since_ns_(begin_ns) {}

    void look(std::int64_t now_ns, std::uint64_t accepted) {
        longest_ns_ = std::max(longest_ns_, now_ns - since_ns_);
        if (accepted > accepted_) {
            accepted_ = accepted;
            since_ns_ = now_ns;
        }
    }

    [[nodiscard]] std::int64_t longest_ns() const { return longest_ns_; }

  private:
    std::int64_t longest_ns_ = 0;
    std::int64_t since_ns_;
    std::uint64_t accepted_ = 0;
};

}  // namespace hydra
