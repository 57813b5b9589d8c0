// The systems that this program offers: those of CMakeLists.txt whose libraries were there when it was built.
#pragma once

#include "common/options.h"

namespace hydra {

Systems offered_systems();

}  // namespace hydra
