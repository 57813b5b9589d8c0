"""Kafka's own performance tools as clients: ``kafka-pub`` and ``kafka-sub`` run them, once a step."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from hydra.client import process_group
from hydra.client.control_loop import PublisherLoop, SubscriberLoop
from hydra.client.transport import Kind, read_system
from hydra.errors import MissingDependencyError
from hydra.kafkatest.control_messages import KafkaConfigure, KafkaFinish
from hydra.kafkatest.java_properties import consumer_config, producer_config
from hydra.kafkatest.librdkafka import Complaint
from hydra.kafkatest.perf_tool_lines import ConsumerOutput, ProducerOutput
from hydra.kafkatest.perf_tool_run import LOOK_EVERY_S, ToolLoop, ToolRun, ToolStep, installed
from hydra.kafkatest.properties import confluent_config
from hydra.kafkatest.refusal_reasons import first_reason
from hydra.kafkatest.settings import TOOL
from hydra.model import Histogram, LedgerCounts, PublisherReport, SubscriberReport
from hydra.model.system_reports import ACCEPTANCE, AcceptanceReport, FirstReason
from hydra.wire import FLUSH_AT_MOST_S
from hydra.wire.clock import StepClock, wall_offset_ns
from hydra.wire.messages import Configure, Finish, Progress, Start, Stop

PROGRESS_EVERY_S: Final = 1.0
"""How often a client reports that its tool has ended, as the controller may have missed the message."""
ENDS_WITHIN_S: Final = 1.0
_NEVER_NS: Final = 2**63 - 1
GIVES_UP_MS: Final = 10_000
"""The tool ends after this time without a record, or after half of the drain if that is less; the tool's default."""
COMMIT_TIMEOUT_S: Final = 10.0
FORGET_TIMEOUT_S: Final = 2.0


class ToolPublisher(ToolLoop, PublisherLoop):
    """The loop of one publisher."""

    _step: _ToolSending | None = None
    _config: Mapping[str, str]

    def _work(self) -> float:
        step = self._step
        if step is None or self._report is not None:
            return math.inf
        wait_s = step.work()
        if step.has_news():
            if step.failure:
                # The window must end for all clients: this one reports it until the controller ends the window.
                self._complain(step.failure)
            else:
                progress = Progress(
                    ids=[self._id], seq=1, epoch=self._epoch, messages=step.sent, time_ns=step.clock.now_ns()
                )
                self._control.send(progress)
        return wait_s

    def _prepare(self, command: Configure) -> None:
        if command.settings.messages is None:
            raise ValueError("kafka-tool needs settings.messages")
        kafka = read_system(command.system, KafkaConfigure)
        self._config = producer_config(self._id, kafka, command.settings.message_size)

    def _endpoint(self) -> str:
        return ""

    def _start(self, configured: Configure, command: Start) -> None:
        if self._step is None:
            self._step = _ToolSending(configured, command, self._config)

    def _stop(self, _: Stop) -> PublisherReport | None:
        return None if self._step is None else self._step.report()


