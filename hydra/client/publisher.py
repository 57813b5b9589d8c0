"""A publisher: obeys the control channel, sends on schedule, and counts exactly what it sent."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, cast

from hydra.client.control_loop import PublisherLoop
from hydra.client.linux_process import UsageMeter, exact_timers, resident_bytes
from hydra.client.pacing import Backoff, LoadPacer, Pacer
from hydra.client.payload import PayloadBlock
from hydra.client.progress_watch import ProgressWatch
from hydra.client.time_series import ReportTimer, SentTimeSeries
from hydra.client.transport import AwaitingTransport, Delivery, PublisherTransport, Tending
from hydra.control.control_client import ControlClient, poll_ms
from hydra.model import HEADER_BYTES, PublisherReport
from hydra.model.system_reports import ACCEPTANCE, AcceptanceReport, reported
from hydra.wire import FLUSH_AT_MOST_S
from hydra.wire.clock import StepClock
from hydra.wire.data_message import SEQUENCE_LIMIT, pack, pack_batch
from hydra.wire.histogram import LatencyRecorder
from hydra.wire.load_schedule import LoadSchedule
from hydra.wire.messages import PROBE_EPOCH, Configure, Connect, Progress, SecondCounts, Start, Stop, TimeSeries
from hydra.wire.report_validation import MAX_UNACKNOWLEDGED_RANGES, join_beyond
from hydra.wire.time_series import parts
from hydra.wire.traffic import size_choice

FIRST_PROBES_APART_NS: Final = 20_000_000
"""First interval between two probes, ns: the first one is sent before any subscriber can have connected, and a few
subscribers on the publisher's host have connected 15 ms later."""
PROBES_APART_NS: Final = 500_000_000
"""Longest interval between two probes, ns."""
GROUP_PROBES_APART_NS: Final = 50_000_000
"""Longest interval between two probes to a consumer group, ns: each probe reaches, and wakes up, only one member."""
PROBES_OUT_S: Final = 1.0
"""How long a publisher waits for probes on their way when it receives the command to end them, s."""
END_MARKERS_FOR_NS: Final = 60_000_000_000
ERRORS_APART_NS: Final = 2_000_000_000
"""Longest interval between two errors of a step that ended before its window, ns."""
MEMORY_EVERY_NS: Final = 50_000_000
"""Interval between two readings of an unbounded queue's memory, ns: at 500 MB/s it grows by 25 MB in this time."""
PREPARED: Final = 64
PREPARED_BYTES: Final = 65_536
"""Messages that are packed at once while none is due, and the most bytes of them."""
AWAKE_S: Final = 120e-6
"""A publisher wakes up this many seconds before a message is due, and then reads the clock until it is. Waking up and
reading the control channel, with code that is in no cache, can take this long."""
SERVED_FROM_S: Final = 0.001
"""While answers are due, a wait of this many seconds or more ends when one arrives; after a shorter wait the publisher
looks for them anyway."""
SERVED_AT_MOST_S: Final = 1.0
"""The longest wait for answers, s."""
ANSWERS_S: Final = 0.02
"""How long a publisher waits for the last answers before it reads the control channel again, s."""


