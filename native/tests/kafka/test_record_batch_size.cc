#include <doctest/doctest.h>

#include "kafka/record_batch_size.h"

using namespace hydra;

TEST_CASE("a batch has the length in docs/kafka.md") {
    CHECK(record_batch_bytes(100, 24) == 3'197);
    CHECK(record_batch_bytes(200, 100) == 21'997);
    CHECK(record_batch_bytes(500, 1'000) == 504'997);
    CHECK(record_batch_bytes(1'000, 24) == 31'997);
    CHECK(record_batch_bytes(2'000, 100) == 219'997);
    CHECK(record_batch_bytes(5'000, 1'000) == 5'049'997);
    CHECK(record_batch_bytes(1'000, 100, 1) == 109'997 + 1'000);
    CHECK(record_batch_bytes(1'000, 100, 10'000) == 109'997 + 4'000);
    CHECK(record_batch_bytes(UINT64_MAX, 67'108'864) == INT32_MAX);
}

TEST_CASE("librdkafka gets some slack with a derived batch; one that was set ends by its bytes alone") {
    KafkaSettings settings;
    CHECK(batch_limits(settings, 24).batch_bytes == 3'197 + 512);
    CHECK(batch_limits(settings, 24).batch_messages == 100);
    CHECK(batch_limits(settings, 24).request_bytes == 1'000'000);
    CHECK(batch_limits(settings, 24).queue_messages == 100'000);
    settings.batch_bytes = 4096;
    CHECK(batch_limits(settings, 24).batch_bytes == 4096);
    CHECK(batch_limits(settings, 24).batch_messages == 1'000'000);
}

TEST_CASE("no limit is beyond what librdkafka takes") {
    KafkaSettings settings;
    settings.msg_batch = UINT64_MAX;
    const BatchLimits limits = batch_limits(settings, 67'108'864);
    CHECK(limits.batch_bytes == INT32_MAX);
    CHECK(limits.batch_messages == 1'000'000);
    CHECK(limits.request_bytes == 1'000'000'000);
    CHECK(limits.queue_messages == 10'000'000);
}
