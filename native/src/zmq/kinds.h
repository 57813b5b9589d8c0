// The clients of raw ZMQ that this program offers.
#pragma once

#include <vector>

#include "common/transport.h"

namespace hydra {

void add_zmq_kinds(std::vector<Kind>& kinds);

}  // namespace hydra
