#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <set>
#include <utility>

#include "common/base64.h"
#include "common/batch_part.h"
#include "common/json_reader.h"
#include "common/percentiles.h"
#include "ranges.h"
#include "vectors.h"

using namespace hydra;

namespace {

std::string hex(const std::string& bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += {digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

SubscriberReport report_of(const nlohmann::json& value) {
    SubscriberReport it;
    JsonReader fields(value);
    SubscriberReport::describe(it, fields);
    fields.nothing_else();
    return it;
}

std::vector<SubscriberReport> reports_of(const nlohmann::json& vector) {
    std::vector<SubscriberReport> reports;
    for (const nlohmann::json& report : vector["reports"]) {
        reports.push_back(report_of(report));
    }
    return reports;
}

void check_golden(const BatchColumns& batch, const nlohmann::json& it) {
    CHECK(batch.ids == it["ids"].get<Ids>());
    nlohmann::json columns = nlohmann::json::array();
    for (const ColumnCount& one : batch.columns) {
        columns.push_back(nlohmann::json::array({one.name, one.count}));
    }
    CHECK(columns == it["columns"]);
    CHECK(hex(batch.payload) == it["payload"].get<std::string>());
}

SubscriberReport with_ranges(std::size_t count) {
    SubscriberReport it;
    it.ledgers.push_back({.publisher = 1, .missing_ranges = separate_ranges(count)});
    return it;
}

std::size_t column(const BatchColumns& batch, const std::string& name) {
    for (const ColumnCount& it : batch.columns) {
        if (it.name == name) {
            return it.count;
        }
    }
    return SIZE_MAX;
}

}  // namespace

TEST_CASE("a batch's columns are what the golden files hold, whatever order the reports came in") {
    for_each_vector("batch", [](const nlohmann::json& it) {
        const auto ids = it["ids"].get<Ids>();
        const auto cohort = it["cohort"].get<std::set<Id>>();
        const std::vector<SubscriberReport> reports = reports_of(it);
        BatchBuilder builder;
        for (std::size_t i = ids.size(); i-- > 0;) {
            builder.add(ids[i], reports[i], cohort.contains(ids[i]));
        }
        check_golden(builder.take(), it);
        CHECK(builder.empty());
        CHECK(builder.bytes() == 0);
    });
}

TEST_CASE("joined parts are what the golden files hold, however the clients were spread") {
    for_each_vector("batch", [](const nlohmann::json& it) {
        const auto ids = it["ids"].get<Ids>();
        const auto cohort = it["cohort"].get<std::set<Id>>();
        const std::vector<SubscriberReport> reports = reports_of(it);
        for (const std::size_t count : {1, 2, 3, 100}) {
            std::vector<BatchPart> parts;
            std::size_t bytes = 0;
            for (std::size_t first = std::min(count, ids.size()); first-- > 0;) {
                BatchBuilder builder;
                for (std::size_t i = first; i < ids.size(); i += count) {
                    builder.add(ids[i], reports[i], cohort.contains(ids[i]));
                }
                BatchColumns batch = builder.take();
                parts.emplace_back(batch.ids, batch.columns, std::move(batch.payload));
                bytes += parts.back().bytes();
            }
            const BatchColumns joined = join(parts);
            check_golden(joined, it);
            std::size_t sums = 0;
            for (const ColumnCount& one : joined.columns) {
                sums += one.name.ends_with("latency_bounds") || one.name.ends_with("latency_counts")
                            ? 8 * one.count
                            : 0;
            }
            CHECK(joined.payload.size() <= bytes + sums + 14);  // the padding of bytes
        }
    });
}

TEST_CASE("parts whose columns do not fit together are refused") {
    SubscriberReport report = with_ranges(2);
    report.absent.resize(1);
    report.latency = {{7, 2}, 7, 7};
    BatchBuilder builder;
    builder.add(7, report, false);
    const BatchColumns good = builder.take();
    CHECK_NOTHROW(BatchPart({7}, good.columns, good.payload));
    CHECK_THROWS_AS(BatchPart({7, 8}, good.columns, good.payload), ProtocolError);
    CHECK_THROWS_AS(BatchPart({7}, good.columns, good.payload.substr(8)), ProtocolError);
    CHECK_THROWS_AS(BatchPart({7}, good.columns, good.payload + std::string(8, '\0')), ProtocolError);
    CHECK_THROWS_AS(BatchPart({7}, {}, ""), ProtocolError);
    for (std::size_t i = 0; i < good.columns.size(); ++i) {
        BatchColumns other = good;
        other.columns[i].name += "x";
        CHECK_THROWS_AS(BatchPart({7}, other.columns, other.payload), ProtocolError);
        other = good;
        other.columns[i].count += 1;
        CHECK_THROWS_AS(BatchPart({7}, other.columns, other.payload + std::string(8, '\0')), ProtocolError);
        other.columns[i].count = UINT64_MAX / 2;
        CHECK_THROWS_AS(BatchPart({7}, other.columns, other.payload), ProtocolError);
    }
}

TEST_CASE("parts with impossible numbers are refused") {
    SubscriberReport report = with_ranges(2);
    report.absent = {{.begin_ns = 1, .end_ns = 2}};
    report.lag_bins_us.resize(kLagBins, 1);
    report.latency = {{7, 2, 9, 1}, 7, 9};
    report.ledgers[0].received = 2;
    report.ledgers[0].received_bits = "Aw==";
    report.system = SystemObject(nlohmann::json{{"a", 1}});
    BatchBuilder builder;
    builder.add(7, report, false);
    const BatchColumns good = builder.take();
    CHECK_NOTHROW(BatchPart({7}, good.columns, good.payload));
    struct Change {
        const char* column;
        std::size_t at;
        std::int64_t value;
    };
    constexpr std::int64_t kInfinite = 0x7FF0'0000'0000'0000;
    for (const Change& change : std::initializer_list<Change>{{"batches", 0, -1},
                                                              {"first_ns", 0, -5},
                                                              {"felt", 0, 2},
                                                              {"drain", 0, 4},
                                                              {"cpu_user_s", 0, INT64_MIN + 1},
                                                              {"cpu_system_s", 0, kInfinite},
                                                              {"latency_count", 0, -1},
                                                              {"latency_p50_us", 0, -3'600'000'001},
                                                              {"lag_bins_us", 7, -1},
                                                              {"absent", 0, -1},
                                                              {"absent", 0, 3},
                                                              {"publisher", 0, std::int64_t{1} << 32},
                                                              {"received", 0, 3},
                                                              {"missing", 0, -1},
                                                              {"truncated", 0, 2},
                                                              {"ranges", 1, 2},
                                                              {"ranges", 2, 3},
                                                              {"bits", 0, 0},
                                                              {"bits", 0, 7},
                                                              {"system", 0, 0},
                                                              {"latency_bounds", 0, -3'600'000'001},
                                                              {"latency_counts", 0, 9},
                                                              {"latency_counts", 0, -23'553},
                                                              {"latency_counts", 2, 23'552},
                                                              {"latency_counts", 1, 0},
                                                              {"latency_counts", 3, INT64_MAX}}) {
        CAPTURE(change.column);
        CAPTURE(change.value);
        std::string payload = good.payload;
        std::size_t begin = 0;
        for (const ColumnCount& it : good.columns) {
            const bool bytes = it.name == "bits" || it.name == "system";
            if (it.name == change.column) {
                std::memcpy(payload.data() + begin + change.at * (bytes ? 1 : 8), &change.value,
                            bytes ? 1 : 8);
            }
            begin += (it.count * (bytes ? 1 : 8) + 7) / 8 * 8;
        }
        CHECK(payload != good.payload);
        CHECK_THROWS_AS(BatchPart({7}, good.columns, payload), ProtocolError);
    }
    BatchColumns other = good;
    for (ColumnCount& it : other.columns) {
        it.count -= it.name == "latency_bounds" ? 2 : 0;
    }
    CHECK_THROWS_AS(BatchPart({7}, other.columns, other.payload), ProtocolError);
}

TEST_CASE("a report's share of a batch is never more than was reckoned") {
    for (const std::size_t ranges : {0, 1, 256}) {
        SubscriberReport report = with_ranges(ranges);
        report.absent.resize(3);
        report.lag_bins_us.resize(20);
        report.ledgers[0].received_bits = "/3M=";
        const std::size_t reckoned = batch_bytes(report);
        BatchBuilder builder;
        builder.add(7, report, false);
        const std::size_t taken = builder.take().payload.size();
        CHECK(taken <= reckoned + 14);  // the padding of bytes
        CHECK(taken + 200 > reckoned);
    }
}

TEST_CASE("what is no base64 is no bitmap") {
    CHECK(from_base64("") == "");
    CHECK(from_base64("AQ==") == std::string("\x01"));
    CHECK(from_base64("/3M=") == std::string("\xff\x73"));
    CHECK(from_base64("AAEC") == std::string("\0\x01\x02", 3));
    CHECK_FALSE(from_base64("AAE"));
    CHECK_FALSE(from_base64("A*E="));
}

TEST_CASE("percentiles are of the bucket that holds their rank, at most the maximum") {
    const HistogramCounts one{{2048, 1}, 2048, 2048};
    CHECK(percentile_us(one, 1, 50) == 2048);  // the bucket reaches to 2049
    CHECK(percentile_us(one, 1, 99) == 2048);
    CHECK(highest_of(2048) == 2049);
    CHECK(highest_of(2047) == 2047);
    CHECK(highest_of(-1) == 0);
    CHECK(highest_of(-2) == -1);
    CHECK(highest_of(-1 - 2048) == -2048);
    const HistogramCounts hundred{{1, 50, 2, 49, 3, 1}, 1, 3};
    CHECK(percentile_us(hundred, 100, 50) == 1);
    CHECK(percentile_us(hundred, 100, 99) == 2);
    const HistogramCounts odd{{1, 149, 2, 1, 3, 1}, 1, 3};
    CHECK(percentile_us(odd, 151, 99) == 2);  // 149 of 151 are 98.7 %
    CHECK(percentile_us({}, 0, 50) == 0);
}

TEST_CASE("nothing at all is a batch without clients") {
    const BatchColumns batch = BatchBuilder().take();
    CHECK(batch.ids.empty());
    CHECK(batch.payload.empty());
    CHECK(column(batch, "latency_bounds") == 0);
    CHECK(batch.columns.size() == 40);
}
