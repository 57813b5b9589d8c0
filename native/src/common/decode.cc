#include <charconv>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "common/header.h"
#include "common/protocol.h"

namespace hydra {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargest = (std::uint64_t{1} << 63) - 1;
constexpr int kDeepest = 16;
constexpr std::uint64_t kLargestMessage = 64 * 1024 * 1024;

[[noreturn]] void refuse(const std::string& what) {
    throw ProtocolError(what);
}

// --- single values --------------------------------------------------------------------------------------

std::uint64_t unsigned_to(const json& value, std::uint64_t least, std::uint64_t most) {
    // The parser takes a whole number as unsigned, as signed where it is negative, and as a float beyond 64
    // bits.
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
        value.get<std::uint64_t>() > most) {
        refuse("not a whole number in its range");
    }
    return value.get<std::uint64_t>();
}

std::uint32_t u32(const json& value) {
    return static_cast<std::uint32_t>(unsigned_to(value, 0, UINT32_MAX));
}

std::uint64_t count(const json& value) {
    return unsigned_to(value, 0, kLargest);
}

std::int64_t nanoseconds(const json& value) {
    return static_cast<std::int64_t>(count(value));
}

std::int64_t signed_nanoseconds(const json& value) {
    if (value.is_number_unsigned()) {
        return nanoseconds(value);
    }
    if (!value.is_number_integer()) {
        refuse("not a whole number");
    }
    return value.get<std::int64_t>();
}

double number(const json& value, double least, double most) {
    if (!value.is_number()) {
        refuse("not a number");
    }
    const double it = value.get<double>();
    if (!std::isfinite(it) || it < least || it > most) {
        refuse("a number out of its range");
    }
    return it;
}

double above_zero(const json& value, double most) {
    const double it = number(value, 0, most);
    if (it <= 0) {
        refuse("a number that must be above 0");
    }
    return it;
}

double seconds(const json& value) {
    return number(value, 0, 1e9);
}

bool boolean(const json& value) {
    if (!value.is_boolean()) {
        refuse("not a boolean");
    }
    return value.get<bool>();
}

const std::string& text(const json& value) {
    if (!value.is_string()) {
        refuse("not a text");
    }
    return value.get_ref<const std::string&>();
}

const std::string& one_of(const json& value, std::initializer_list<std::string_view> known) {
    const std::string& it = text(value);
    for (const std::string_view word : known) {
        if (it == word) {
            return it;
        }
    }
    refuse("an unknown word");
}

const json& array(const json& value) {
    if (!value.is_array()) {
        refuse("not an array");
    }
    return value;
}

const json& object(const json& value) {
    if (!value.is_object()) {
        refuse("not an object");
    }
    return value;
}

Ids ids(const json& value) {
    Ids them;
    for (const json& id : array(value)) {
        them.push_back(u32(id));
    }
    return them;
}

std::vector<Range> ranges(const json& value) {
    std::vector<Range> them;
    for (const json& pair : array(value)) {
        if (array(pair).size() != 2) {
            refuse("a range is two counts");
        }
        const Range range{count(pair[0]), count(pair[1])};
        if (range.first > range.last || (!them.empty() && range.first <= them.back().last)) {
            refuse("ranges must rise");
        }
        them.push_back(range);
    }
    return them;
}

std::int32_t partition(const std::string& key) {
    std::int32_t it = -1;
    const char* end = key.data() + key.size();
    const auto [stopped, error] = std::from_chars(key.data(), end, it);
    if (error != std::errc() || stopped != end || it < 0 || std::to_string(it) != key) {
        refuse("not a partition's number");
    }
    return it;
}

Offsets offsets(const json& value) {
    Offsets them;
    for (const auto& [key, offset] : object(value).items()) {
        them.emplace(partition(key), nanoseconds(offset));
    }
    return them;
}

// --- objects: every field is asked for by name, and at the end nothing may be left over --------------------

class Fields {
  public:
    explicit Fields(const json& value) : value_(object(value)) {}

    const json& required(const char* name) {
        const json* it = find(name);
        if (it == nullptr) {
            refuse(std::string("the field is missing: ") + name);
        }
        return *it;
    }

    // Null where the field is missing; then its default stays.
    const json* find(const char* name) {
        const auto it = value_.find(name);
        if (it == value_.end()) {
            return nullptr;
        }
        ++asked_;
        return &*it;
    }

    // Null where the field is missing or null.
    const json* nullable(const char* name) {
        const json* it = find(name);
        return it == nullptr || it->is_null() ? nullptr : it;
    }

    void nothing_else() const {
        if (asked_ != value_.size()) {
            refuse("an unknown field");
        }
    }

  private:
    const json& value_;
    std::size_t asked_ = 0;
};

template <typename T, typename Read>
void take(Fields& fields, const char* name, T& into, Read read) {
    if (const json* value = fields.find(name)) {
        into = static_cast<T>(std::invoke(read, *value));
    }
}

int high_water_mark(const json& value) {
    return static_cast<int>(unsigned_to(value, 0, INT32_MAX));
}