class _ToolSending(ToolStep[ProducerOutput]):
    """One step of a publisher: the tool runs from the beginning of the window."""

    def __init__(self, command: Configure, start: Start, config: Mapping[str, str]) -> None:
        super().__init__("ProducerPerformance", config, ProducerOutput())
        self.clock = StepClock(start.clock)
        self._settings = command.settings
        self._topic = read_system(command.system, KafkaConfigure).topic
        self._messages = command.settings.messages or 0
        self._start_ns = start.start_at_ns
        self._progress_ns = int(command.progress_s * 1e9)
        self._news_ns = start.start_at_ns + self._progress_ns if self._progress_ns else _NEVER_NS
        self._reported_over = False
        self._began_ns = 0
        self._ended_ns = 0
        self._first_line_ns = 0

    @property
    def sent(self) -> int:
        """The number of records known to be sent: all of them only once the tool has ended.

        Below 1/s its progress lines reach this number before it ends: it waits after the last record, too.
        """
        return self._messages if self._over else min(self._output.records, self._messages - 1)

    def work(self) -> float:
        """Starts the tool when it is time, and reads its output; returns the seconds until the next call."""
        if self._run is None and not self.failure:
            if early_s := self.clock.until_s(self._start_ns):
                return early_s
            self._began_ns = self.clock.now_ns()
            self._launch(self._arguments())
        self._look()
        return PROGRESS_EVERY_S if self._over else LOOK_EVERY_S

    def has_news(self) -> bool:
        """Whether to report progress to the controller now: at once when the step is over, then repeatedly."""
        now_ns = self.clock.now_ns()
        if now_ns < self._news_ns and (self._reported_over or not self._over):
            return False
        self._reported_over = self._over
        self._news_ns = now_ns + (int(PROGRESS_EVERY_S * 1e9) if self._over else self._progress_ns)
        return True

    def _look(self, timeout_s: float = 0.0) -> None:
        super()._look(timeout_s)
        if self._run is None:
            return
        if self._output.first_line_s and not self._first_line_ns:
            self._first_line_ns = self._written_ns(self._run)
        if self._output.figures and not self._ended_ns:
            self._ended_ns = self._written_ns(self._run)

    def _written_ns(self, run: ToolRun) -> int:
        return self.clock.at_ns(run.written_ns() - wall_offset_ns())

    @property
    def _has_account(self) -> bool:
        return bool(self._output.figures.get("records"))

    def _arguments(self) -> list[str]:
        settings = self._settings
        throughput = "-1" if settings.rate == "max" else f"{settings.rate:.6f}"
        what = (
            ("--payload-file", settings.payload_file)
            if settings.payload == "lines"
            else ("--record-size", str(settings.message_size))
        )
        return [
            *("--topic", self._topic, "--num-records", str(self._messages), "--throughput", throughput, *what),
            *("--reporting-interval", "1000", "--print-metrics"),
        ]

    def report(self) -> PublisherReport:
        """The tool's account of its records; of a tool that had to be ended, its progress until then."""
        # A tool that has sent all records writes its account at once.
        self._look(self._ends_within_s() if self._output.records >= self._messages or self._output.figures else 0.0)
        self.close()
        figures = self._output.figures
        records = int(figures.get("records", self._output.records))
        sent = self._messages if figures else records
        stopped = self.failure
        if not figures and not stopped and records < self._messages:
            stopped = f"ProducerPerformance was ended when it had reported {records} of {self._messages} records"
        last_ns = self._ended_ns or self.clock.now_ns()
        rate = figures.get("records_per_sec", 0)
        first_ns = last_ns - round(records / rate * 1e9) if rate else self._first_ns()
        return PublisherReport(
            sent=sent,
            acknowledged=records,
            failed=sent - records,
            # Only their number is known, not which ones.
            unacknowledged=[(records, sent - 1)] if records < sent else [],
            first_ns=first_ns if records else 0,
            last_ns=last_ns if records else 0,
            bytes=sent * self._settings.message_size,
            lag=Histogram(),
            usage=self._usage.read(),
            stopped_early=stopped,
            system=self._system(sent - records),
        )

    def _first_ns(self) -> int:
        """When a tool without an account sent its first record: Java's start does not belong to its time."""
        return self._first_line_ns - round(self._output.first_line_s * 1e9) if self._first_line_ns else self._began_ns

    def _ends_within_s(self) -> float:
        """Seconds in which the tool ends after its last record: it waits as after each record."""
        rate = self._settings.rate
        return ENDS_WITHIN_S + (0.0 if rate == "max" else min(1 / rate, FLUSH_AT_MOST_S - ENDS_WITHIN_S))

    def _system(self, unaccepted: int) -> dict[str, Any]:
        """The tool's figures under the names of all publishers' figures, with its producer's metrics."""
        metrics = self._output.metrics
        found: dict[str, Any] = {"batch_bytes": int(self._config["batch.size"]), "figures": self._output.figures}
        if throttled_ms := math.ceil(metrics.get("produce-throttle-time-max", 0.0)):
            quota = first_reason(FirstReason(), unaccepted, throttled_ms)
            found[ACCEPTANCE] = asdict(AcceptanceReport(quota.reason, quota.text, quota.messages))
        if requests := metrics.get("records-per-request-avg"):
            found["records_per_request"] = requests
        if wire_bytes := metrics.get("outgoing-byte-total"):
            found["wire_bytes"] = int(wire_bytes)
            # Of lines, only the greatest possible length is known.
            if self._settings.payload != "lines":
                found["compression_ratio"] = (
                    self._settings.message_size * self._output.figures.get("records", 0) / wire_bytes
                )
        return found


class ToolSubscriber(ToolLoop, SubscriberLoop["_ToolReading"]):
    """The loop of one subscriber.

    The tool has no flag for offsets, but begins at the committed ones of its group, which are set before it starts.
    """

    def _work(self) -> float:
        step: _ToolReading | None = self._step
        if step is None or self._report is not None:
            return math.inf
        wait_s = step.work()
        if step.failure and not step.is_reported:
            step.is_reported = True
            self._complain(step.failure)
        if step.over():
            self._send_report(step.report())
        return wait_s

    def _prepare(self, command: Configure) -> None:
        self._step = _ToolReading(self._id, command)

    def _endpoint(self) -> str | None:
        # The committed offsets decide where the tool reads: there is no path to prove.
        return "" if self._command is not None and self._command.probe else None


