"""Kafka at the highest rate: Hydra's clients, bare loops of the same libraries, and Kafka's own tools.

All use one broker started by Hydra, and the same settings: records of 100 bytes, acks 1, batches of 16,384 bytes,
linger 5 ms, one partition. Hydra's clients run over the real control channel, and their figures are from their reports.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from bench import memory, programs
from bench.clients.kafka_loop import MODULES, OWN, RECORD_BYTES, Role
from hydra.control.controller import Controller
from hydra.control.roster import EpochReplies
from hydra.errors import HydraError
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.jars import fetch, find_java
from hydra.kafkatest.property_table import PROPERTIES, alike
from hydra.kafkatest.settings import KafkaSettings
from hydra.kafkatest.topics import Topics
from hydra.kafkatest.transport_base import fetch_config
from hydra.model import ProcessUsage, PublisherReport, SharedSettings
from hydra.wire.clock import wall_offset_ns
from hydra.wire.messages import (
    Configure,
    Finish,
    FromController,
    HostClock,
    PublisherEndpoint,
    PublisherTotal,
    Start,
    Stop,
)
from hydra.wire.subscriber_table import SubscriberTable

SECONDS: Final = 2.0
NATIVE: Final = "native"
LOG_RECORDS: Final[Mapping[str, int]] = {NATIVE: 6_000_000, "confluent-kafka": 1_000_000, "kafka-python": 100_000}
"""Records that one consumer of each implementation reads: one to three seconds of reading."""
MANY_RECORDS: Final = 10_000_000
"""Records that many consumers read together."""
_MANY_WITHIN_S: Final = 420.0
"""The time limit of many bare consumers, which connect within 300 s and read within 100 s (bare_consumers.cc)."""
_FEW_RECORDS: Final = 50_000
"""Any publisher sends this number in a fraction of a second."""
_JAVA_RECORDS: Final = (4_000_000, 1_000_000)
"""Records that ProducerPerformance sends, and the number of them that warm it up."""
_JAVA_OPTIONS: Final = ("-Xmx512m", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""Options that Kafka's own scripts give their tools."""
_FIRST: Final = 1
"""The id of the first client, and of the publisher that wrote the log."""
_SHARED: Final = SharedSettings(rate="max", burst=OWN["msg_batch"], message_size=RECORD_BYTES)


class Throughput(NamedTuple):
    """Messages/s of all clients together, and what a message took of a client's CPU."""

    rate_pps: float
    cpu_us: float


class _Log(NamedTuple):
    """A topic with messages of one step."""

    kafka: dict[str, Any]
    epoch: int
    records: int


def lacks_java() -> str:
    """What the broker needs and this machine lacks."""
    try:
        find_java()
    except HydraError:
        return "Java"
    return ""


def lacks_native() -> str:
    """What the broker and the native clients need and this machine lacks."""
    return " ".join(filter(None, (lacks_java(), programs.lacks())))


