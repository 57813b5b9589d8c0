#include "common/batch_part.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "common/histogram.h"
#include "common/protocol.h"

namespace hydra {
namespace {

constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kNone = SIZE_MAX;

// How the items of a column are spread over the clients.
struct Layout {
    enum class Of { client, ledger, together };

    std::string name;
    Of of = Of::client;
    std::size_t item_bytes = kNumberBytes;
    std::size_t width = 1;        // items of each client or ledger, or of each of their parts
    std::size_t lengths = kNone;  // place of the column with the numbers of parts
    bool topics = false;          // only batches of steps with several topics have it
};

// Columns with several items for each client or ledger; those without `lengths` have as many for all.
struct Several {
    std::string_view name;
    std::string_view lengths;
    std::size_t item_bytes;
    std::size_t width;
};
constexpr std::string_view kLags = "lag_bins_us";
constexpr std::array<Several, 5> kSeveral{{{kLags, "", kNumberBytes, kLagBins},
                                           {"absent", "absent_counts", kNumberBytes, 2},
                                           {"ranges", "range_counts", kNumberBytes, 2},
                                           {"bits", "bits_bytes", 1, 1},
                                           {"system", "system_bytes", 1, 1}}};

// The bounds of a column's numbers, unless they are 0 … INT64_MAX. (Python: hydra/model/batch_columns.py.)
struct Bounds {
    std::string_view name;
    std::int64_t least;
    std::int64_t most;
};
// Largest count of a bucket: sums of 65,535 have 64 bits, and no batch has as many parts.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 47;
// The bits of the largest finite fraction: those of all from 0 on are, as a whole number, 0 to this one.
constexpr std::int64_t kMostBits = 0x7FEF'FFFF'FFFF'FFFF;
constexpr std::array<Bounds, 12> kBounds{{{"felt", 0, 1},
                                          {"drain", 0, 3},
                                          {"cpu_user_s", 0, kMostBits},
                                          {"cpu_system_s", 0, kMostBits},
                                          {"latency_min_us", -kHighestUs, INT64_MAX},
                                          {"latency_p50_us", -kHighestUs, INT64_MAX},
                                          {"latency_p99_us", -kHighestUs, INT64_MAX},
                                          {"latency_max_us", -kHighestUs, INT64_MAX},
                                          {"absent_counts", 0, 1024},
                                          {"publisher", 0, UINT32_MAX},
                                          {"truncated", 0, 1},
                                          {"range_counts", 0, 256}}};
// Columns whose sums over a client's ledgers must fit as well.
constexpr std::array<std::string_view, 6> kAdded{"received",   "in_window", "missing",
                                                 "duplicates", "reordered", "extra"};
// Most base64 characters of all bitmaps of a client.
constexpr std::int64_t kMostCharacters = 262'144;

bool is_sum(std::string_view name) {
    return name.ends_with("latency_bounds") || name.ends_with("latency_counts");
}

// All columns in their order, as the builder writes them.
std::vector<Layout> described() {
    SubscriberReport report;
    report.hot = HotTopics();
    BatchBuilder builder;
    builder.add(0, report, false);
    std::vector<Layout> all;
    bool ledgers = false;
    for (const ColumnCount& column : builder.take().columns) {
        Layout it{.name = column.name};
        ledgers = ledgers && it.name != "system_bytes";
        it.of = is_sum(it.name) ? Layout::Of::together : ledgers ? Layout::Of::ledger : Layout::Of::client;
        ledgers = ledgers || it.name == "ledger_counts";
        it.topics = it.name.starts_with("hot_");
        const auto several = std::ranges::find(kSeveral, std::string_view(it.name), &Several::name);
        if (several != kSeveral.end()) {
            it.item_bytes = several->item_bytes;
            it.width = several->width;
            const auto lengths = std::ranges::find(all, several->lengths, &Layout::name);
            it.lengths = lengths == all.end() ? kNone : static_cast<std::size_t>(lengths - all.begin());
        }
        all.push_back(std::move(it));
    }
    return all;
}

const std::vector<Layout>& layout() {
    static const std::vector<Layout> all = described();
    return all;
}

std::size_t place_of(std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(layout(), name, &Layout::name) - layout().begin());
}

// Where each part begins, and the last ends, given the numbers of their items.
std::vector<std::size_t> begins(const std::vector<std::int64_t>& lengths) {
    std::vector<std::size_t> found{0};
    for (const std::int64_t length : lengths) {
        found.push_back(found.back() + static_cast<std::size_t>(length));
    }
    return found;
}

[[noreturn]] void refuse(const std::string& name) {
    throw ProtocolError("another number of items than the column needs: " + name);
}

void require(bool possible, std::string_view name) {
    if (!possible) {
        throw ProtocolError("an impossible number in the column " + std::string(name));
    }
}

}  // namespace

