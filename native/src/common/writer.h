// Writes what messages.h describes as JSON.
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "common/messages.h"

namespace hydra {

// Adds the fields of one object, in the order of its description.
class Writer {
  public:
    using json = nlohmann::ordered_json;

    explicit Writer(json& object) : object_(object) {}

    // Limits are the reader's business.
    void required(const char* name, const auto& value, const auto&...) { object_[name] = written(value); }

    void optional(const char* name, const auto& value, const auto&...) { required(name, value); }

    void optional(const char* name, const std::optional<double>& value, const OrMax&) {
        object_[name] = value ? json(*value) : json("max");
    }

    template <typename... Types>
    void either(const std::array<const char*, sizeof...(Types)>& names, const std::variant<Types...>& value) {
        for (const char* name : names) {
            object_[name] = nullptr;
        }
        object_[names[value.index()]] = std::visit([](const auto& it) { return written(it); }, value);
    }

  private:
    static json written(std::integral auto value) { return value; }
    static json written(double value) { return value; }
    static json written(const std::string& value) { return value; }
    static json written(const std::map<std::string, std::string>& value) { return value; }
    static json written(const std::vector<std::uint64_t>& values) { return values; }
    static json written(const Range& range) { return json::array({range.first, range.last}); }
    static json written(const Interval& it) { return json::array({it.begin_ns, it.end_ns}); }

    template <typename T>
    static json written(const std::optional<T>& value) {
        return value ? written(*value) : json(nullptr);
    }

    template <typename T>
    static json written(const std::vector<T>& values) {
        json::array_t all;
        all.reserve(values.size());
        for (const T& value : values) {
            all.push_back(written(value));
        }
        return all;
    }

    static json written(const Offsets& offsets) {
        json all = json::object();
        for (const auto& [partition, offset] : offsets) {
            all[std::to_string(partition)] = offset;
        }
        return all;
    }

    template <typename T>
        requires std::is_enum_v<T>
    static json written(T value) {
        return words(value)[static_cast<std::size_t>(value)];
    }

    // An object that describes itself.
    template <typename T>
        requires std::is_class_v<T>
    static json written(const T& value) {
        json object = json::object();
        Writer fields(object);
        T::describe(value, fields);
        return object;
    }

    json& object_;
};

}  // namespace hydra
