// Which of librdkafka's errors mean that a client can do nothing more.
#pragma once

#include <librdkafka/rdkafka.h>

namespace hydra {

// Errors that the library mends by itself, or that pass when the broker is back.
bool is_transient(rd_kafka_resp_err_t error);

}  // namespace hydra