BatchPart::BatchPart(Ids ids, const std::vector<ColumnCount>& columns, std::string payload)
    : ids_(std::move(ids)), payload_(std::move(payload)) {
    const auto topics = static_cast<std::size_t>(std::ranges::count(layout(), true, &Layout::topics));
    const bool known = columns.size() == layout().size() || columns.size() == layout().size() - topics;
    if (!known || payload_.size() > kMaxPayloadBytes ||
        !std::ranges::equal(columns, std::span(layout()).first(columns.size()), {}, &ColumnCount::name,
                            &Layout::name)) {
        throw ProtocolError("not the columns of a batch, in their order");
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::size_t left = (payload_.size() - at) / layout()[i].item_bytes;
        if (columns[i].count > left) {
            refuse(columns[i].name);
        }
        const std::size_t end = at + columns[i].count * layout()[i].item_bytes;
        places_.insert(places_.end(), {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end)});
        at = std::min((end + kNumberBytes - 1) / kNumberBytes * kNumberBytes, payload_.size());
    }
    if (at != payload_.size() || at % kNumberBytes != 0) {
        throw ProtocolError("a payload of another length than its columns");
    }
    check_lengths();
    check_numbers();
    check_parts();
    check_bits();
    for (std::size_t i = 0; i < layout().size(); ++i) {
        const bool sum = layout()[i].of == Layout::Of::together;
        const bool filled = layout()[i].of == Layout::Of::client && layout()[i].lengths == kNone;
        bytes_ += sum ? 0 : filled ? ids_.size() * layout()[i].width * kNumberBytes : items(i).size();
    }
}

std::string_view BatchPart::items(std::size_t column) const {
    if (2 * column >= places_.size()) {
        return {};
    }
    const std::uint32_t begin = places_[2 * column];
    return std::string_view(payload_).substr(begin, places_[2 * column + 1] - begin);
}

std::vector<std::int64_t> BatchPart::numbers(std::size_t column) const {
    const std::string_view found = items(column);
    std::vector<std::int64_t> numbers(found.size() / kNumberBytes);
    if (!numbers.empty()) {
        std::memcpy(numbers.data(), found.data(), found.size());
    }
    return numbers;
}

// The sum of a column of lengths.
std::size_t BatchPart::total(std::size_t column) const {
    std::size_t sum = 0;
    for (const std::int64_t length : numbers(column)) {
        if (length < 0 || static_cast<std::size_t>(length) > kMaxPayloadBytes) {
            refuse(layout()[column].name);
        }
        sum += static_cast<std::size_t>(length);
    }
    return sum;
}

void BatchPart::check_lengths() const {
    const std::size_t ledgers = total(place_of("ledger_counts"));
    for (std::size_t i = 0; 2 * i < places_.size(); ++i) {
        const Layout& it = layout()[i];
        const std::size_t count = items(i).size() / it.item_bytes;
        if (it.of == Layout::Of::together) {
            const bool bounds = it.name.ends_with("_bounds");
            const std::size_t counts = bounds ? items(i + 1).size() : items(i).size();
            if (bounds ? count != (counts == 0 ? 0 : 2) : count % 2 != 0) {
                refuse(it.name);
            }
            continue;
        }
        const std::size_t of = it.lengths != kNone           ? total(it.lengths)
                               : it.of == Layout::Of::ledger ? ledgers
                                                             : ids_.size();
        if (count != of * it.width && (count != 0 || it.name != kLags)) {
            refuse(it.name);
        }
    }
}

void BatchPart::check_numbers() const {
    const std::vector<std::int64_t> ledgers = numbers(place_of("ledger_counts"));
    const std::int64_t most_ledgers =
        ledgers.empty() ? 1 : std::max<std::int64_t>(1, *std::ranges::max_element(ledgers));
    for (std::size_t i = 0; 2 * i < places_.size(); ++i) {
        const Layout& it = layout()[i];
        if (it.item_bytes != kNumberBytes) {
            continue;
        }
        const std::vector<std::int64_t> values = numbers(i);
        if (it.of == Layout::Of::together) {
            std::int64_t before = -kBuckets - 1;
            for (std::size_t k = 0; k + 1 < values.size(); k += 2) {
                if (it.name.ends_with("_bounds")) {
                    require(values[k] >= -kHighestUs && values[k + 1] >= -kHighestUs, it.name);
                    continue;
                }
                require(values[k] > before && values[k] < kBuckets, it.name);
                require(values[k + 1] >= 1 && values[k + 1] <= kMostCounted, it.name);
                before = values[k];
            }
            continue;
        }
        const auto found = std::ranges::find(kBounds, std::string_view(it.name), &Bounds::name);
        const bool added = std::ranges::find(kAdded, std::string_view(it.name)) != kAdded.end();
        const Bounds bounds =
            found != kBounds.end() ? *found : Bounds{it.name, 0, INT64_MAX / (added ? most_ledgers : 1)};
        require(std::ranges::all_of(values,
                                    [&](std::int64_t value) {
                                        return (value >= bounds.least && value <= bounds.most) ||
                                               (value == INT64_MIN && it.name == kLags);
                                    }),
                it.name);
    }
}

