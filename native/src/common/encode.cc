#include "common/protocol.h"
#include "common/writer.h"

namespace hydra {

std::string encode(const FromClient& message, std::uint64_t seq) {
    Writer::json frame;
    std::visit(
        [&](const auto& it) {
            frame = {{"type", it.kType}, {"v", kVersion}};
            Writer fields(frame);
            fields.required("ids", it.ids);
            fields.required("seq", seq);
            it.describe(it, fields);
        },
        message);
    // A host's name or a library's text may be no UTF-8; it must not cost the client its life.
    return frame.dump(-1, ' ', false, Writer::json::error_handler_t::replace);
}

}  // namespace hydra
