// The systems of this program: those in CMakeLists.txt whose libraries were installed when it was built.
#pragma once

#include "common/options.h"

namespace hydra {

Systems offered_systems();

}  // namespace hydra
