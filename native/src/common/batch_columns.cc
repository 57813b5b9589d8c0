#include "common/batch_columns.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <nlohmann/json.hpp>
#include <ranges>
#include <type_traits>

#include "common/base64.h"
#include "common/percentiles.h"

namespace hydra {
namespace {

constexpr std::size_t kWord = 8;
// Words of a client besides its numbers: five of its latency, its lags, and the lengths of its absences,
// ledgers and `system`; words of a ledger besides its numbers: the lengths of its ranges and bitmap.
constexpr std::size_t kWordsBesideRow = 5 + kLagBins + 3;
constexpr std::size_t kWordsBesideLedger = 2;

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

// Adds columns one after the other.
class ColumnWriter {
  public:
    explicit ColumnWriter(BatchColumns& into) : into_(into) {}

    template <typename T>
        requires(sizeof(T) == kWord)
    void words(const std::string& name, const std::vector<T>& values) {
        into_.add(name, {reinterpret_cast<const char*>(values.data()), values.size() * kWord}, kWord);
    }

    void bytes(const char* name, const std::string& values) { into_.add(name, values, 1); }

  private:
    BatchColumns& into_;
};

using Words = std::vector<std::int64_t>;

std::int64_t word(auto value) {
    return static_cast<std::int64_t>(value);
}

std::string system_text(const SubscriberReport& report) {
    return report.system ? report.system.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                         : "";
}

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <typename T>
concept Choice = std::same_as<T, bool> || std::is_enum_v<T>;

// Collects an object's whole numbers, choices and fractions with their names, from its description.
class Scalars {
  public:
    std::vector<std::pair<const char*, std::int64_t>> numbers;
    std::vector<std::pair<const char*, std::int64_t>> choices;
    std::vector<std::pair<const char*, double>> fractions;

    template <typename T>
    void required(const char* name, const T& value, const auto&...) {
        if constexpr (Integer<T>) {
            numbers.emplace_back(name, word(value));
        } else if constexpr (Choice<T>) {
            choices.emplace_back(name, word(value));
        } else if constexpr (std::floating_point<T>) {
            fractions.emplace_back(name, value);
        }
    }

    void optional(const char* name, const auto& value, const auto&...) { required(name, value); }
    void present(const char*, const auto&) {}

