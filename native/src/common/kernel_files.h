// Reads files of the kernel for a record of the machine, which the controller makes from their texts.
#pragma once

#include <cstdint>

#include "common/messages/from_client.h"
#include "common/messages/from_controller.h"

namespace hydra {

// The answer to `look`. A pattern that names other files than those of the kernel matches nothing; the text
// of a file that cannot be read is empty.
KernelTexts kernel_texts(const Look& look, const Ids& ids, std::int64_t now_ns);

}  // namespace hydra
