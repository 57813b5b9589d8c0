"""Why a broker or a library did not accept a message, as a word, by Kafka's error codes. Pure."""

from __future__ import annotations

from typing import Final

from hydra.model.system_reports import (
    CONNECTION_LOST,
    NO_DESTINATION,
    NO_REPLICAS,
    NO_SPACE,
    NOT_AUTHORIZED,
    OTHER,
    QUOTA,
    TIMEOUT,
    TOO_LARGE,
    FirstReason,
)

_REASONS: Final = {
    3: NO_DESTINATION,  # UNKNOWN_TOPIC_OR_PART
    7: TIMEOUT,  # REQUEST_TIMED_OUT
    10: TOO_LARGE,  # MSG_SIZE_TOO_LARGE
    13: CONNECTION_LOST,  # NETWORK_EXCEPTION
    18: TOO_LARGE,  # RECORD_LIST_TOO_LARGE
    19: NO_REPLICAS,  # NOT_ENOUGH_REPLICAS
    20: NO_REPLICAS,  # NOT_ENOUGH_REPLICAS_AFTER_APPEND
    29: NOT_AUTHORIZED,  # TOPIC_AUTHORIZATION_FAILED
    31: NOT_AUTHORIZED,  # CLUSTER_AUTHORIZATION_FAILED
    53: NOT_AUTHORIZED,  # TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    56: NO_SPACE,  # KAFKA_STORAGE_ERROR
    89: QUOTA,  # THROTTLING_QUOTA_EXCEEDED
    # librdkafka's own errors
    -195: CONNECTION_LOST,  # _TRANSPORT
    -192: TIMEOUT,  # _MSG_TIMED_OUT
    -190: NO_DESTINATION,  # _UNKNOWN_PARTITION
    -188: NO_DESTINATION,  # _UNKNOWN_TOPIC
    -187: CONNECTION_LOST,  # _ALL_BROKERS_DOWN
    -185: TIMEOUT,  # _TIMED_OUT
}


def reason(code: int, *, throttled: bool = False) -> str:
    """The word for an error code.

    Args:
        code: of the protocol, or of librdkafka's own errors.
        throttled: whether the broker delayed the producer because of a quota; then a message that timed out was
            rejected by the quota.
    """
    found = _REASONS.get(code, OTHER)
    return QUOTA if throttled and found == TIMEOUT else found


def first_reason(rejected: FirstReason, unanswered: int, throttled_ms: int) -> FirstReason:
    """The reason of a step: that of the first rejected message, or a quota if brokers only delayed their answers.

    Args:
        rejected: the first reason for which a message was rejected.
        unanswered: the messages without an answer.
        throttled_ms: the longest delay because of a quota, in ms; 0: none.
    """
    if throttled_ms and not rejected.reason:
        rejected = FirstReason()
        rejected.add(QUOTA, f"a broker delayed an answer by {throttled_ms} ms because of a quota", unanswered)
    return rejected
