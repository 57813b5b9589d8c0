// The `system` object of a message as its system's own type: a struct that describes its fields, like
// messages.
#pragma once

#include "common/json_reader.h"
#include "common/json_writer.h"
#include "common/transport.h"

namespace hydra {

// The object of a command; null is read as an empty object. TransportError: a field is unknown, is missing or
// cannot have this value; the text names it.
template <typename T>
T read_system(const SystemObject& system) {
    const nlohmann::json nothing = nlohmann::json::object();
    T it;
    try {
        JsonReader fields(system ? system.json() : nothing);
        T::describe(it, fields);
        fields.nothing_else();
    } catch (const ProtocolError& e) {
        throw TransportError(std::string("in the system's part of the command: ") + e.what());
    }
    return it;
}

// The object of a report.
template <typename T>
SystemObject written_system(const T& it) {
    JsonWriter::json object = JsonWriter::json::object();
    JsonWriter fields(object);
    T::describe(it, fields);
    return SystemObject(nlohmann::json(object));
}

}  // namespace hydra