Settings settings(const json& value) {
    Fields fields(value);
    Settings it;
    if (const json* rate = fields.find("rate");
        rate != nullptr && !(rate->is_string() && text(*rate) == "max")) {
        it.rate = above_zero(*rate, HUGE_VAL);
    }
    take(fields, "msg_batch", it.msg_batch, [](const json& v) { return unsigned_to(v, 1, kLargest); });
    take(fields, "message_size", it.message_size,
         [](const json& v) { return unsigned_to(v, kHeaderBytes, kLargestMessage); });
    take(fields, "sndhwm", it.sndhwm, high_water_mark);
    take(fields, "rcvhwm", it.rcvhwm, high_water_mark);
    take(fields, "nodrop", it.nodrop, boolean);
    take(fields, "linger_ms", it.linger_ms, [](const json& v) { return number(v, 0, 900'000); });
    if (const json* bytes = fields.nullable("batch_bytes")) {
        it.batch_bytes = unsigned_to(*bytes, 1, INT32_MAX);
    }
    take(fields, "compression", it.compression,
         [](const json& v) { return one_of(v, {"none", "gzip", "snappy", "lz4", "zstd"}); });
    take(fields, "acks", it.acks, [](const json& v) { return one_of(v, {"0", "1", "all"}); });
    if (const json* rate = fields.nullable("receive_rate")) {
        it.receive_rate = above_zero(*rate, HUGE_VAL);
    }
    if (const json* rate = fields.nullable("reconnect_rate")) {
        it.reconnect_rate = above_zero(*rate, 100);
    }
    return it;  // further settings may be another system's
}

PublisherEndpoint publisher_endpoint(const json& value) {
    Fields fields(value);
    PublisherEndpoint it;
    it.publisher = u32(fields.required("publisher"));
    take(fields, "endpoint", it.endpoint, text);
    fields.nothing_else();
    return it;
}

KafkaTopic kafka_topic(const json& value) {
    Fields fields(value);
    KafkaTopic it;
    it.bootstrap = text(fields.required("bootstrap"));
    it.topic = text(fields.required("topic"));
    it.offsets = offsets(fields.required("offsets"));
    if (const json* properties = fields.find("properties")) {
        for (const auto& [key, property] : object(*properties).items()) {
            it.properties.emplace(key, text(property));
        }
    }
    fields.nothing_else();
    return it;
}

Sent sent(const json& value) {
    Fields fields(value);
    Sent it;
    it.publisher = u32(fields.required("publisher"));
    it.sent = count(fields.required("sent"));
    take(fields, "unacknowledged", it.unacknowledged, ranges);
    fields.nothing_else();
    return it;
}

// --- messages ---------------------------------------------------------------------------------------------

Welcome welcome(Fields& fields) {
    Welcome it;
    it.run = text(fields.required("run"));
    it.silence_s = seconds(fields.required("silence_s"));
    return it;
}

Configure configure(Fields& fields) {
    Configure it;
    it.epoch = u32(fields.required("epoch"));
    it.settings = settings(fields.required("settings"));
    for (const json& publisher : array(fields.required("publishers"))) {
        it.publishers.push_back(publisher_endpoint(publisher));
    }
    it.probe = boolean(fields.required("probe"));
    take(fields, "progress_s", it.progress_s, seconds);
    if (const json* kafka = fields.nullable("kafka")) {
        it.kafka = kafka_topic(*kafka);
    }
    return it;
}

Start start(Fields& fields) {
    Start it;
    it.epoch = u32(fields.required("epoch"));
    it.start_at_ns = nanoseconds(fields.required("start_at_ns"));
    it.stop_at_ns = nanoseconds(fields.required("stop_at_ns"));
    it.wall_offset_ns = signed_nanoseconds(fields.required("wall_offset_ns"));
    it.boot_id = text(fields.required("boot_id"));
    return it;
}

Stop stop(Fields& fields) {
    Stop it;
    it.epoch = u32(fields.required("epoch"));
    it.stop_at_ns = nanoseconds(fields.required("stop_at_ns"));
    return it;
}

Finish finish(Fields& fields) {
    Finish it;
    it.epoch = u32(fields.required("epoch"));
    for (const json& publisher : array(fields.required("publishers"))) {
        it.publishers.push_back(sent(publisher));
    }
    take(fields, "end_offsets", it.end_offsets, offsets);
    it.drain_max_s = seconds(fields.required("drain_max_s"));
    take(fields, "quiet_s", it.quiet_s, seconds);
    return it;
}

Ping ping(Fields& fields) {
    Ping it;
    it.time_ns = nanoseconds(fields.required("time_ns"));
    take(fields, "reply", it.reply, boolean);
    return it;
}

Quit quit(Fields&) {
    return {};
}

template <typename Read>
FromController complete(Fields& fields, Read read) {
    auto message = read(fields);
    take(fields, "ids", message.ids, ids);
    fields.nothing_else();
    return message;
}

FromController message(const json& value) {
    Fields fields(value);
    const std::string& type = text(fields.required("type"));
    unsigned_to(fields.required("v"), 1, 1);
    if (type == "welcome") {
        return complete(fields, welcome);
    }
    if (type == "configure") {
        return complete(fields, configure);
    }
    if (type == "start") {
        return complete(fields, start);
    }
    if (type == "stop") {
        return complete(fields, stop);
    }
    if (type == "finish") {
        return complete(fields, finish);
    }
    if (type == "ping") {
        return complete(fields, ping);
    }
    if (type == "quit") {
        return complete(fields, quit);
    }
    refuse("an unknown type of message");
}

// No message is nested deeply; refusing it here keeps the parser's memory in proportion.
void check_depth(std::string_view frame) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < frame.size(); ++i) {
        const char c = frame[i];
        if (in_string) {
            if (c == '\\') {
                ++i;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > kDeepest) {
                refuse("nested too deeply");
            }
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
}

}  // namespace

FromController decode(std::string_view frame) {
    if (frame.size() > kMaxMessageBytes) {
        refuse("longer than any message may be");
    }
    check_depth(frame);
    const json value = json::parse(frame, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) {
        refuse("not JSON");
    }
    return message(value);
}

}  // namespace hydra
