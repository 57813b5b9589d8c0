"""The brokers' own metrics: the exporter's text, and a real broker's counters beside what was sent to it."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from hydra.client.server_interface import free_ports
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.metrics import ask, exporters, figures, named
from hydra.kafkatest.topics import Topics
from tests.suite.waiting import SOON_S

TEXT = """# HELP kafka_server_brokertopicmetrics_bytesin_total of all topics
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total{topic="a b}c"} 7.0
kafka_server_brokertopicmetrics_bytesin_total 1.5E3
kafka_server_brokertopicmetrics_bytesout_total NoNumber
jvm_memory_used_bytes{area="heap"} 5.0E7
jvm_memory_used_bytes{area="nonheap"} 2.0E7
jvm_gc_collection_seconds_sum{gc="G1 Old Generation"} 0.5
jvm_gc_collection_seconds_sum{gc="G1 Young Generation"} 0.25
jvm_gc_collection_seconds_count{gc="G1 Young Generation"} 2
process_cpu_seconds_total 12.25 1700000000000
"""


def test_the_exporters_text_is_read() -> None:
    assert figures(TEXT) == {
        "in_bytes_total": 1500.0,
        "heap_bytes": 5e7,
        "gc_seconds_total": 0.75,
        "cpu_seconds_total": 12.25,
    }


@pytest.mark.parametrize("text", ["", "<html>no metrics</html>", "up 1"])
def test_who_knows_none_of_it_tells_nothing(text: str) -> None:
    assert figures(text) == {}


@pytest.mark.tier("test")
def test_a_broker_counts_the_bytes_and_messages_that_it_took(broker: LocalBroker, topics: Topics) -> None:
    count, size = 1000, 1000
    topic = topics.create("measured")
    before = ask(exporters(broker.endpoints()))["broker 1"]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "none", "linger.ms": 50})
    for _ in range(count):
        producer.produce(topic, value=bytes(size))
        producer.poll(0)
    assert producer.flush(SOON_S) == 0
    after = ask(exporters(broker.endpoints()))["broker 1"]
    grown = {name: value - before.get(name, 0.0) for name, value in after.items()}
    assert grown["messages_total"] == count
    # A record of this size has 8 to 12 bytes of its own, and a batch 61.
    assert count * size < grown["in_bytes_total"] < 1.03 * count * size
    assert grown["out_bytes_total"] == 0
    assert grown["cpu_seconds_total"] > 0
    # A broker that does not answer is left out, and does not delay the others.
    (address,) = exporters(broker.endpoints()).values()
    (none,) = free_ports("127.0.0.1", 1)
    assert ask(named([address, f"127.0.0.1:{none}"])).keys() == {address}
