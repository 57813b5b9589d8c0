// What librdkafka's errors mean for a client: whether it can continue, and an explanation.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>

namespace hydra {

// Errors from which the library recovers by itself, or that end when the broker works again.
bool is_transient(rd_kafka_resp_err_t error);

// Errors of a consumer group's member while partitions move, while its coordinator moves, or if another
// broker does not know the topic yet.
bool is_group_move(rd_kafka_resp_err_t error);

// Whether a second attempt would only repeat the error: the cluster rejects the client, or the client rejects
// the cluster.
bool is_refusal(rd_kafka_resp_err_t error, const std::string& words);

// librdkafka's text, after "TLS: ", "login: " or "network: " if a connection failed there; with an addition
std::string explained(rd_kafka_resp_err_t error, const std::string& words);

// The most informative error that librdkafka reported, used when its own result is only a timeout.
class Complaint {
  public:
    void take(rd_kafka_resp_err_t error, const char* words);

    [[nodiscard]] bool refused() const { return is_refusal(error_, words_); }
    [[nodiscard]] const std::string& words() const { return words_; }  // or ""

  private:
    rd_kafka_resp_err_t error_ = RD_KAFKA_RESP_ERR_NO_ERROR;
    std::string words_;
};

}  // namespace hydra