    [[nodiscard]] std::size_t size() const { return numbers.size() + choices.size() + fractions.size(); }
};

template <typename T>
Scalars scalars(const T& row) {
    Scalars found;
    T::describe(row, found);
    return found;
}

// The number of columns for the scalars of such an object.
template <typename T>
std::size_t width() {
    static const std::size_t width = scalars(T{}).size();
    return width;
}

// Writes a column for each scalar of the rows: whole numbers, choices and fractions, in the order of the
// description. The prefix stands before each name.
template <typename T>
void write_scalars(ColumnWriter& columns, const std::vector<const T*>& rows, const std::string& prefix = "") {
    std::vector<Scalars> found;
    for (const T* row : rows) {
        found.push_back(scalars(*row));
    }
    const Scalars names = scalars(T{});
    const auto write = [&](auto member) {
        for (std::size_t i = 0; i < (names.*member).size(); ++i) {
            std::vector<typename std::decay_t<decltype((names.*member)[i])>::second_type> values;
            for (const Scalars& row : found) {
                values.push_back((row.*member)[i].second);
            }
            columns.words(prefix + (names.*member)[i].first, values);
        }
    };
    write(&Scalars::numbers);
    write(&Scalars::choices);
    write(&Scalars::fractions);
}

template <std::ranges::range Rows>
void write_clients(ColumnWriter& columns, const Rows& rows) {
    std::vector<const SubscriberReport*> reports;
    std::vector<const Usage*> usages;
    for (const SubscriberReport& report : rows) {
        reports.push_back(&report);
        usages.push_back(&report.usage);
    }
    write_scalars(columns, reports);
    write_scalars(columns, usages);
}

template <std::ranges::range Rows>
void write_latencies(ColumnWriter& columns, const Rows& rows) {
    Words counts;
    Words least;
    Words half;
    Words most_of_100;
    Words most;
    for (const SubscriberReport& report : rows) {
        const std::int64_t count = count_of(report.latency);
        counts.push_back(count);
        least.push_back(count == 0 ? 0 : report.latency.min_us);
        half.push_back(percentile_us(report.latency, count, 50));
        most_of_100.push_back(percentile_us(report.latency, count, 99));
        most.push_back(count == 0 ? 0 : report.latency.max_us);
    }
    columns.words("latency_count", counts);
    columns.words("latency_min_us", least);
    columns.words("latency_p50_us", half);
    columns.words("latency_p99_us", most_of_100);
    columns.words("latency_max_us", most);
}

template <std::ranges::range Rows>
void write_times(ColumnWriter& columns, const Rows& rows) {
    Words lag;
    Words absent_counts;
    Words absent;
    const bool any = std::ranges::any_of(rows, [](const auto& it) { return !it.lag_bins_us.empty(); });
    for (const SubscriberReport& report : rows) {
        for (std::size_t i = 0; any && i < kLagBins; ++i) {
            const bool present = i < report.lag_bins_us.size() && report.lag_bins_us[i];
            lag.push_back(present ? word(*report.lag_bins_us[i]) : INT64_MIN);
        }
        absent_counts.push_back(word(report.absent.size()));
        for (const Interval& interval : report.absent) {
            absent.insert(absent.end(), {interval.begin_ns, interval.end_ns});
        }
    }
    columns.words("lag_bins_us", lag);
    columns.words("absent_counts", absent_counts);
    columns.words("absent", absent);
}

template <std::ranges::range Rows>
void write_ledgers(ColumnWriter& columns, const Rows& rows) {
    Words counts;
    std::vector<const LedgerCounts*> ledgers;
    for (const SubscriberReport& report : rows) {
        counts.push_back(word(report.ledgers.size()));
        for (const LedgerCounts& ledger : report.ledgers) {
            ledgers.push_back(&ledger);
        }
    }
    columns.words("ledger_counts", counts);
    write_scalars(columns, ledgers);
    Words range_counts;
    Words ranges;
    Words bits_bytes;
    std::string bits;
    for (const LedgerCounts* ledger : ledgers) {
        range_counts.push_back(word(ledger->missing_ranges.size()));
        for (const Range& range : ledger->missing_ranges) {
            ranges.insert(ranges.end(), {word(range.first), word(range.last)});
        }
        const std::string raw = from_base64(ledger->received_bits).value_or("");
        bits_bytes.push_back(word(raw.size()));
        bits += raw;
    }
    columns.words("range_counts", range_counts);
    columns.words("ranges", ranges);
    columns.words("bits_bytes", bits_bytes);
    columns.bytes("bits", bits);
}

template <std::ranges::range Rows>
void write_hot_topics(ColumnWriter& columns, const Rows& rows) {
    static const HotTopics none;
    std::vector<const HotTopics*> counts;
    for (const SubscriberReport& report : rows) {
        counts.push_back(report.hot ? &*report.hot : &none);
    }
    write_scalars(columns, counts, "hot_");
}

template <std::ranges::range Rows>
void write_systems(ColumnWriter& columns, const Rows& rows) {
    Words lengths;
    std::string texts;
    for (const SubscriberReport& report : rows) {
        const std::string text = system_text(report);
        lengths.push_back(word(text.size()));
        texts += text;
    }
    columns.words("system_bytes", lengths);
    columns.bytes("system", texts);
}

}  // namespace

std::size_t batch_bytes(const SubscriberReport& report) {
    std::size_t words =
        width<SubscriberReport>() + width<Usage>() + kWordsBesideRow + 2 * report.absent.size();
    std::size_t bytes = system_text(report).size();
    words += report.hot ? width<HotTopics>() : 0;
    for (const LedgerCounts& ledger : report.ledgers) {
        words += width<LedgerCounts>() + kWordsBesideLedger + 2 * ledger.missing_ranges.size();
        bytes += ledger.received_bits.size() / 4 * 3;
    }
    return words * kWord + bytes;
}

void BatchColumns::add(const std::string& name, std::string_view items, std::size_t item_bytes) {
    columns.push_back({name, items.size() / item_bytes});
    payload += items;
    payload.resize((payload.size() + kWord - 1) / kWord * kWord);
}

void LatencySum::add(const HistogramCounts& histogram) {
    if (histogram.counts.empty()) {
        return;
    }
    const bool first = counts_.empty();
    min_us_ = first ? histogram.min_us : std::min(min_us_, histogram.min_us);
    max_us_ = first ? histogram.max_us : std::max(max_us_, histogram.max_us);
    for (std::size_t i = 0; i + 1 < histogram.counts.size(); i += 2) {
        counts_[histogram.counts[i]] += histogram.counts[i + 1];
    }
}

void LatencySum::write(const std::string& name, BatchColumns& into) const {
    Words counts;
    for (const auto& [index, count] : counts_) {
        counts.insert(counts.end(), {index, count});
    }
    ColumnWriter columns(into);
    columns.words(name + "_bounds", counts.empty() ? Words() : Words{min_us_, max_us_});
    columns.words(name + "_counts", counts);
}

void BatchBuilder::add(Id id, const SubscriberReport& report, bool cohort) {
    (cohort ? cohort_ : all_).add(report.latency);
    if (report.hot && !cohort) {
        hot_.add(report.hot->latency);
    }
    bytes_ += batch_bytes(report);
    rows_.push_back({id, &report});
}

BatchColumns BatchBuilder::take() {
    std::ranges::sort(rows_, {}, &Row::id);
    BatchColumns it;
    for (const Row& row : rows_) {
        it.ids.push_back(row.id);
    }
    const auto rows =
        rows_ | std::views::transform([](const Row& row) -> const SubscriberReport& { return *row.report; });
    ColumnWriter columns(it);
    write_clients(columns, rows);
    write_latencies(columns, rows);
    write_times(columns, rows);
    write_ledgers(columns, rows);
    write_systems(columns, rows);
    all_.write("latency", it);
    cohort_.write("cohort_latency", it);
    if (std::ranges::any_of(rows, [](const auto& it) { return it.hot.has_value(); })) {
        write_hot_topics(columns, rows);
        hot_.write("hot_latency", it);
    }
    *this = BatchBuilder();
    return it;
}

}  // namespace hydra
