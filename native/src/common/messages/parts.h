// The parts of messages, and how messages are described. docs/control-protocol.md has their fields; one
// description in C++ gives both the encoder (json_writer.h) and the decoder (json_reader.h).
//
// `describe(it, fields)` names every field in the order in which it is written: `required`, or `optional`,
// which keeps the member's default if the field is missing. The member's type decides how it is written; a
// std::optional may be null; with `present` it is left out instead. Whole numbers are at least 0 and at most
// what their type and 63 bits hold, unless a limit is given; numbers with a fraction always have a limit.
// message_writer.cc and message_reader.cc handle `type`, `ids` and `seq`, which all messages have.
//
// A type that is written as an array of a few different values has their number in `kItems`, and names them
// in order with `items(it, each)`.
#pragma once

#include <array>
#include <cfloat>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace hydra {

using Id = std::uint32_t;
using Ids = std::vector<Id>;  // rising; written as numbers, with pairs for runs

// The version of the protocol, in `hello` and `welcome`.
inline constexpr int kVersion = 3;
inline constexpr std::size_t kMaxMessageBytes = 512 * 1024;
// Longest second frame of a batch.
inline constexpr std::size_t kMaxPayloadBytes = 4 * 1024 * 1024;
inline constexpr std::size_t kMaxTextCharacters = 4096;
inline constexpr std::size_t kMaxIds = 1'000'000;
inline constexpr std::size_t kMaxMissingRanges = 256;
inline constexpr std::size_t kMaxUnacknowledgedRanges = 4096;
inline constexpr std::size_t kMaxAbsent = 1024;
inline constexpr std::size_t kLagBins = 20;
inline constexpr std::int64_t kMaxFileBytes = 65'536;
inline constexpr std::size_t kMaxTextBytes = 256 * 1024;
inline constexpr std::int64_t kMaxDataMessageBytes = 64 * 1024 * 1024;
inline constexpr std::int64_t kMaxTopics = 10'000;
inline constexpr std::int64_t kMaxKeys = 10'000;
inline constexpr std::int64_t kMaxRatePpb = 10'000'000;
inline constexpr std::uint32_t kProbeEpoch = 0;

// --- limits -------------------------------------------------------------------------------------------

struct Whole {
    std::int64_t least = 0;
    std::int64_t most = INT64_MAX;
};

struct Number {
    double least;
    double most;
};

using OneOf = std::initializer_list<std::string_view>;

// A number, or the word "max" for none.
struct OrMax {
    Number limit;
};

inline constexpr Whole kSigned{INT64_MIN, INT64_MAX};
inline constexpr Number kSeconds{0, 1e9};
inline constexpr Number kAboveZero{DBL_TRUE_MIN, DBL_MAX};

// --- parts of messages --------------------------------------------------------------------------------

enum class Role { publisher, subscriber };

// The words of an enumeration, in its order.
constexpr std::array<const char*, 2> words(Role) {
    return {"publisher", "subscriber"};
}

template <typename T>
concept Items = requires { T::kItems; };

// First and last sequence, both included. Ranges in a list rise.
struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    bool operator==(const Range&) const = default;

    static constexpr std::size_t kItems = 2;
    static void items(auto& it, const auto& each) {
        each(it.first);
        each(it.last);
    }
};

// An object that only the system under test interprets: a JSON object, or nothing (null). system_fields.h
// converts it to a system's own type.
class SystemObject {
  public:
    SystemObject() = default;
    explicit SystemObject(const nlohmann::json& object);

    [[nodiscard]] explicit operator bool() const { return object_ != nullptr; }
    // Only if there is an object.
    [[nodiscard]] const nlohmann::json& json() const { return *object_; }
    bool operator==(const SystemObject& other) const;

  private:
    std::shared_ptr<const nlohmann::json> object_;  // immutable, so copies of commands are cheap
};

}  // namespace hydra
