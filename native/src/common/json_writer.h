// Writes the described messages as JSON.
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"

namespace hydra {

// Adds the fields of one object, in the order of its description.
class JsonWriter {
  public:
    using json = nlohmann::ordered_json;

    explicit JsonWriter(json& object) : object_(object) {}

    // The reader checks limits.
    void required(const char* name, const auto& value, const auto&...) { object_[name] = written(value); }

    void optional(const char* name, const auto& value, const auto&...) { required(name, value); }

    void optional(const char* name, const std::optional<double>& value, const OrMax&) {
        object_[name] = value ? json(*value) : json("max");
    }

    // A field that is left out if it has no value.
    template <typename T>
    void present(const char* name, const std::optional<T>& value) {
        if (value) {
            required(name, *value);
        }
    }

  private:
    static json written(std::nullptr_t) { return nullptr; }
    static json written(std::integral auto value) { return value; }
    static json written(double value) { return value; }
    static json written(const std::string& value) { return value; }
    static json written(const std::vector<std::int64_t>& values) { return values; }

    template <typename T>
    static json written(const std::map<std::string, T>& values) {
        json object = json::object();
        for (const auto& [key, value] : values) {
            object[key] = written(value);
        }
        return object;
    }

    template <Items T>
    static json written(const T& value) {
        json all = json::array();
        T::items(value, [&](const auto& item, const auto&...) { all.push_back(written(item)); });
        return all;
    }

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

    // Runs of two or more as pairs.
    static json written(const Ids& ids) {
        json all = json::array();
        for (std::size_t first = 0, i = 0; i < ids.size(); ++i) {
            if (i + 1 < ids.size() && ids[i + 1] == ids[i] + 1) {
                continue;
            }
            all.push_back(first == i ? json(ids[i]) : json::array({ids[first], ids[i]}));
            first = i + 1;
        }
        return all;
    }

    static json written(const SystemObject& system) { return system ? json(system.json()) : json(nullptr); }

    template <typename T>
        requires std::is_enum_v<T>
    static json written(T value) {
        return words(value)[static_cast<std::size_t>(value)];
    }

    // An object that describes itself.
    template <typename T>
        requires(std::is_class_v<T> && !Items<T>)
    static json written(const T& value) {
        json object = json::object();
        JsonWriter fields(object);
        T::describe(value, fields);
        return object;
    }

    json& object_;
};

}  // namespace hydra