// Checks intervals, ranges and the JSON of `system`.
void BatchPart::check_parts() const {
    const std::vector<std::int64_t> absent = numbers(place_of("absent"));
    for (std::size_t i = 0; i < absent.size(); i += 2) {
        require(absent[i] <= absent[i + 1], "absent");
    }
    const std::vector<std::int64_t> ranges = numbers(place_of("ranges"));
    std::size_t at = 0;
    for (const std::int64_t count : numbers(place_of("range_counts"))) {
        std::int64_t before = -1;
        for (const std::size_t end = at + 2 * static_cast<std::size_t>(count); at < end; at += 2) {
            require(before < ranges[at] && ranges[at] <= ranges[at + 1], "ranges");
            before = ranges[at + 1];
        }
    }
    for (const std::string_view text : rows(place_of("system"))) {
        require(text.empty() || nlohmann::json::parse(text, nullptr, false).is_object(), "system");
    }
}

// Checks the bitmaps of members of a consumer group against their counts.
void BatchPart::check_bits() const {
    std::string_view left = items(place_of("bits"));
    if (left.empty()) {
        return;
    }
    const std::vector<std::int64_t> lengths = numbers(place_of("bits_bytes"));
    const std::vector<std::int64_t> received = numbers(place_of("received"));
    const std::vector<std::int64_t> extra = numbers(place_of("extra"));
    std::size_t ledger = 0;
    for (const std::int64_t ledgers : numbers(place_of("ledger_counts"))) {
        std::int64_t characters = 0;
        for (const std::size_t end = ledger + static_cast<std::size_t>(ledgers); ledger < end; ++ledger) {
            const std::string_view bits = left.substr(0, static_cast<std::size_t>(lengths[ledger]));
            left.remove_prefix(bits.size());
            const auto ones =
                std::accumulate(bits.begin(), bits.end(), std::int64_t{0}, [](std::int64_t sum, char byte) {
                    return sum + std::popcount(static_cast<unsigned char>(byte));
                });
            require(bits.empty() || (bits.back() != 0 && ones - received[ledger] == extra[ledger]), "bits");
            characters += (lengths[ledger] + 2) / 3 * 4;
        }
        require(characters <= kMostCharacters, "bits");
    }
}

std::vector<std::string_view> BatchPart::rows(std::size_t column) const {
    const Layout& it = layout()[column];
    const std::string_view all = items(column);
    if (all.empty() && it.of == Layout::Of::client && it.lengths == kNone) {
        return {};
    }
    const std::vector<std::size_t> ledgers = begins(numbers(place_of("ledger_counts")));
    const std::vector<std::size_t> parts =
        it.lengths == kNone ? std::vector<std::size_t>() : begins(numbers(it.lengths));
    const auto begin_of = [&](std::size_t row) {
        const std::size_t at = it.of == Layout::Of::ledger ? ledgers[row] : row;
        return (it.lengths == kNone ? at : parts[at]) * it.width * it.item_bytes;
    };
    std::vector<std::string_view> rows;
    for (std::size_t row = 0; row < ids_.size(); ++row) {
        rows.push_back(all.substr(begin_of(row), begin_of(row + 1) - begin_of(row)));
    }
    return rows;
}

BatchColumns join(std::span<const BatchPart> parts) {
    struct Row {
        Id id;
        std::size_t part;
        std::size_t row;
    };
    std::vector<Row> order;
    for (std::size_t part = 0; part < parts.size(); ++part) {
        for (std::size_t row = 0; row < parts[part].ids().size(); ++row) {
            order.push_back({parts[part].ids()[row], part, row});
        }
    }
    std::ranges::sort(order, {}, &Row::id);
    BatchColumns it;
    for (const Row& row : order) {
        it.ids.push_back(row.id);
    }
    for (std::size_t column = 0; column < layout().size(); ++column) {
        const Layout& about = layout()[column];
        if (about.of == Layout::Of::together) {
            LatencySum sum;
            for (const BatchPart& part : parts) {
                const std::vector<std::int64_t> bounds = part.numbers(column);
                if (!bounds.empty()) {
                    sum.add({.counts = part.numbers(column + 1), .min_us = bounds[0], .max_us = bounds[1]});
                }
            }
            sum.write(about.name.substr(0, about.name.rfind('_')), it);
            ++column;  // the bounds and the counts are written together
            continue;
        }
        std::vector<std::vector<std::string_view>> rows;
        std::ranges::transform(parts, std::back_inserter(rows),
                               [column](const BatchPart& part) { return part.rows(column); });
        const bool lacks = std::ranges::all_of(rows, [](const auto& of_part) { return of_part.empty(); });
        if (about.topics && lacks) {
            break;
        }
        // Without topics all counts are 0, without a lag all parts of the window are null.
        const std::vector<std::int64_t> numbers(lacks ? 0 : about.width, about.name == kLags ? INT64_MIN : 0);
        const std::string missing(reinterpret_cast<const char*>(numbers.data()),
                                  numbers.size() * kNumberBytes);
        std::string items;
        for (const Row& row : order) {
            items += rows[row.part].empty() ? std::string_view(missing) : rows[row.part][row.row];
        }
        it.add(about.name, items, about.item_bytes);
    }
    return it;
}

}  // namespace hydra
