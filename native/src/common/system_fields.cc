#include <nlohmann/json.hpp>

#include "common/messages/parts.h"

namespace hydra {

SystemObject::SystemObject(const nlohmann::json& object)
    : object_(std::make_shared<const nlohmann::json>(object)) {}

bool SystemObject::operator==(const SystemObject& other) const {
    return object_ == other.object_ ||
           (object_ != nullptr && other.object_ != nullptr && *object_ == *other.object_);
}

}  // namespace hydra
