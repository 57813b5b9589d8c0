"""Kafka as fast as possible: hydra-client against bare librdkafka loops that only count, and against Kafka's own tools.

100-byte records, acks 1, batches of 16,384 bytes, one partition, the embedded broker; all in turn, several rounds.
Ours runs over the real control channel, and every figure of it is from its report. The targets: 0.97 of the bare
loops; 2 times ProducerPerformance, and 1.5 times ConsumerPerformance.

Run: python bench/native_kafka.py [--rounds N] [--programs FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from hydra.control.controller import Controller
from hydra.control.roster import EpochReplies
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.jars import fetch, find_java
from hydra.kafkatest.property_table import PROPERTIES, alike
from hydra.kafkatest.settings import KafkaSettings
from hydra.kafkatest.topics import Topics
from hydra.kafkatest.transport_base import fetch_config
from hydra.model import PublisherReport, SharedSettings, SubscriberReport
from hydra.native import build
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

TREE = Path(__file__).resolve().parents[1]
SECONDS = 2.0
RECORD_BYTES = 100
BATCH_BYTES = 16_384
LINGER_MS = 5.0
"""What Kafka's own producer does if not told otherwise, so all three do it."""
MSG_BATCH = 1_000
JAVA_RECORDS = (4_000_000, 1_000_000)
"""Records that ProducerPerformance sends, and those of them that warm it up."""
LOG_RECORDS = 10_000_000
"""Records that the consumers read: two to four seconds' worth for Kafka's own."""
CLIENT = 1
SHARED = SharedSettings(rate="max", burst=MSG_BATCH, message_size=RECORD_BYTES)
OWN = {"msg_batch": MSG_BATCH, "linger_ms": LINGER_MS, "batch_bytes": BATCH_BYTES}
BARE_PRODUCER = (
    f"batch.size={BATCH_BYTES}",
    f"batch.num.messages={MSG_BATCH}",
    f"linger.ms={LINGER_MS}",
    "acks=1",
    f"max.in.flight={KafkaSettings().max_in_flight}",
    f"queue.buffering.max.kbytes={KafkaSettings().buffer_memory // 1024}",
    f"delivery.timeout.ms={KafkaSettings().delivery_timeout_ms}",
    *(f"{name}={value}" for name, value in alike("publisher").items() if not PROPERTIES[name].since),
)
BARE_CONSUMER = (
    *(f"{name}={value}" for name, value in fetch_config(KafkaSettings()).items()),
    *(f"{name}={value}" for name, value in alike("subscriber").items() if not PROPERTIES[name].since),
)
JAVA_OPTIONS = ("-Xmx512m", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""What Kafka's own scripts give their tools."""


class Client:
    """One client of a kind, over the real control channel; ``program`` is its command without arguments."""

    def __init__(self, program: Sequence[str | Path], kind: str) -> None:
        # Nobody serves the channel while another loop is measured.
        self._controller = Controller("bench", silence_s=0)
        self._lifeline = os.pipe()
        self._controller.roster.expect("g", [CLIENT])
        own = {"HYDRA_LIFELINE": str(self._lifeline[0]), "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **self._controller.environment, **own}
        arguments = [kind, "--group", "g", "--first-id", str(CLIENT), "--count", "1"]
        self._group = subprocess.Popen([*program, *arguments], env=environment, pass_fds=(self._lifeline[0],))
        present = self._controller.roster.present
        self._await(lambda: len(present()) == 1, "hello")

    def produce(self, kafka: Mapping[str, Any], epoch: int, seconds: float) -> PublisherReport:
        """Sends as fast as it can."""
        answers = self._configure(kafka, epoch, [])
        stop_ns = self._start(epoch, seconds)
        self._await(lambda: answers.publisher_reports, "the publisher's report", Stop(epoch=epoch, stop_at_ns=stop_ns))
        return answers.publisher_reports[CLIENT]

    def consume(self, kafka: Mapping[str, Any], epoch: int, sent: int) -> SubscriberReport:
        """Reads ``sent`` messages of the publisher that has the same id."""
        answers = self._configure(kafka, epoch, [PublisherEndpoint(CLIENT)])
        self._start(epoch, 0.0)
        finish = Finish(
            epoch=epoch,
            publishers=[PublisherTotal(publisher=CLIENT, sent=sent)],
            drain_max_s=60.0,
            system={"end_offsets": {0: kafka["offsets"][0] + sent}},
        )
        self._await(lambda: answers.subscriber_reports.ids, "the subscriber's report", finish)
        return answers.subscriber_reports.table().report(CLIENT)

    def _configure(self, kafka: Mapping[str, Any], epoch: int, publishers: list[PublisherEndpoint]) -> EpochReplies:
        self._controller.roster.begin(epoch)
        answers = self._controller.roster.answers
        command = Configure(epoch=epoch, settings=SHARED, publishers=publishers, probe=False, system={**OWN, **kafka})
        self._await(lambda: answers.acked("configure"), "the configuration", command)
        return answers

    def _start(self, epoch: int, seconds: float) -> int:
        offset = wall_offset_ns()
        begin = time.monotonic_ns() + offset + 50_000_000
        end = begin + int(seconds * 1e9)
        clock = HostClock(at_ns=0, step_ns=offset)
        window = Start(epoch=epoch, start_at_ns=begin, stop_at_ns=end, clock=clock)
        self._await(lambda: time.monotonic_ns() + offset > end, "the end of the window", window)
        return end

    def _await(self, condition: Callable[[], object], what: str, command: FromController | None = None) -> None:
        if command is not None:
            self._controller.tell([CLIENT], command)
        errors = self._controller.roster.answers.errors
        if not self._controller.wait_until(lambda: bool(condition() or errors), 90) or errors:
            raise RuntimeError(f"{what}: {errors or 'no answer'}")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._controller.quit()
        self._controller.wait_until(lambda: self._group.poll() is not None, 10)
        for end in self._lifeline:
            os.close(end)
        self._controller.close()


class Bench:
    """The measured loops: each returns messages/s."""

    def __init__(self, programs: Path, bootstrap: str) -> None:
        self._client = [programs / "hydra-client"]
        self._bare = programs / "bench" / "kafka"
        self.bootstrap = bootstrap
        self._topics = Topics(bootstrap, {}, "bench")
        self._made = 0
        self._epoch = 0
        self._log: tuple[dict[str, Any], int, int] | None = None

    def topic(self) -> dict[str, Any]:
        """A fresh one with a partition."""
        self._made += 1
        name = self._topics.create(f"t{self._made}")
        return {"bootstrap": self.bootstrap, "topic": name, "offsets": {0: 0}}

    def drop(self) -> None:
        """Deletes all topics."""
        self._topics.close()

    def our_producer(self, client: Client) -> float:
        self._epoch += 1
        report = client.produce(self.topic(), self._epoch, SECONDS)
        if report.acknowledged != report.sent:
            raise RuntimeError(f"{report.acknowledged} of {report.sent} acknowledged")
        return (report.acknowledged - 1) / (report.last_ns - report.first_ns) * 1e9

    def bare_producer(self) -> float:
        return _last_number(
            [str(self._bare / "bare-producer"), self.bootstrap, self.topic()["topic"], str(SECONDS), *BARE_PRODUCER]
        )

    def java_producer(self) -> float:
        records, warmup = JAVA_RECORDS
        said = _java(
            "ProducerPerformance",
            *("--bootstrap-server", self.bootstrap, "--topic", self.topic()["topic"]),
            *("--num-records", str(records), "--warmup-records", str(warmup)),
            *("--record-size", str(RECORD_BYTES), "--throughput", "-1"),
            *("--command-property", "acks=1", f"batch.size={BATCH_BYTES}", f"linger.ms={LINGER_MS:.0f}"),
        )
        return float(re.findall(r"([\d.]+) records/sec", said)[-1])

    @property
    def log_topic(self) -> str:
        """Where the log is that the consumers read."""
        assert self._log is not None
        return str(self._log[0]["topic"])

    def fill(self, program: Sequence[str | Path] | None = None, records: int = LOG_RECORDS) -> None:
        """Makes the log that the consumers read, with a publisher of ours, so that every message counts."""
        kafka, self._epoch, sent = self.topic(), self._epoch + 1, 0
        with Client(program or self._client, "kafka-pub") as publisher:
            seconds = SECONDS
            while sent < records:
                seconds *= 2
                kafka, self._epoch = self.topic(), self._epoch + 1
                sent = publisher.produce(kafka, self._epoch, seconds).acknowledged
        self._log = (kafka, self._epoch, records)

    def our_consumer(self, program: Sequence[str | Path] | None = None) -> float:
        assert self._log is not None
        with Client(program or self._client, "kafka-sub") as subscriber:
            report = subscriber.consume(*self._log)
        (ledger,) = report.ledgers
        if ledger.missing or ledger.duplicates:
            raise RuntimeError(f"not every message: {ledger}")
        received = ledger.received + ledger.extra
        return (received - report.first_batch) / (report.last_ns - report.first_ns) * 1e9

    def bare_consumer(self) -> float:
        assert self._log is not None
        kafka, _, sent = self._log
        program = str(self._bare / "bare-consumer")
        return _last_number([program, self.bootstrap, kafka["topic"], str(sent), *BARE_CONSUMER])

    def java_consumer(self) -> float:
        assert self._log is not None
        kafka, _, sent = self._log
        said = _java(
            "ConsumerPerformance",
            *("--bootstrap-server", self.bootstrap, "--topic", kafka["topic"]),
            *("--num-records", str(sent), "--hide-header"),
        )
        return float(said.strip().splitlines()[-1].split(",")[-1])  # fetch.nMsg.sec


def _last_number(command: list[str]) -> float:
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=120)
    return float(done.stdout.split()[-1])


def _java(tool: str, *arguments: str) -> str:
    command = [find_java().program, *JAVA_OPTIONS, "-cp", fetch().classpath, f"org.apache.kafka.tools.{tool}"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{tool}: {done.stderr[-500:]}")
    return done.stdout


def _compare(what: str, rounds: int, loops: dict[str, Callable[[], float]], targets: Iterable[float]) -> None:
    figures: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            figures[name].append(loop())
    ours, *others = loops
    median = {name: statistics.median(values) for name, values in figures.items()}
    print(f"{what}: " + ", ".join(f"{name} {value:,.0f}/s" for name, value in median.items()))
    for other, target in zip(others, targets, strict=True):
        ratio = median[ours] / median[other]
        each = " ".join(f"{x / y:.2f}" for x, y in zip(figures[ours], figures[other], strict=True))
        print(f"  {ours} / {other}: {ratio:.2f} (target {target}; each round's {each})", flush=True)


def main() -> int:
    """Prints medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", type=Path, help="where native/ was built with -DHYDRA_BENCH=ON")
    options = parser.parse_args()
    if missing := build.missing():
        print(f"not measured: apt-get install {' '.join(missing)}")
        return 0
    programs = options.programs or TREE / "build" / "native-bench"
    if options.programs is None:
        build.build(TREE / "native", programs, "-DHYDRA_BENCH=ON", targets=("all",))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(programs, stack.enter_context(EmbeddedBroker(folder / "broker")).bootstrap)
        publisher = stack.enter_context(Client([programs / "hydra-client"], "kafka-pub"))
        for warm in (bench.bare_producer, lambda: bench.our_producer(publisher)):
            warm()
        _compare(
            "producer",
            options.rounds,
            {
                "hydra": lambda: bench.our_producer(publisher),
                "bare": bench.bare_producer,
                "ProducerPerformance": bench.java_producer,
            },
            (0.97, 2.0),
        )
        bench.drop()
        bench.fill()
        bench.bare_consumer()
        _compare(
            "consumer",
            options.rounds,
            {"hydra": bench.our_consumer, "bare": bench.bare_consumer, "ConsumerPerformance": bench.java_consumer},
            (0.97, 1.5),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