class _ToolReading(ToolStep[ConsumerOutput]):
    """One step of a subscriber.

    The tool begins with the window; if subscribers read a stored log, it begins when the length of the log is known.

    Attributes:
        is_reported: whether the failure was reported to the controller.
    """

    def __init__(self, client: int, command: Configure) -> None:
        """Commits the group's offsets at the beginning of this step's log.

        Raises:
            UsageError, ValueError: a property or setting cannot be used.
            OSError: the cluster does not commit.
        """
        self._kafka = read_system(command.system, KafkaConfigure)
        super().__init__("ConsumerPerformance", consumer_config(client, self._kafka), ConsumerOutput())
        self.is_reported = False
        self._stored = self._kafka.read == "stored"
        self._member = self._kafka.group != ""
        # Like every group of a run, its id begins with the topic's name, by which cleaning finds it.
        own = f"{self._kafka.topic}-tool-{client}-{os.getpid()}-{command.epoch}"
        self._group = self._kafka.group or own
        self._records = (command.settings.messages or 0) * len(command.publishers)
        # Of lines, the tool reports only the sum of their lengths, in MB with four decimals.
        self._size = 0 if command.settings.payload == "lines" else command.settings.message_size
        self._clock: StepClock | None = None
        self._start_ns = 0
        self._finish: Finish | None = None
        self._in_log = 0
        self._deadline_ns = 0
        self._gives_up_ms = GIVES_UP_MS
        self._offsets = _Offsets(self._kafka, self._group)
        self._offsets.commit()
        self._closed = False

    def start(self, command: Start) -> None:
        """Takes the window of the step; a repeated start changes nothing."""
        if self._clock is None:
            self._clock, self._start_ns = StepClock(command.clock), command.start_at_ns

    def stop(self, stop_at_ns: int) -> None:
        """Does nothing at the end of the window, as the tool continues by itself."""

    def finish(self, command: Finish) -> None:
        """Takes the number of messages to read.

        Raises:
            ValueError: the system's part of the command is malformed; the command is ignored.
        """
        if self._finish is None and self._clock is not None:
            ends = read_system(command.system, KafkaFinish).end_offsets.items()
            self._in_log = sum(max(0, end - self._kafka.offsets.get(p, 0)) for p, end in ends)
            if self._stored:
                self._records = self._in_log
            self._finish = command
            self._deadline_ns = self._clock.now_ns() + int(command.drain_max_s * 1e9)
            self._gives_up_ms = min(GIVES_UP_MS, max(int(command.drain_max_s * 500), 1))

    def work(self) -> float:
        """Starts the tool when it is time, and reads its output; returns the seconds until the next call."""
        if self._clock is None or self.failure or (self._stored and self._finish is None):
            return math.inf
        if self._run is None:
            if early_s := self._clock.until_s(self._start_ns):
                return early_s
            if self._records:
                self._launch(self._arguments())
            else:
                self.failure = "there is nothing for ConsumerPerformance to read"
        elif self._status is None:
            self._look()
            if self._status is None and self._finish is not None and self._clock.now_ns() > self._deadline_ns:
                self.failure = (
                    "ConsumerPerformance was ended at the end of the drain: the number of records "
                    "that it had read is unknown"
                )
        return LOOK_EVERY_S

    def _arguments(self) -> list[str]:
        return [
            *("--bootstrap-server", self._kafka.bootstrap, "--topic", self._kafka.topic, "--group", self._group),
            *("--num-records", str(self._records), "--timeout", str(self._gives_up_ms)),
            *("--fetch-size", str(self._kafka.max_partition_fetch_bytes), "--socket-buffer-size", "-1"),
        ]

    def over(self) -> bool:
        """Whether the step can be reported."""
        return self._finish is not None and self._clock is not None and self._over

    def close(self) -> None:
        """Ends the tool, and removes its own group; may be called twice."""
        if self._closed:
            return
        self._closed = True
        super().close()
        if not self._member:
            self._offsets.forget()

    def report(self) -> SubscriberReport:
        """The tool's account of the records that it has read; only after :meth:`over`."""
        if self._finish is None or self._clock is None:
            raise RuntimeError("a step is reported after it was finished")
        self.close()
        output, figures = self._output, dict(self._output.figures)
        read = int(figures.get("messages", 0))
        waited_ms = output.waited_ms
        if waited_ms:
            _without(figures, waited_ms)
        # The tool's times are those of this host's wall clock.
        last_ns = self._clock.at_ns(output.ended_ns - wall_offset_ns()) - waited_ms * 1_000_000
        fetch_ns = int(figures.get("fetch_ms", 0)) * 1_000_000
        return SubscriberReport(
            ledgers=self._ledgers(read),
            # Only the tool's beginning and end are known: they count as an empty batch and one with all records.
            batches=2 if read else 0,
            first_batch=0,
            first_ns=last_ns - fetch_ns if read else 0,
            last_ns=last_ns if read else 0,
            bytes=read * self._size if self._size else round(figures.get("mb_consumed", 0) * 2**20),
            stale=0,
            latency=Histogram(),
            usage=self._usage.read(),
            undrained=0 if self._member else max(self._in_log - read, 0),
            drain="complete" if read >= self._in_log else "quiet" if waited_ms else "deadline",
            system={"rebalance_ms": figures.get("rebalance_ms"), "figures": figures},
        )

    def _ledgers(self, read: int) -> list[LedgerCounts]:
        """Ledgers that count the records as the first publishers', as the tool does not report the publisher."""
        ledgers = []
        for sent in self._finish.publishers if self._finish else ():
            expected = sent.sent - sum(high - low + 1 for low, high in sent.unacknowledged)
            received = min(read, expected)
            read -= received
            missing = 0 if self._member else expected - received
            ledgers.append(LedgerCounts(sent.publisher, received, received, missing, truncated=True))
        if ledgers and read:
            first = ledgers[0]
            ledgers[0] = LedgerCounts(first.publisher, first.received, first.in_window, 0, truncated=True, extra=read)
        return ledgers


