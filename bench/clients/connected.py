"""Forked processes with one connection of a Python library each. Prints the mean PSS of one of them, in bytes.

Run: python -m bench.clients.connected LIBRARY PROCESSES ADDRESS [TOPIC]
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from bench.clients.forks import pss_bytes
from hydra.client.linux_process import die_with_parent

_WITHIN_S: Final = 60.0

Connect = Callable[..., object]
"""Connects to an address in a fork; what it returns lives as long as the process."""


def nats_py() -> Connect:
    """A subscription of core NATS."""
    import asyncio

    import nats

    async def subscribed(address: str) -> Any:
        client = await nats.connect(f"nats://{address}")
        await client.subscribe("bench")
        await client.flush()
        return client

    def connect(address: str) -> object:
        loop = asyncio.new_event_loop()
        return loop, loop.run_until_complete(subscribed(address))

    return connect


def paho_mqtt() -> Connect:
    """A subscription, and the library's own thread."""
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    def connect(address: str) -> object:
        host, _, port = address.rpartition(":")
        client, subscribed = mqtt.Client(CallbackAPIVersion.VERSION2), threading.Event()
        client.on_connect = lambda client, *_: client.subscribe("bench")
        client.on_subscribe = lambda *_: subscribed.set()
        client.connect(host, int(port))
        client.loop_start()
        if not subscribed.wait(_WITHIN_S):
            raise TimeoutError("no answer to a subscription")
        return client

    return connect


def confluent() -> Connect:
    """A consumer that has asked the leader of a partition for its offsets."""
    import confluent_kafka

    def connect(address: str, topic: str) -> object:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "bench"})
        consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), _WITHIN_S)
        return consumer

    return connect


def kafka_python() -> Connect:
    """The same."""
    import kafka

    def connect(address: str, topic: str) -> object:
        consumer = kafka.KafkaConsumer(bootstrap_servers=address)
        consumer.end_offsets([kafka.TopicPartition(topic, 0)])
        return consumer

    return connect


LIBRARIES: Final[Mapping[str, Callable[[], Connect]]] = {
    "nats-py": nats_py,
    "paho-mqtt": paho_mqtt,
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
}
"""Each imports its library before the processes are forked, and returns how one of them connects."""


def main(library: str, processes: int, *where: str) -> None:
    """Forks, waits until all are connected, and measures."""
    connect, parent, (connected, report) = LIBRARIES[library](), os.getpid(), os.pipe()
    children: list[int] = []
    for _ in range(processes):
        if pid := os.fork():
            children.append(pid)
            continue
        die_with_parent(parent)
        _held = connect(*where)
        os.write(report, b".")
        while True:
            signal.pause()
    left = processes
    while left:
        left -= len(os.read(connected, left))
    print(sum(map(pss_bytes, children)) / processes, flush=True)
    os._exit(0)  # without the goodbye of connections


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
