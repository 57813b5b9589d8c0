"""A fresh broker runs on interpreted code: some thousands of messages through a topic of our own make it compile."""

from __future__ import annotations

import time
import uuid
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from hydra.errors import ServerError
from hydra.kafkatest.topics import Topics

MESSAGES: Final = 20_000
CHUNK: Final = 100
COPIES: Final = 2
"""Of each message: enough for every broker to fetch from another one. More would be sent for nothing."""


def warm_up(bootstrap: str, timeout_s: float, brokers: int = 1) -> None:
    """Sends and receives ``MESSAGES`` messages on a throwaway topic with a leader on every broker, then deletes it.

    Raises:
        ServerError: not all of them came back in ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    topics = Topics(bootstrap, {}, f"warmup-{uuid.uuid4().hex[:8]}")
    try:
        topic = topics.create("warmup", brokers, min(brokers, COPIES))
        received = _round_trip(bootstrap, topic, brokers, deadline)
    except KafkaException as e:
        raise ServerError(f"the warm-up of the broker at {bootstrap} failed: {e.args[0]}") from None
    finally:
        topics.close()
    if received < MESSAGES:
        raise ServerError(f"the broker at {bootstrap} gave back {received} of {MESSAGES} warm-up messages in time")


def _round_trip(bootstrap: str, topic: str, partitions: int, deadline: float) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 0, "batch.num.messages": CHUNK})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": "hydra-warmup",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    received = 0
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        for chunk in range(MESSAGES // CHUNK):
            for _ in range(CHUNK):
                producer.produce(topic, bytes(100), None, chunk % partitions, delivered)
            producer.poll(0)
            received += len(consumer.consume(MESSAGES, 0))
        producer.flush(max(0.0, deadline - time.monotonic()))
        while received < MESSAGES and not failures and time.monotonic() < deadline:
            received += len(consumer.consume(1, 0.1))
            received += len(consumer.consume(MESSAGES, 0))
    finally:
        consumer.close()
    if failures:
        raise KafkaException(failures[0])
    return received
