// Which of librdkafka's errors mean that a client can do nothing more, and what they mean in words.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>

namespace hydra {

// Errors that the library recovers from by itself, or that pass when the broker is back.
bool is_transient(rd_kafka_resp_err_t error);

// What a member of a group meets while partitions change hands, while its coordinator moves, or where another
// broker has not heard of the topic yet.
bool is_group_move(rd_kafka_resp_err_t error);

// Errors that a second attempt would only repeat: the cluster refuses us, or we refuse it.
bool is_refusal(rd_kafka_resp_err_t error);

// librdkafka's words, with what it cannot know: that it is too old for what was asked of it.
std::string explained(rd_kafka_resp_err_t error, const std::string& words);

// The most telling error of those that librdkafka reported, where its own answer only says that time is over.
class Complaint {
  public:
    void take(rd_kafka_resp_err_t error, const char* words);

    [[nodiscard]] bool refused() const { return is_refusal(error_); }
    [[nodiscard]] const std::string& words() const { return words_; }  // or ""

  private:
    rd_kafka_resp_err_t error_ = RD_KAFKA_RESP_ERR_NO_ERROR;
    std::string words_;
};

}  // namespace hydra