class Kafka:
    """A broker, and the measurements that use it; between ``with`` only."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self._bootstrap = ""
        self._topics: Topics | None = None
        self._logs: dict[str, _Log] = {}
        self._made = 0

    def __enter__(self) -> Kafka:
        folder = Path(self._running.enter_context(tempfile.TemporaryDirectory()))
        self._bootstrap = self._running.enter_context(LocalBroker(folder / "broker")).bootstrap
        self._topics = Topics(self._bootstrap, {}, "bench")
        self._running.callback(self._topics.end)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._logs.clear()
        self._running.close()

    def producer(self, implementation: str) -> Throughput:
        """Hydra's publisher: acknowledged messages/s."""
        with self._warm_topic() as kafka, _Clients(_program(implementation), "kafka-pub") as publisher:
            report = publisher.produce(kafka, 1, SECONDS)
        if report.acknowledged != report.sent:
            raise RuntimeError(f"{report.acknowledged} of {report.sent} messages acknowledged")
        rate_pps = (report.acknowledged - 1) / (report.last_ns - report.first_ns) * 1e9
        return Throughput(rate_pps, _cpu_us(report.usage, report.sent))

    def bare_producer(self, implementation: str) -> Throughput:
        """The bare loop of the same library."""
        with self._warm_topic() as kafka:
            return self._loop("producer", implementation, kafka["topic"], SECONDS, _PRODUCER)

    def tool_producer(self) -> float:
        """ProducerPerformance."""
        records, warmup = _JAVA_RECORDS
        with self._warm_topic() as kafka:
            output = _java(
                "ProducerPerformance",
                *("--bootstrap-server", self._bootstrap, "--topic", kafka["topic"]),
                *("--num-records", str(records), "--warmup-records", str(warmup)),
                *("--record-size", str(RECORD_BYTES), "--throughput", "-1", "--command-property", "acks=1"),
                *(f"batch.size={OWN['batch_bytes']}", f"linger.ms={OWN['linger_ms']:.0f}"),
            )
        return float(re.findall(r"([\d.]+) records/sec", output)[-1])

    def consumer(self, implementation: str) -> Throughput:
        """Hydra's subscriber: messages/s from its first batch to its last."""
        log = self._log(implementation, LOG_RECORDS[implementation])
        with _Clients(_program(implementation), "kafka-sub") as subscriber:
            report = subscriber.consume(log).report(_FIRST)
        (ledger,) = report.ledgers
        if ledger.missing or ledger.duplicates:
            raise RuntimeError(f"not every message: {ledger}")
        received = ledger.received + ledger.extra
        rate_pps = (received - report.first_batch) / (report.last_ns - report.first_ns) * 1e9
        return Throughput(rate_pps, _cpu_us(report.usage, received))

    def bare_consumer(self, implementation: str) -> Throughput:
        """The bare loop of the same library."""
        log = self._log(implementation, LOG_RECORDS[implementation])
        return self._loop("consumer", implementation, log.kafka["topic"], log.records, _CONSUMER)

    def tool_consumer(self) -> float:
        """ConsumerPerformance."""
        log = self._log(NATIVE, LOG_RECORDS[NATIVE])
        output = _java(
            "ConsumerPerformance",
            *("--bootstrap-server", self._bootstrap, "--topic", log.kafka["topic"]),
            *("--num-records", str(log.records), "--hide-header"),
        )
        return float(output.strip().splitlines()[-1].split(",")[-1])  # fetch.nMsg.sec

    def consumers(self, count: int) -> Throughput:
        """Native subscribers that all read the same log, one to a process."""
        log = self._log(f"{count}", MANY_RECORDS // count)
        with _Clients(_program(NATIVE), "kafka-sub", count) as subscribers:
            subscribers.connect({**log.kafka, "offsets": {0: log.records}})
            table = subscribers.consume(log)
        received = int(table.received.sum() + table.extra.sum())
        if received < count * log.records:
            raise RuntimeError(f"{received} of {count * log.records} messages")
        took_s = (table.last_ns.max() - table.first_ns.min()) / 1e9
        cpu_s = (table.cpu_user_s + table.cpu_system_s).sum()
        return Throughput(float(received / took_s), float(cpu_s * 1e6 / received))

    def bare_consumers(self, count: int) -> Throughput:
        """Bare loops of librdkafka that all read the same log, one to a process."""
        return Throughput(*self._bare_consumers(self._log(f"{count}", MANY_RECORDS // count), count)[:2])

    def connected_mb(self, implementation: str) -> float:
        """Mean PSS of forked processes with one connected consumer of a library each, MB."""
        log = self._log("a few", 1000)
        if implementation == NATIVE:
            return self._bare_consumers(log, memory.CLIENTS)[2] / 1e6
        return memory.bare_python_at(implementation, self._bootstrap, log.kafka["topic"])

    def _bare_consumers(self, log: _Log, count: int) -> list[float]:
        program = programs.bare("kafka/bare-consumers")
        words = (count, self._bootstrap, log.kafka["topic"], log.records, *_CONSUMER)
        return programs.numbers(program, *words, within_s=_MANY_WITHIN_S)

    @contextmanager
    def _warm_topic(self) -> Iterator[dict[str, Any]]:
        """A new topic of a broker that has written a log before: Java compiles what a new broker does often."""
        self._log(NATIVE, LOG_RECORDS[NATIVE])
        with self._topic() as kafka:
            yield kafka

    @contextmanager
    def _topic(self) -> Iterator[dict[str, Any]]:
        """A new topic with one partition, which is deleted at the end."""
        assert self._topics is not None
        self._made += 1
        name = self._topics.create(f"t{self._made}")
        try:
            yield {"bootstrap": self._bootstrap, "topic": name, "offsets": {0: 0}}
        finally:
            self._topics.delete(name)

    def _log(self, name: str, records: int) -> _Log:
        """The log that the consumers of this name read; it is written when it is first needed."""
        if name not in self._logs:
            self._logs[name] = self._written(records)
        return self._logs[name]

    def _written(self, records: int) -> _Log:
        """A topic with this number of messages of Hydra's publisher, which subscribers' ledgers count.

        With more, consumers would fetch more than they read, and those that wait at the end would not wait.
        """
        epoch, seconds = 2, 0.2 if records < _FEW_RECORDS else 2 * SECONDS
        # A native publisher is the fastest.
        program = _program("confluent-kafka" if programs.lacks() else NATIVE)
        with _Clients(program, "kafka-pub") as publisher:
            while True:
                with ExitStack() as topics:
                    kafka = topics.enter_context(self._topic())
                    if publisher.produce(kafka, epoch, seconds, records).acknowledged == records:
                        self._running.push(topics.pop_all())
                        return _Log(kafka, epoch, records)
                epoch, seconds = epoch + 1, 2 * seconds

    def _loop(self, role: Role, implementation: str, topic: str, last: float, properties: Sequence[str]) -> Throughput:
        """A bare loop in a process of its own; that of a Python library knows its properties."""
        words: list[str | Path | float]
        if implementation == NATIVE:
            words = [programs.bare(f"kafka/bare-{role}"), self._bootstrap, topic, last, *properties]
        else:
            loop = [sys.executable, "-m", "bench.clients.kafka_loop", role, implementation]
            words = [*loop, self._bootstrap, topic, last]
        return Throughput(*programs.numbers(*words))


class _Clients:
    """Clients of a kind, one to a process, over the real control channel.

    Arguments:
        program: their command without arguments.
        kind: their kind.
        count: how many.
    """

    def __init__(self, program: Sequence[str | Path], kind: str, count: int = 1) -> None:
        # Nothing reads the channel while Hydra waits for another process.
        self._controller = Controller("bench", silence_s=0)
        self._ids = list(range(_FIRST, _FIRST + count))
        self._lifeline = os.pipe()
        self._controller.roster.expect("g", self._ids)
        own = {"HYDRA_LIFELINE": str(self._lifeline[0]), "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **self._controller.environment, **own}
        arguments = [kind, "--group", "g", "--first-id", str(_FIRST), "--count", str(count)]
        self._group = subprocess.Popen([*program, *arguments], env=environment, pass_fds=(self._lifeline[0],))
        present = self._controller.roster.present
        self._await(lambda: len(present()) == count, "hello")

    def produce(
        self, kafka: Mapping[str, Any], epoch: int, seconds: float, messages: int | None = None
    ) -> PublisherReport:
        """Sends as fast as it can, at most ``messages``."""
        answers = self._begin(epoch)
        self._await(self._configured(answers), "the configuration", _configure(kafka, epoch, [], messages))
        window = _window(epoch, seconds)
        end_ns = window.stop_at_ns - window.clock.step_ns
        self._await(lambda: time.monotonic_ns() > end_ns, "the end of the window", window)
        stop = Stop(epoch=epoch, number=3, stop_at_ns=window.stop_at_ns)
        self._await(lambda: answers.publisher_reports, "the publisher's report", stop)
        return answers.publisher_reports[_FIRST]

    def connect(self, kafka: Mapping[str, Any]) -> None:
        """Connects, in a first step without messages."""
        answers = self._begin(1)
        self._await(self._configured(answers), "the connection", _configure(kafka, 1, []))

    def consume(self, log: _Log) -> SubscriberTable:
        """Reads the log; returns the reports."""
        answers = self._begin(log.epoch)
        # A client reads from its configuration on, and measures CPU and latency from its start: both are sent at once.
        self._controller.send_to(self._ids, _configure(log.kafka, log.epoch, [PublisherEndpoint(_FIRST)]))
        self._await(self._configured(answers), "the configuration", _window(log.epoch, 0.0))
        finish = Finish(
            epoch=log.epoch,
            number=4,
            publishers=[PublisherTotal(publisher=_FIRST, sent=log.records)],
            drain_max_s=60.0,
            system={"end_offsets": {0: log.records}},
        )
        count = len(self._ids)
        self._await(lambda: len(answers.subscriber_reports.ids) == count, "the subscribers' reports", finish)
        return answers.subscriber_reports.table()

    def _begin(self, epoch: int) -> EpochReplies:
        self._controller.roster.begin(epoch)
        return self._controller.roster.answers

    def _configured(self, answers: EpochReplies) -> Callable[[], bool]:
        return lambda: len(answers.acked(1)) == len(self._ids)

    def _await(self, condition: Callable[[], object], what: str, command: FromController | None = None) -> None:
        if command is not None:
            self._controller.send_to(self._ids, command)
        errors = self._controller.roster.answers.errors
        if not self._controller.wait_until(lambda: bool(condition() or errors), 90) or errors:
            raise RuntimeError(f"{what}: {errors or 'no answer'}")

    def __enter__(self) -> _Clients:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._controller.quit()
        self._controller.wait_until(lambda: self._group.poll() is not None, 20)
        for end in self._lifeline:
            os.close(end)
        self._controller.close()


def _configure(
    kafka: Mapping[str, Any], epoch: int, publishers: list[PublisherEndpoint], messages: int | None = None
) -> Configure:
    settings = replace(_SHARED, messages=messages)
    return Configure(
        epoch=epoch, number=1, settings=settings, publishers=publishers, probe=False, system={**OWN, **kafka}
    )


def _window(epoch: int, seconds: float) -> Start:
    """A window that begins within 50 ms."""
    offset = wall_offset_ns()
    begin = time.monotonic_ns() + offset + 50_000_000
    clock = HostClock(at_ns=0, step_ns=offset)
    return Start(epoch=epoch, number=2, start_at_ns=begin, stop_at_ns=begin + int(seconds * 1e9), clock=clock)


def _cpu_us(usage: ProcessUsage, messages: int) -> float:
    return (usage.cpu_user_s + usage.cpu_system_s) * 1e6 / messages


def _program(implementation: str) -> Sequence[str | Path]:
    return [programs.client()] if implementation == NATIVE else [sys.executable, "-m", MODULES[implementation]]


_PRODUCER: Final = (
    f"batch.size={OWN['batch_bytes']}",
    f"batch.num.messages={OWN['msg_batch']}",
    f"linger.ms={OWN['linger_ms']}",
    "acks=1",
    f"max.in.flight={KafkaSettings().max_in_flight}",
    f"queue.buffering.max.kbytes={KafkaSettings().buffer_memory // 1024}",
    f"delivery.timeout.ms={KafkaSettings().delivery_timeout_ms}",
    *(f"{name}={value}" for name, value in alike("publisher").items() if not PROPERTIES[name].since),
)
_CONSUMER: Final = (
    *(f"{name}={value}" for name, value in fetch_config(KafkaSettings()).items()),
    *(f"{name}={value}" for name, value in alike("subscriber").items() if not PROPERTIES[name].since),
)


def _java(tool: str, *arguments: str) -> str:
    """Runs one of Kafka's tools; returns what it prints.

    Raises:
        RuntimeError: it failed.
    """
    command = [find_java().program, *_JAVA_OPTIONS, "-cp", fetch().classpath, f"org.apache.kafka.tools.{tool}"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{tool}: {done.stderr[-500:]}")
    return done.stdout