class TransportPublisher(PublisherLoop):
    """The loop of one publisher; :meth:`run` returns when it is dismissed."""

    def __init__(self, client: int, control: ControlClient, transport: PublisherTransport) -> None:
        super().__init__(client, control)
        self._transport = transport
        self._awaiting = cast(AwaitingTransport, transport) if hasattr(transport, "awaits") else None
        self._tending = Tending(transport)
        self._probes: Backoff | None = None
        self._end_markers: Backoff | None = None
        self._errors: Backoff | None = None  # for a step that stopped early
        self._done: Backoff | None = None  # for a step with a limited number of messages, all sent
        self._step: _Sending | None = None

    def run(self) -> None:
        """Obeys commands until it receives ``quit``."""
        exact_timers()
        super().run()

    def _tend(self) -> float:
        return self._tending.serve()

    def _work(self) -> float:
        return self._serve(self._act())

    def _serve(self, wait_s: float) -> float:
        """Waits for answers if some are due; returns how many seconds of the wait are left for a command.

        A library that is served only when a message is due delivers answers at that time, and at QoS 2 the server
        passes a message on only after an answer of the publisher.
        """
        if wait_s < SERVED_FROM_S or self._command is None or self._awaiting is None:
            return wait_s
        if self._step is None or self._step.finished:
            self._transport.poll()  # otherwise the step has just done so
        if not self._awaiting.awaits():
            return wait_s
        self._awaiting.wait(poll_ms(min(wait_s, SERVED_AT_MOST_S)) / 1000)
        return 0

    def _act(self) -> float:
        """Does what is due now; returns how many seconds may pass until there is more to do."""
        step = self._step
        if step is not None and not step.finished:
            wait_s = step.work()
            if step.stopped_early:
                self._errors = Backoff(time.monotonic_ns(), longest_ns=ERRORS_APART_NS)
            if step.completed_ns:
                self._done = Backoff(time.monotonic_ns(), longest_ns=ERRORS_APART_NS)
            if step.progress_due():
                self._send_progress(step, step.clock.now_ns())
            if step.time_series_due():
                self._send_time_series(step)
            return wait_s
        if step is not None and self._errors is not None:
            # The window ends here for all clients: the publisher repeats the error until the controller ends the step.
            if self._errors.due(time.monotonic_ns()):
                self._complain(step.stopped_early)
            return _until(self._errors)
        if step is not None and self._done is not None:
            # The window ends when all publishers have sent this.
            if self._done.due(time.monotonic_ns()):
                self._send_progress(step, step.completed_ns)
            return _until(self._done)
        command = self._command
        if command is None:
            return math.inf
        if step is None:
            # The step's clock is not known yet: the probe carries no time.
            return self._signal(self._probes, command.epoch, 0)
        return self._signal(self._end_markers, SEQUENCE_LIMIT | command.epoch, step.clock.now_ns())

    def _send_progress(self, step: _Sending, time_ns: int) -> None:
        """Sends the number of messages of the step at this time."""
        self._control.send(Progress(ids=[self._id], seq=1, epoch=step.epoch, messages=step.sent, time_ns=time_ns))

    def _send_time_series(self, step: _Sending) -> None:
        """Sends the counts of the seconds that have passed."""
        for seconds in parts(step.time_series()):
            self._control.send(TimeSeries(ids=[self._id], seq=1, epoch=step.epoch, seconds=seconds))

    def _signal(self, repeats: Backoff | None, sequence: int, time_ns: int) -> float:
        """Sends a probe or an end marker (depending on ``sequence``) if it is due; seconds until the next one."""
        if repeats is None:
            return math.inf
        if repeats.due(time.monotonic_ns()):
            self._transport.probe(pack(PROBE_EPOCH, self._id, sequence, time_ns))
            self._transport.poll()
        return _until(repeats)

    def _end(self) -> None:
        if self._step is not None and self._step.stopped_early:
            # An unbounded queue is full of the last step's messages; only a new socket is without them.
            self._transport.close()
        self._step = self._probes = self._end_markers = self._errors = self._done = None

    def _prepare(self, command: Configure) -> None:
        sizes = size_choice(command.drawn, self._id) if command.drawn.sizes else None
        self._payload = PayloadBlock(command.settings, command.payload_share, sizes)
        self._data_endpoint = self._transport.configure(command)
        self._tending.begin()
        if command.probe:
            first_ns, apart_ns = FIRST_PROBES_APART_NS, PROBES_APART_NS
            if command.group:
                first_ns = apart_ns = GROUP_PROBES_APART_NS
            if isinstance(command.connect, Connect):
                first_ns = apart_ns = round(command.connect.probe_s * 1e9)
            self._probes = Backoff(time.monotonic_ns(), first_ns=first_ns, longest_ns=apart_ns)

    def _configure(self, command: Configure) -> None:
        if command.epoch == self._epoch and not command.probe and self._probes is not None:
            # No subscriber needs probes any more, and an acknowledged command promises that none is on its way.
            self._probes = None
            self._transport.flush(PROBES_OUT_S)
        super()._configure(command)

    def _endpoint(self) -> str:
        return self._data_endpoint

    def _start(self, configured: Configure, command: Start) -> None:
        if self._step is None:
            self._probes = None
            self._step = _Sending(self._id, configured, command, self._transport, self._payload)

    def _stop(self, command: Stop) -> PublisherReport | None:
        if self._step is None:
            return None
        self._errors = self._done = None
        self._step.stop(command.stop_at_ns)
        self._send_time_series(self._step)
        report = self._step.report()
        if self._transport.marks_end:
            self._end_markers = Backoff(time.monotonic_ns(), for_ns=END_MARKERS_FOR_NS)
        return report


def _until(repeats: Backoff) -> float:
    """Seconds until the next repetition; infinity if there is none."""
    if repeats.next_ns is None:
        return math.inf
    return max(repeats.next_ns - time.monotonic_ns(), 0) / 1e9


