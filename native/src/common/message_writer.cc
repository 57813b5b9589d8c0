#include "common/json_writer.h"
#include "common/protocol.h"

namespace hydra {
namespace {

using Frame = JsonWriter::json;

// A host's name or a library's text may be invalid UTF-8, which must not end the client.
std::string text_of(const Frame& frame) {
    return frame.dump(-1, ' ', false, Frame::error_handler_t::replace);
}

Frame begun(const auto& message) {
    Frame frame = {{"type", message.kType}};
    JsonWriter(frame).required("ids", message.ids);
    return frame;
}

}  // namespace

std::string encode(const FromClient& message, std::uint64_t seq) {
    return std::visit(
        [&](const auto& it) {
            Frame frame = begun(it);
            JsonWriter fields(frame);
            fields.required("seq", seq);
            it.describe(it, fields);
            return text_of(frame);
        },
        message);
}

std::string encode(const FromController& message) {
    return std::visit(
        [&](const auto& it) {
            Frame frame = begun(it);
            JsonWriter fields(frame);
            it.describe(it, fields);
            return text_of(frame);
        },
        message);
}

std::string without_ids(std::string_view frame) {
    Frame it = Frame::parse(frame);
    it.erase("ids");
    return text_of(it);
}

std::string with_ids(std::string_view frame_without, const Ids& ids) {
    Frame it = Frame::object();
    JsonWriter(it).required("ids", ids);
    std::string frame = it.dump();
    frame.back() = ',';
    return frame.append(frame_without.substr(1));
}

}  // namespace hydra
