// What the bare loops of all libraries share: one process publishes, its forks receive and count in one
// window, and the parent prints the figures as JSON.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bare.h"

namespace bare {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
// The wait for a due time ends with a spin of this length, as that of Hydra's publishers.
inline constexpr std::int64_t kSpinNs = 80'000;
inline constexpr std::int64_t kLeadNs = 100'000'000;
// Where the due time is in a message: at the place of Hydra's.
inline constexpr std::size_t kTimeAt = 16;
inline constexpr int kAtOnce = 100;  // messages that a publisher sends before it reads the clock

inline std::int64_t cpu_ns() {
    return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

inline void sleep_until_ns(std::int64_t at_ns) {
    const timespec at{at_ns / kSecondNs, at_ns % kSecondNs};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
}

// The words name=value of a command line.
class Arguments {
  public:
    Arguments(int argc, char** argv) {
        for (int i = 1; i < argc; ++i) {
            const std::string word = argv[i];
            const std::size_t equals = word.find('=');
            must(equals != std::string::npos, (word + " is not name=value").c_str());
            values_[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }
    [[nodiscard]] const std::string& text(const std::string& name) const {
        const auto found = values_.find(name);
        must(found != values_.end(), (name + "= is missing").c_str());
        return found->second;
    }
    [[nodiscard]] int number(const std::string& name) const { return std::atoi(text(name).c_str()); }
    [[nodiscard]] double real(const std::string& name) const { return std::atof(text(name).c_str()); }

    [[nodiscard]] int subscribers() const { return number("subscribers"); }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(number("size")); }
    // Messages/s; 0: as many as possible.
    [[nodiscard]] double rate() const { return real("rate"); }

  private:
    std::map<std::string, std::string> values_;
};

struct Window {
    std::int64_t start_ns = 0;
    std::int64_t stop_ns = 0;
};

// Latencies in bins of a microsecond; the last one also has all longer ones.
inline constexpr std::size_t kBins = 200'000;

// Messages of one process: the thread that receives counts them, and another one reads the count.
class Tally {
  public:
    explicit Tally(bool latency) : bins_(latency ? kBins : 0) {}
    void take(const void* message) {
        add(1);
        if (!bins_.empty()) {
            std::int64_t due_ns = 0;
            std::memcpy(&due_ns, static_cast<const char*>(message) + kTimeAt, sizeof due_ns);
            const std::int64_t us = (now_ns() - due_ns) / 1000;
            const auto last = static_cast<std::int64_t>(kBins) - 1;
            plus(bins_[static_cast<std::size_t>(std::clamp<std::int64_t>(us, 0, last))], 1U);
        }
    }
    void add(std::uint64_t messages) { plus(messages_, messages); }
    [[nodiscard]] std::uint64_t messages() const { return messages_.load(std::memory_order_relaxed); }
    [[nodiscard]] const std::vector<std::atomic<std::uint32_t>>& bins() const { return bins_; }

  private:
    // No other thread writes, so the addition needs no lock.
    template <typename Number>
    static void plus(std::atomic<Number>& cell, Number more) {
        cell.store(cell.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }

    std::atomic<std::uint64_t> messages_ = 0;
    std::vector<std::atomic<std::uint32_t>> bins_;
};

// The memory that all processes share, and the parent's part of a measurement.
class Measurement {
  public:
    explicit Measurement(const Arguments& arguments)
        : warm_s_(arguments.real("warm")),
          seconds_(arguments.real("seconds")),
          rate_(arguments.rate()),
          shared_(shared_memory<Shared>()) {}

    // Forks processes, each of which receives until the window ends. No library may have been used before.
    void fork_each(int processes, const std::function<void(int)>& receive) {
        processes_ = processes;
        for (int number = 0; number < processes; ++number) {
            if (forked(&children_)) {
                receive(number);
                std::_Exit(0);
            }
        }
    }

    // In a fork, when it is subscribed: waits for the window, and enters what the tally counts in it.
    void observe(const Tally& tally) {
        ++shared_.joined;
        const Window window = window_.await();
        sleep_until_ns(window.start_ns);
        const std::uint64_t messages_before = tally.messages();
        const std::int64_t cpu_before_ns = cpu_ns();
        sleep_until_ns(window.stop_ns);
        shared_.received += tally.messages() - messages_before;
        shared_.cpu_ns += cpu_ns() - cpu_before_ns;
        for (std::size_t i = 0; i < tally.bins().size(); ++i) {
            if (const std::uint32_t count = tally.bins()[i]; count > 0) {
                shared_.bins[i] += count;
            }
        }
    }

    // In the parent: waits until all forks are subscribed, publishes in the window, and prints the figures.
    // `send` hands over one message, and returns whether the library has accepted it. With warm= above 0 it
    // publishes that number of seconds before the window, too: a connection whose socket buffers have grown
    // carries up to a fifth less than a new one.
    void publish(std::size_t size, const std::function<bool(const char*)>& send) {
        while (shared_.joined < processes_) {
            usleep(1000);
            must(waitpid(-1, nullptr, WNOHANG) <= 0, "a subscriber has ended");
        }
        const double pss_bytes = mean_pss_bytes(children_);
        prctl(PR_SET_TIMERSLACK, 1);
        const std::int64_t warm_ns = now_ns() + kLeadNs;
        const std::int64_t start_ns = warm_ns + static_cast<std::int64_t>(warm_s_ * kSecondNs);
        const Window window{start_ns, start_ns + static_cast<std::int64_t>(seconds_ * kSecondNs)};
        window_.make(window, processes_);
        sleep_until_ns(warm_ns);
        std::vector<char> message(size);
        publish_all({warm_ns, start_ns}, message, send);
        const std::int64_t cpu_before_ns = cpu_ns();
        const std::uint64_t sent =
            rate_ > 0 ? publish_paced(window, message, send) : publish_all(window, message, send);
        const std::int64_t used_ns = cpu_ns() - cpu_before_ns;
        for (int status = 0; wait(&status) > 0;) {
            must(status == 0, "a subscriber failed");
        }
        print(sent, used_ns, pss_bytes);
    }

  private:
    struct Shared {
        std::atomic<int> joined = 0;
        std::atomic<std::uint64_t> received = 0;
        std::atomic<std::int64_t> cpu_ns = 0;
        std::array<std::atomic<std::uint32_t>, kBins> bins{};
    };

    static std::uint64_t publish_all(const Window& window, const std::vector<char>& message,
                                     const std::function<bool(const char*)>& send) {
        std::uint64_t sent = 0;
        while (now_ns() < window.stop_ns) {
            for (int i = 0; i < kAtOnce; ++i) {
                sent += send(message.data()) ? 1 : 0;
            }
        }
        return sent;
    }

    [[nodiscard]] std::uint64_t publish_paced(const Window& window, std::vector<char>& message,
                                              const std::function<bool(const char*)>& send) const {
        std::uint64_t sent = 0;
        while (true) {
            const std::int64_t due_ns =
                window.start_ns + static_cast<std::int64_t>(static_cast<double>(sent) * kSecondNs / rate_);
            if (due_ns >= window.stop_ns) {
                return sent;
            }
            if (due_ns - now_ns() > kSpinNs) {
                sleep_until_ns(due_ns - kSpinNs);
            }
            while (now_ns() < due_ns) {
            }
            std::memcpy(message.data() + kTimeAt, &due_ns, sizeof due_ns);
            send(message.data());
            ++sent;
        }
    }

    // The latency, in microseconds, that this part of the messages does not exceed; 0 without latencies.
    [[nodiscard]] std::size_t percentile_us(double part) const {
        std::uint64_t all = 0;
        for (const auto& bin : shared_.bins) {
            all += bin;
        }
        std::uint64_t below = 0;
        for (std::size_t us = 0; us < kBins; ++us) {
            below += shared_.bins[us];
            if (static_cast<double>(below) >= part * static_cast<double>(all) && below > 0) {
                return us;
            }
        }
        return 0;
    }

    void print(std::uint64_t sent, std::int64_t publisher_ns, double pss_bytes) const {
        const auto each_us = [](std::int64_t ns, std::uint64_t messages) {
            return static_cast<double>(ns) / 1e3 / static_cast<double>(messages > 0 ? messages : 1);
        };
        std::printf(
            "{\"rate_pps\": %.1f, \"cpu_us\": %.4f, \"publisher_cpu_us\": %.4f, \"p50_us\": %zu, \"p99_us\": "
            "%zu, \"pss_bytes\": %.0f}\n",
            static_cast<double>(shared_.received) / seconds_, each_us(shared_.cpu_ns, shared_.received),
            each_us(publisher_ns, sent), percentile_us(0.50), percentile_us(0.99), pss_bytes);
    }

    double warm_s_;
    double seconds_;
    double rate_;
    Shared& shared_;
    Announcement<Window> window_;
    int processes_ = 0;
    std::vector<pid_t> children_;
};

}  // namespace bare
