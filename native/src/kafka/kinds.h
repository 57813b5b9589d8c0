// The Kafka clients that this program offers.
#pragma once

#include <vector>

#include "common/transport.h"

namespace hydra {

void add_kafka_kinds(std::vector<Kind>& kinds);

}  // namespace hydra
