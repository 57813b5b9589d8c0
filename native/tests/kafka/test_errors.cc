#include <doctest/doctest.h>

#include "kafka/errors.h"

using namespace hydra;

namespace {

Complaint after(const char* alert) {
    Complaint complaint;
    const std::string words = std::string("ssl://h:1/1: Disconnected: error:0A000412:SSL routines::") + alert;
    complaint.take(RD_KAFKA_RESP_ERR__TRANSPORT, words.c_str());
    complaint.take(RD_KAFKA_RESP_ERR__TRANSPORT, "h:1/1: Disconnected");
    return complaint;
}

}  // namespace

TEST_CASE("an alert about the client's certificate is final, and is kept") {
    CHECK(after("sslv3 alert bad certificate: SSL alert number 42").refused());
    CHECK(after("tlsv1 alert unknown ca: SSL alert number 48").words().find("TLS: ") == 0);
}

TEST_CASE("after another alert the client tries again") {
    const Complaint complaint = after("tlsv1 alert internal error: SSL alert number 80");
    CHECK(!complaint.refused());
    CHECK(complaint.words() == "network: h:1/1: Disconnected");
}