def _without(figures: dict[str, int | float], waited_ms: int) -> None:
    """Removes the tool's last wait, which was in vain, from its figures."""
    fetch_s = max(figures["fetch_ms"] - waited_ms, 1) / 1000
    total_s = fetch_s + figures["rebalance_ms"] / 1000
    figures |= {
        "fetch_ms": round(fetch_s * 1000),
        "mb_per_sec": figures["mb_consumed"] / total_s,
        "records_per_sec": figures["messages"] / total_s,
        "fetch_mb_per_sec": figures["mb_consumed"] / fetch_s,
        "fetch_records_per_sec": figures["messages"] / fetch_s,
    }


class _Offsets:
    """The offsets at which a group begins to read, committed with librdkafka."""

    def __init__(self, kafka: KafkaConfigure, group: str) -> None:
        self._kafka = kafka
        self._group = group
        self._complaint = Complaint()
        config: dict[str, Any] = dict(confluent_config(kafka.properties, None))
        config |= {"log_level": 0, "bootstrap.servers": kafka.bootstrap, "error_cb": self._complaint}
        self._admin = AdminClient(config)

    def commit(self) -> None:
        """Commits the offsets.

        Raises:
            OSError: the cluster does not commit them.
        """
        offsets = [TopicPartition(self._kafka.topic, p, offset) for p, offset in self._kafka.offsets.items()]
        requests = [ConsumerGroupTopicPartitions(self._group, offsets)]
        try:
            for answer in self._admin.alter_consumer_group_offsets(requests, request_timeout=COMMIT_TIMEOUT_S).values():
                for partition in answer.result().topic_partitions or ():
                    if partition.error is not None:
                        raise KafkaException(partition.error)
        except KafkaException as e:
            why = self._complaint.explain(e)
            raise OSError(f"Kafka does not commit where the group {self._group} begins: {why}") from None

    def forget(self) -> None:
        """Deletes the group; if the cluster does not delete it now, it expires like every unused group."""
        deleted = self._admin.delete_consumer_groups([self._group], request_timeout=FORGET_TIMEOUT_S)
        for answer in deleted.values():
            answer.exception()


def _versions() -> dict[str, str]:
    try:
        java, jars = installed()
    except MissingDependencyError:
        return {}  # the first step reports what is missing
    return {"kafka-tools": jars.version, "java": java.version}


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client in this module."""
    return {
        "kafka-pub": Kind("publisher", TOOL, _versions, ToolPublisher),
        "kafka-sub": Kind("subscriber", TOOL, _versions, ToolSubscriber),
    }


if __name__ == "__main__":
    _versions()  # found once, before the clients are forked
    sys.exit(process_group.main(kinds()))
