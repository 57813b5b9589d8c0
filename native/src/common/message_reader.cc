#include "common/json_reader.h"
#include "common/protocol.h"

namespace hydra {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;

// Reads the message type that has this name.
template <typename... Messages>
void read_as(const std::string& type, JsonReader& fields, std::variant<Messages...>& message) {
    const auto try_as = [&]<typename Message>(Message it) {
        if (type != Message::kType) {
            return false;
        }
        fields.optional("ids", it.ids);
        if constexpr (std::is_same_v<std::variant<Messages...>, FromClient>) {
            std::uint64_t seq = 0;
            fields.required("seq", seq, Whole{1});
        }
        Message::describe(it, fields);
        message = std::move(it);
        return true;
    };
    if (!(try_as(Messages()) || ...)) {
        JsonReader::refuse("an unknown type of message");
    }
    fields.nothing_else();
}

// No message is nested deeply; rejecting such a frame early limits the parser's memory.
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
                JsonReader::refuse("nested too deeply");
            }
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
}

template <typename Message>
Message read_frame(std::string_view frame) {
    if (frame.size() > kMaxMessageBytes) {
        JsonReader::refuse("longer than any message may be");
    }
    check_depth(frame);
    const json value = json::parse(frame, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) {
        JsonReader::refuse("not JSON");
    }
    JsonReader fields(value);
    std::string type;
    fields.required("type", type);
    Message message;
    read_as(type, fields, message);
    return message;
}

}  // namespace

FromController decode(std::string_view frame) {
    return read_frame<FromController>(frame);
}

FromClient decode_from_client(std::string_view frame) {
    return read_frame<FromClient>(frame);
}

}  // namespace hydra
