"""A publisher whose messages are sent by ProducerPerformance, Kafka's own tool."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from hydra.client.control_loop import PublisherLoop
from hydra.client.transport import read_system
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.java_properties import producer_config
from hydra.kafkatest.perf_tool_lines import ProducerOutput
from hydra.kafkatest.perf_tool_run import LOOK_EVERY_S, ToolLoop, ToolStep
from hydra.model import Histogram, PublisherReport
from hydra.wire.clock import StepClock, wall_offset_ns
from hydra.wire.messages import Configure, Progress, Start, Stop

TELL_EVERY_S: Final = 1.0
"""A tool that has ended is told of so often, as the controller may have missed it."""
ENDS_WITHIN_S: Final = 1.0
_NEVER_NS: Final = 2**63 - 1


class ToolPublisher(ToolLoop, PublisherLoop):
    """The loop of one publisher."""

    _step: _ToolSending | None = None
    _config: Mapping[str, str]

    def _work(self) -> float:
        step = self._step
        if step is None or self._report is not None:
            return math.inf
        wait_s = step.work()
        if step.tell():
            if step.failure:
                # Its window ends here for everybody: the controller is told until it says so itself.
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
    """One step: the tool runs from the window's beginning on."""

    def __init__(self, command: Configure, start: Start, config: Mapping[str, str]) -> None:
        super().__init__("ProducerPerformance", config, ProducerOutput())
        self.clock = StepClock(start.clock)
        self._settings = command.settings
        self._topic = read_system(command.system, KafkaConfigure).topic
        self._messages = command.settings.messages or 0
        self._start_ns = start.start_at_ns
        self._progress_ns = int(command.progress_s * 1e9)
        self._news_ns = start.start_at_ns + self._progress_ns if self._progress_ns else _NEVER_NS
        self._told_over = False
        self._began_ns = 0
        self._ended_ns = 0

    @property
    def sent(self) -> int:
        """Records that are known to be sent: all of them once the tool has ended well."""
        return self._messages if self._over else self._output.told

    def work(self) -> float:
        """Starts the tool when it is time, and reads what it says; seconds until there may be more to do."""
        if self._run is None and not self.failure:
            if early_s := self.clock.until_s(self._start_ns):
                return early_s
            self._began_ns = self.clock.now_ns()
            self._launch(self._arguments())
        self._look()
        return TELL_EVERY_S if self._over else LOOK_EVERY_S

    def tell(self) -> bool:
        """Whether it is time to tell the controller how far the step is; at once when it is over, then repeatedly."""
        now_ns = self.clock.now_ns()
        if now_ns < self._news_ns and (self._told_over or not self._over):
            return False
        self._told_over = self._over
        self._news_ns = now_ns + (int(TELL_EVERY_S * 1e9) if self._over else self._progress_ns)
        return True

    def _look(self, timeout_s: float = 0.0) -> None:
        super()._look(timeout_s)
        if self._run is not None and self._output.figures and not self._ended_ns:
            self._ended_ns = self.clock.at_ns(self._run.written_ns() - wall_offset_ns())

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
        """What the tool said of its records; of one that had to be ended, what it had said until then."""
        # Once it has all, its account follows at once.
        self._look(ENDS_WITHIN_S if self._output.told >= self._messages or self._output.figures else 0.0)
        self.close()
        figures = self._output.figures
        told = int(figures.get("records", self._output.told))
        sent = self._messages if figures else told
        stopped = self.failure
        if not figures and not stopped:
            stopped = f"ProducerPerformance was ended when it had told of {told} of {self._messages} records"
        last_ns = self._ended_ns or self.clock.now_ns()
        rate = figures.get("records_per_sec", 0)
        first_ns = last_ns - round(told / rate * 1e9) if rate else self._began_ns
        return PublisherReport(
            sent=sent,
            acknowledged=told,
            failed=sent - told,
            # Which of them is not known, only how many.
            unacknowledged=[(told, sent - 1)] if told < sent else [],
            first_ns=first_ns if told else 0,
            last_ns=last_ns if told else 0,
            bytes=sent * self._settings.message_size,
            lag=Histogram(),
            usage=self._usage.read(),
            stopped_early=stopped,
            system=self._system(),
        )

    def _system(self) -> dict[str, Any]:
        """Its figures by the names that all publishers' have, and what its producer's metrics tell."""
        metrics = self._output.metrics
        found: dict[str, Any] = {"batch_bytes": int(self._config["batch.size"]), "figures": self._output.figures}
        if requests := metrics.get("records-per-request-avg"):
            found["records_per_request"] = requests
        if wire_bytes := metrics.get("outgoing-byte-total"):
            found["wire_bytes"] = int(wire_bytes)
            # Of lines only the longest they may have is known.
            if self._settings.payload != "lines":
                found["compression_ratio"] = (
                    self._settings.message_size * self._output.figures.get("records", 0) / wire_bytes
                )
        return found
