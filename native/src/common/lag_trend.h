// Whether a subscriber falls behind: the trend of the age of its newest message over the window.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace hydra {

// A least-squares slope and its standard error, both in messages/s.
struct Slope {
    double value = 0;
    double error = 0;
};

// Ages within a short time are all alike, so they are averaged in equal parts of the window before a line is
// fitted; otherwise the standard error would be that of hundreds of copies of one observation.
class LagTrend {
  public:
    static constexpr std::size_t kParts = 20;

    LagTrend() = default;

    // The window on the step's clock; `rate` is what is due in all (messages/s), none at "max".
    LagTrend(std::int64_t start_ns, std::int64_t stop_ns, std::optional<double> rate);

    // A batch was read at `now_ns`; its newest message was due `age_ns` before. Ignored outside the window.
    void add(std::int64_t now_ns, std::int64_t age_ns);

    // None at "max" and with too few parts of the window covered.
    [[nodiscard]] std::optional<Slope> slope() const;

  private:
    struct Part {
        std::uint64_t count = 0;
        double sum_ns = 0;
    };

    std::int64_t start_ns_ = 0;
    std::int64_t part_ns_ = 1;
    std::optional<double> rate_;
    std::array<Part, kParts> parts_{};
};

}  // namespace hydra
