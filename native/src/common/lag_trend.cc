#include "common/lag_trend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace hydra {
namespace {

constexpr std::size_t kLeastParts = 5;

struct Point {
    double x;  // seconds
    double y;  // messages
};

// Ordinary least squares: slope = Sxy/Sxx, error = sqrt((Syy − slope·Sxy) / (n − 2) / Sxx).
Slope fit(const std::vector<Point>& points) {
    const auto n = static_cast<double>(points.size());
    const auto mean = [&](double Point::* axis) {
        return std::accumulate(points.begin(), points.end(), 0.0,
                               [axis](double sum, const Point& p) { return sum + p.*axis; }) /
               n;
    };
    const double mean_x = mean(&Point::x);
    const double mean_y = mean(&Point::y);
    double sxx = 0;
    double sxy = 0;
    double syy = 0;
    for (const Point& p : points) {
        sxx += (p.x - mean_x) * (p.x - mean_x);
        sxy += (p.x - mean_x) * (p.y - mean_y);
        syy += (p.y - mean_y) * (p.y - mean_y);
    }
    const double slope = sxy / sxx;
    return {slope, std::sqrt(std::max(syy - slope * sxy, 0.0) / (n - 2) / sxx)};
}

}  // namespace

LagTrend::LagTrend(std::int64_t start_ns, std::int64_t stop_ns, std::optional<double> rate)
    : start_ns_(start_ns),
      part_ns_(std::max<std::int64_t>((stop_ns - start_ns) / static_cast<std::int64_t>(kParts), 1)),
      rate_(rate) {}

void LagTrend::add(std::int64_t now_ns, std::int64_t age_ns) {
    if (now_ns < start_ns_) {
        return;
    }
    const auto index = static_cast<std::uint64_t>((now_ns - start_ns_) / part_ns_);
    if (index < kParts) {
        ++parts_[index].count;
        parts_[index].sum_ns += static_cast<double>(age_ns);
    }
}

std::optional<Slope> LagTrend::slope() const {
    if (!rate_) {
        return std::nullopt;
    }
    std::vector<Point> points;
    for (std::size_t i = 0; i < kParts; ++i) {
        if (const Part& part = parts_[i]; part.count > 0) {
            const double age_s = part.sum_ns / static_cast<double>(part.count) / 1e9;
            points.push_back({static_cast<double>(i) * static_cast<double>(part_ns_) / 1e9, age_s * *rate_});
        }
    }
    return points.size() < kLeastParts ? std::nullopt : std::optional(fit(points));
}

}  // namespace hydra
