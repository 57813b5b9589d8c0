// Reads the described messages from parsed JSON.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "common/protocol.h"

namespace hydra {

// The fields of one object. Each is read by its name, and at the end none may be left. A value that does not
// match its description is rejected with a ProtocolError, whose text names the place.
class JsonReader {
  public:
    using json = nlohmann::json;

    explicit JsonReader(const json& value) : object_(object(value)) {}

    void required(const char* name, auto& into, const auto&... limit) {
        if (!optional(name, into, limit...)) {
            refuse(std::string("the field is missing: ") + name);
        }
    }

    // If the field is missing, `into` is unchanged. Returns whether the field is there.
    bool optional(const char* name, auto& into, const auto&... limit) {
        const auto field = object_.find(name);
        if (field == object_.end()) {
            return false;
        }
        asked_.push_back(name);
        try {
            read(*field, into, limit...);
        } catch (const ProtocolError& e) {
            refuse(std::string(name) + ": " + e.what());
        }
        return true;
    }

    // A field that is missing if it has no value; it is never null.
    template <typename T>
    void present(const char* name, std::optional<T>& into) {
        T value;
        if (optional(name, value)) {
            into = std::move(value);
        }
    }

    void nothing_else() const {
        if (asked_.size() == object_.size()) {
            return;
        }
        for (const auto& [name, value] : object_.items()) {
            if (std::ranges::find(asked_, name) == asked_.end()) {
                refuse("an unknown field: " + name.substr(0, kLongestName));
            }
        }
    }

    [[noreturn]] static void refuse(const std::string& what) { throw ProtocolError(what); }

  private:
    static constexpr std::size_t kLongestName = 100;

    struct IdRun {
        Id first = 0;
        Id last = 0;

        static constexpr std::size_t kItems = 2;
        static void items(auto& it, const auto& each) {
            each(it.first);
            each(it.last);
        }
    };

    static const json& object(const json& value) {
        if (!value.is_object()) {
            refuse("not an object");
        }
        return value;
    }

    static void read(const json& value, std::nullptr_t&) {
        if (!value.is_null()) {
            refuse("not null");
        }
    }

    static void read(const json& value, bool& into) {
        if (!value.is_boolean()) {
            refuse("not a boolean");
        }
        into = value.get<bool>();
    }

    template <std::integral T>
    static void read(const json& value, T& into, const Whole& limit = kWhole<T>) {
        // The parser returns a whole number as unsigned, as signed if it has a minus sign, and as a float if
        // it exceeds 64 bits.
        const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX
                                                     : value.is_number_integer() && limit.least < 0;
        if (!fits || value.get<std::int64_t>() < limit.least || value.get<std::int64_t>() > limit.most) {
            refuse("not a whole number in its range");
        }
        into = value.get<T>();
    }

    static void read(const json& value, double& into, const Number& limit) {
        if (!value.is_number()) {
            refuse("not a number");
        }
        if (value < limit.least || value > limit.most) {
            refuse("a number out of its range");
        }
        into = value.get<double>();
    }

    static void read(const json& value, std::optional<double>& into, const OrMax& number) {
        if (value == "max") {
            into.reset();
        } else {
            read(value, into.emplace(), number.limit);
        }
    }

    static void read(const json& value, std::string& into) {
        if (!value.is_string()) {
            refuse("not a text");
        }
        into = value.get_ref<const std::string&>();
    }

    static void read(const json& value, std::string& into, const OneOf& known) {
        read(value, into);
        if (std::ranges::find(known, into) == known.end()) {
            refuse("an unknown word");
        }
    }

    template <typename T>
        requires std::is_enum_v<T>
    static void read(const json& value, T& into) {
        const auto known = words(into);
        const auto found = std::ranges::find(known, value);
        if (found == known.end()) {
            refuse("an unknown word");
        }
        into = static_cast<T>(found - known.begin());
    }

    template <typename T>
    static void read(const json& value, std::optional<T>& into, const auto&... limit) {
        if (value.is_null()) {
            into.reset();
        } else {
            read(value, into.emplace(), limit...);
        }
    }

    template <typename T>
    static void read(const json& value, std::vector<T>& into, const auto&... limit) {
        if (!value.is_array()) {
            refuse("not an array");
        }
        into.reserve(value.size());
        for (const json& item : value) {
            read(item, into.emplace_back(), limit...);
        }
    }

    static void read(const json& value, std::vector<Range>& into) {
        read<Range>(value, into);
        for (std::size_t i = 0; i < into.size(); ++i) {
            if (into[i].first > into[i].last || (i > 0 && into[i].first <= into[i - 1].last)) {
                refuse("ranges must rise");
            }
        }
    }

    template <Items T>
    static void read(const json& value, T& into) {
        if (!value.is_array() || value.size() != T::kItems) {
            refuse("not an array of " + std::to_string(T::kItems));
        }
        std::size_t i = 0;
        T::items(into, [&](auto& item, const auto&... limit) { read(value[i++], item, limit...); });
    }

    template <typename T>
    static void read(const json& value, std::map<std::string, T>& into) {
        for (const auto& [key, item] : object(value).items()) {
            read(item, into[key]);
        }
    }

    static void read(const json& value, std::map<std::int32_t, std::int64_t>& into) {
        for (const auto& [key, number] : object(value).items()) {
            read(number, into[whole_number(key)]);
        }
    }

    static std::int32_t whole_number(const std::string& key) {
        std::int32_t it = -1;
        const auto [stopped, error] = std::from_chars(key.data(), key.data() + key.size(), it);
        if (error != std::errc() || it < 0 || std::to_string(it) != key) {
            refuse("a key that is not a whole number");
        }
        return it;
    }

    static void read(const json& value, Ids& into) {
        if (!value.is_array()) {
            refuse("not an array");
        }
        for (const json& item : value) {
            IdRun run;
            if (item.is_array()) {
                read(item, run);
            } else {
                read(item, run.first);
                run.last = run.first;
            }
            const auto [first, last] = run;
            if (first > last || (!into.empty() && first <= into.back())) {
                refuse("ids must rise");
            }
            if (into.size() + (last - first) >= kMaxIds) {
                refuse("more ids than a message may name");
            }
            for (std::uint64_t id = first; id <= last; ++id) {
                into.push_back(static_cast<Id>(id));
            }
        }
    }

    static void read(const json& value, SystemObject& into) {
        into = value.is_null() ? SystemObject() : SystemObject(object(value));
    }

    // An object that describes itself.
    template <typename T>
        requires(std::is_class_v<T> && !Items<T>)
    static void read(const json& value, T& into) {
        JsonReader fields(value);
        T::describe(into, fields);
        if constexpr (!requires { T::kOthersAllowed; }) {
            fields.nothing_else();
        }
    }

    template <typename T>
    static constexpr Whole kWhole{0, std::min<std::uint64_t>(std::numeric_limits<T>::max(), INT64_MAX)};

    const json& object_;
    std::vector<std::string_view> asked_;
};

}  // namespace hydra