class _Sending:
    """One step of a publisher."""

    def __init__(
        self, client: int, command: Configure, start: Start, transport: PublisherTransport, payload: PayloadBlock
    ) -> None:
        self.epoch = command.epoch
        self.clock = StepClock(start.clock)
        self.finished = False
        self.stopped_early = ""
        self.completed_ns = 0
        """When all messages of a step with a limited number were sent and answered (step's clock); 0 before that."""
        self._id = client
        self._payload = payload
        self._transport = transport
        settings = command.settings
        self._pacer = _pacer(command, start)
        self._stop_at_ns = start.stop_at_ns
        self._paced = command.settings.rate != "max"
        self._lag = LatencyRecorder()
        self._usage = UsageMeter()
        self._refused: Sequence[bytes] = []
        self._prepared: list[bytes] = []
        self._prepared_from = 0  # sequence of the first prepared message
        self._ahead = max(1, min(PREPARED, PREPARED_BYTES // settings.message_size))
        # Busy waiting takes at most an eighth of the time.
        self._awake_s = 0.0 if settings.rate == "max" else min(AWAKE_S, 1 / 8 / float(settings.rate))
        self._blocked_ns = 0
        self._first_ns = 0
        self._last_ns = 0
        self._memory_limit_bytes = int(os.environ.get("HYDRA_MEMORY_LIMIT_BYTES", "0"))
        self._next_memory_ns = start.start_at_ns
        # A paced publisher that the system stops misses its rate.
        self._watch = None if self._paced else ProgressWatch(start.start_at_ns)
        self._progress_ns = int(command.progress_s * 1e9)
        self._next_progress_ns = start.start_at_ns + self._progress_ns
        self._time_series: SentTimeSeries | None = None
        self._telling: ReportTimer | None = None
        if command.course_s:
            self._time_series = SentTimeSeries(start.start_at_ns)
            self._telling = ReportTimer(client, start.start_at_ns, command.course_s)

    @property
    def sent(self) -> int:
        """The number of messages that the library has accepted."""
        return self._pacer.sent

    def progress_due(self) -> bool:
        """Whether it is time to send the progress of the step."""
        # A publisher that has sent all messages reports it when they are answered.
        if not self._progress_ns or self.clock.now_ns() < self._next_progress_ns or self._pacer.complete:
            return False
        self._next_progress_ns = self.clock.now_ns() + self._progress_ns
        return True

    def time_series_due(self) -> bool:
        """Whether it is time to send the counts of the seconds that have passed."""
        return self._telling is not None and self._telling.due(self.clock.now_ns())

    def time_series(self) -> list[SecondCounts]:
        """The counts of each second that were not sent yet; empty if the controller asks for none."""
        return [] if self._time_series is None else self._time_series.take()

    def work(self) -> float:
        """Sends at most one chunk; returns seconds until there is more to do, 0 for at once."""
        now_ns = self.clock.now_ns()
        pacer = self._pacer
        self._transport.poll()
        if now_ns >= self._next_memory_ns:
            self._look_at_memory(now_ns)
        if self.finished or pacer.done(now_ns):
            self.finished = self.finished or not self._answers_awaited(now_ns)
            return 0
        count = pacer.due(now_ns)
        if not count:
            next_ns = pacer.start_ns if pacer.next_due_ns is None else pacer.next_due_ns
            if self.clock.until_s(next_ns) > self._awake_s:
                if self._telling is not None:
                    # The counts of past seconds are sent even while a load pauses.
                    next_ns = min(next_ns, self._telling.next_ns)
                self._prepare(1)  # takes time, so the wait is computed after it
                return max(self.clock.until_s(next_ns) - self._awake_s, 0.0)
            while now_ns < next_ns:
                now_ns = self.clock.now_ns()
            if not (count := pacer.due(now_ns)):
                return 0
        messages = self._next(count, now_ns)
        if self._paced:
            now_ns = self.clock.now_ns()
        accepted = self._transport.send(messages, pacer.sent)
        after_ns = self.clock.now_ns()
        if accepted < len(messages):
            self._refused = messages[accepted:]
            self._blocked_ns += after_ns - now_ns
        else:
            self._refused = []
        if accepted:
            if not self._first_ns:
                self._first_ns = now_ns
            self._last_ns = after_ns
            if self._paced and accepted == 1:
                self._lag.record_us(pacer.lag_ns(now_ns) // 1000)
            elif self._paced:
                self._lag.record(pacer.times(accepted, now_ns), now_ns)
            pacer.advance(accepted)
            if self._time_series is not None:
                self._time_series.add(accepted, after_ns)
        return 0

    def _next(self, count: int, now_ns: int) -> Sequence[bytes]:
        """The next messages, at most ``count``; messages that the library rejected are offered again unchanged."""
        if not self._paced:
            return self._refused or self._packed(count, now_ns)
        self._prepare(count)
        # Unsent messages go first: a library that accepts a few at a time is offered the same ones again.
        begin = self._pacer.sent - self._prepared_from
        return self._prepared[begin : begin + count]

    def _prepare(self, count: int) -> None:
        """Packs ``count`` or more of the next messages, unless some are left; their due times are known in advance."""
        if self._paced and self._pacer.sent - self._prepared_from >= len(self._prepared):
            self._prepared_from = self._pacer.sent
            self._prepared = self._packed(max(count, self._ahead), 0)

    def _packed(self, count: int, now_ns: int) -> list[bytes]:
        """The next ``count`` messages."""
        first = self._pacer.sent
        times = self._pacer.times(count, now_ns)
        return pack_batch(self.epoch, self._id, first, times, self._payload.of(first, count))

    def _answers_awaited(self, now_ns: int) -> bool:
        """Whether all messages of a step with a limited number were sent, and answers may still follow.

        The step is complete with the last answer: messages that wait in the library have not been sent.
        """
        if not self._pacer.complete:
            return False
        if not self._transport.flush(ANSWERS_S):
            return now_ns < self._stop_at_ns
        self.completed_ns = self._end_ns(self._transport.delivery())
        return False

    def _end_ns(self, delivery: Delivery | None) -> int:
        """The last acknowledgement, or the last send if there are no acknowledgements, on the step's clock."""
        return self.clock.at_ns(delivery.last_ack_ns) if delivery and delivery.last_ack_ns else self._last_ns

    def _look_at_memory(self, now_ns: int) -> None:
        """Ends the step if the unbounded queue takes more memory than allowed; looks whether messages are accepted."""
        self._look_at_progress(now_ns)
        self._next_memory_ns = now_ns + MEMORY_EVERY_NS
        resident = resident_bytes() if self._memory_limit_bytes else 0
        if resident > self._memory_limit_bytes:
            self.stopped_early = (
                f"the publisher's queue took {resident / 1e6:.0f} MB; the limit is "
                f"{self._memory_limit_bytes / 1e6:.0f} MB"
            )
            self.finished = True

    def _look_at_progress(self, now_ns: int) -> None:
        if self._watch is not None:
            accepted = self._transport.accepted()
            self._watch.look(min(now_ns, self._stop_at_ns), self._pacer.sent if accepted is None else accepted)

    def stop(self, stop_at_ns: int) -> None:
        """Ends the step, perhaps early."""
        self._stop_at_ns = min(self._stop_at_ns, stop_at_ns)
        if not self.stopped_early and not self._pacer.complete:
            self._look_at_progress(self.clock.now_ns())
        self._pacer.stop_at(stop_at_ns)
        self.finished = True

    def report(self) -> PublisherReport:
        """The report of the step, after outstanding answers have arrived or the time limit for them has passed."""
        self._transport.flush(FLUSH_AT_MOST_S)
        sent = self._pacer.sent
        delivery = self._transport.delivery() or Delivery(sent, 0, 0, 0)
        unacknowledged, joined = join_beyond(delivery.unacknowledged, MAX_UNACKNOWLEDGED_RANGES)
        return PublisherReport(
            sent=sent,
            acknowledged=delivery.acknowledged,
            failed=delivery.failed,
            first_ns=self._first_ns,
            last_ns=self._end_ns(delivery),
            bytes=self._payload.total_bytes(sent),
            lag=self._lag.histogram(),
            usage=self._usage.read(),
            unacknowledged=unacknowledged,
            blocked_ns=self._blocked_ns,
            stopped_early=self.stopped_early,
            unacknowledged_joined=joined,
            system=self._system(sent),
            ack_latency=delivery.ack_latency,
        )

    def _system(self, sent: int) -> dict[str, Any] | None:
        """The transport's report, with the bytes of all messages on the connection if their sizes determine them."""
        system, framed_bytes = self._transport.report_system(), self._transport.framed_bytes
        if unaccepted := self._unaccepted():
            system = {**(system or {}), ACCEPTANCE: unaccepted}
        if framed_bytes(HEADER_BYTES) is None:
            return system
        return {**(system or {}), "wire_bytes": self._payload.total_bytes(sent, lambda size: framed_bytes(size) or 0)}

    def _unaccepted(self) -> dict[str, Any]:
        """Why messages were not accepted, without empty fields."""
        refused, (lost, lost_why) = self._transport.refused(), self._transport.losses()
        report = AcceptanceReport(
            reason=refused.reason if refused else "",
            text=refused.text if refused else "",
            messages=refused.messages if refused else 0,
            lost_connections=lost,
            lost_why=reported(lost_why),
            stalled_us=self._watch.longest_ns // 1000 if self._watch is not None else 0,
        )
        return {name: value for name, value in asdict(report).items() if value}


def _pacer(command: Configure, start: Start) -> Pacer:
    """The schedule of a step."""
    settings, window = command.settings, (start.start_at_ns, start.stop_at_ns)
    if command.load:
        return LoadPacer(LoadSchedule(command.load), *window, command.burst, settings.messages)
    return Pacer(settings.rate, *window, command.burst, settings.messages)
