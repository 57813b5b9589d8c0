// The user's Kafka properties (--kafka-prop key=value) in librdkafka's names. (Python:
// hydra/kafkatest/properties.py.)
#pragma once

#include <map>
#include <string>

namespace hydra {

using Properties = std::map<std::string, std::string>;

// The properties with the Java client's names translated. TransportError: one is unknown, or only Hydra may
// set it. No text contains a value: it may be a password.
Properties librdkafka_properties(const Properties& given);

}  // namespace hydra
