"""What librdkafka's errors mean: which of them another attempt does not repair."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from hydra.kafkatest.librdkafka import Complaint

LOST = KafkaError(KafkaError._TRANSPORT, "h:1/1: Disconnected")


@pytest.mark.parametrize(
    ("alert", "final"),
    [("sslv3 alert bad certificate", True), ("tlsv1 alert unknown ca", True), ("tlsv1 alert internal error", False)],
)
def test_an_alert_about_the_clients_certificate_is_final(alert: str, final: bool) -> None:
    complaint = Complaint()
    words = f"ssl://h:1/1: Disconnected: error:0A000412:SSL routines::{alert}: SSL alert number 42"
    complaint(KafkaError(KafkaError._TRANSPORT, words))
    assert complaint.explain(OSError()) == f"TLS: {words}"
    complaint(LOST)
    assert complaint.refused is final
    assert (complaint.error is LOST) is not final
