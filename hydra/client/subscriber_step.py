"""One step of a subscriber: what it reads, and the exact account of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from hydra.client.ledger import Ledger
from hydra.client.linux_process import UsageMeter
from hydra.client.message_topics import MessageTopics
from hydra.client.read_limit import ReadLimit
from hydra.client.subscriber_state import MOST_MESSAGES, BufferedBatches, Impairments, LagBins, ReceiveBuffer
from hydra.client.time_series import TURNS, ReceivedTimeSeries, ReportTimer
from hydra.client.transport import BatchReader, SubscriberTransport
from hydra.model import DrainEnd, HotTopicCounts, SharedSettings, SubscriberReport
from hydra.wire.clock import StepClock
from hydra.wire.histogram import LatencyRecorder
from hydra.wire.messages import Configure, Finish, SecondCounts, Start
from hydra.wire.report_validation import add_absence

BATCH_LIMIT: Final = 2000
"""Most messages that are read before the control channel is read again."""
STREAMED_NS: Final = 1_000_000_000
"""How long a subscriber reads data in the window without reading the control channel, ns: it notices an early stop or
``quit`` later by up to this time. If hundreds share a core, each runs only every tenth of a second, and one look at the
channel takes as long as receiving a hundred messages."""
FLOWING_NS: Final = 200_000_000
"""Largest interval between batches at which a subscriber reads like that, ns: with longer ones it would often wait in
vain, which costs more than it saves."""
WAIT_S: Final = 1.0
DRAIN_WAIT_S: Final = 0.1
_NEVER_NS: Final = 2**63 - 1
_QUIET_GAPS: Final = 4
"""Quiet means a time without messages that is several times the longest interval between two batches: on a host with
thousands of connections, a subscriber waits that long for its turn."""


class SubscriberStep:
    """One step of a subscriber."""

    def __init__(self, command: Configure, transport: SubscriberTransport, client: int = 0) -> None:
        self.epoch = command.epoch
        self._client = client
        self.ready = not command.probe
        self.proven = False
        self._settings: SharedSettings = command.settings
        self._member = bool(command.group)
        self._transport = transport
        self._publishers = {p.publisher for p in command.publishers}
        traffic = command.drawn
        topics = MessageTopics(traffic, client, self._publishers) if traffic.several or traffic.keys else None
        self._ledger = Ledger(command.epoch, self._publishers, topics, in_order=getattr(transport, "keeps_order", True))
        self._topics = topics if traffic.several else None
        self._hot_latency = LatencyRecorder()
        self._arrivals = ReceiveBuffer()
        self._flows = False  # whether batches follow each other quickly
        self._drained_ns = 0  # when the last batch that was not streamed was read, CLOCK_MONOTONIC
        self._streams = cast(BatchReader, transport) if hasattr(transport, "stream") else None
        self._latency = LatencyRecorder()
        self._usage = UsageMeter()
        self._clock: StepClock | None = None
        self._start_ns = _NEVER_NS
        self._stop_ns = _NEVER_NS
        self._lag: LagBins | None = None
        self._batches = 0
        self._first_batch = 0
        self._first_ns = 0  # the first batch, CLOCK_MONOTONIC like the next two
        self._batch_ns = 0  # the last batch
        self._heard_ns = 0  # the last batch, or finish
        self._longest_gap_ns = 0
        self._bytes = 0
        self._absent: list[tuple[int, int]] = []
        self._absent_since_ns = 0
        self._reconnects = 0
        self._finish: Finish | None = None
        self._ended: DrainEnd | None = None
        self._deadline_ns = 0
        self._progress_ns = int(command.progress_s * 1e9)
        self._next_progress_ns = 0
        self._impairments = Impairments(command.spells)
        self._limit: ReadLimit | None = None  # of a slow reader, from the start on
        self._time_series_s = command.course_s
        self._time_series: ReceivedTimeSeries | None = None
        self._telling: ReportTimer | None = None
        self.progress_ns = 0
        """When progress was last due, on the step's clock."""
        self.heard_ns = 0
        """When the first message arrived, a probe or data of any epoch, CLOCK_MONOTONIC; 0: none has."""

    @property
    def draining(self) -> bool:
        """Whether the window is over and the subscriber knows what to expect."""
        return self._finish is not None

    @property
    def messages(self) -> int:
        """The number of messages of this step that were received so far."""
        self._count()
        return self._ledger.messages

    def newly_ready(self) -> bool:
        """True once, after a probe of every publisher has arrived."""
        if self.ready or any(self._ledger.probes.get(p, -1) < self.epoch for p in self._publishers):
            return False
        self.ready = self.proven = True
        return True

    def progress_due(self) -> bool:
        """Whether it is time to send the progress of the step."""
        if not self._progress_ns or self._clock is None:
            return False
        now_ns = self._clock.now_ns()
        # (The window of a subscriber that reads stored messages continues after ``finish``.)
        if now_ns < self._next_progress_ns or (self._finish is not None and now_ns >= self._stop_ns):
            return False
        self._next_progress_ns = now_ns + self._progress_ns
        self.progress_ns = now_ns
        return True

    def time_series_due(self) -> bool:
        """Whether it is time to send the time series of the seconds that have passed."""
        return self._telling is not None and self._clock is not None and self._telling.due(self._clock.now_ns())

    def time_series(self) -> list[SecondCounts]:
        """The time series that was not sent yet; empty if the controller asks for none."""
        if self._time_series is None:
            return []
        self._count()
        return self._time_series.take()

    def start(self, command: Start) -> None:
        """Accepts the window of the step; a repeated ``start`` changes nothing."""
        if self._clock is None:
            self._count()
            self._clock = StepClock(command.clock)
            self._start_ns = command.start_at_ns
            self._stop_ns = command.stop_at_ns
            self._next_progress_ns = command.start_at_ns + self._progress_ns
            self._usage = UsageMeter()
            if self._time_series_s:
                self._time_series = ReceivedTimeSeries(self._latency, command.start_at_ns)
                self._telling = ReportTimer(self._client, command.start_at_ns, self._time_series_s)
            if self._settings.receive_rate is not None:
                self._limit = ReadLimit(self._settings.receive_rate, command.start_at_ns)
            if self._settings.rate != "max":
                self._lag = LagBins(command.start_at_ns, command.stop_at_ns)

    def stop(self, stop_at_ns: int) -> None:
        """Ends the window, perhaps early."""
        self._stop_ns = min(self._stop_ns, stop_at_ns)
        self._count()

    def finish(self, command: Finish) -> None:
        """Accepts what to expect; from now on the step is drained.

        Raises:
            ValueError: the system's part of the command is invalid; the command has no effect.
        """
        if self._finish is None:
            self._count()
            self._come_back()
            self._transport.undrained(command.system)
            self._finish = command
            now_ns = time.monotonic_ns()
            self._heard_ns = now_ns
            self._deadline_ns = now_ns + int(command.drain_max_s * 1e9)

    def work(self) -> float:
        """Reads at most one batch; returns seconds until there may be more to do, 0 for at once."""
        limit, wait_s = BATCH_LIMIT, WAIT_S if self._finish is None else DRAIN_WAIT_S
        if self._clock is not None and self._finish is None:
            now_ns = self._clock.now_ns()
            if self._impairments:
                limit, wait_s = self._obey_impairments(now_ns)
                if not limit:
                    return wait_s
            until_ns = self._alone_until_ns(now_ns)
            if self._flows and self._streams is not None and now_ns < until_ns:
                streamed, batches = self._streams.stream(self._clock.monotonic_ns_of(until_ns), MOST_MESSAGES)
                self._flows = bool(streamed) and time.monotonic_ns() - batches[-1][0] < FLOWING_NS
                if streamed:
                    self._take(streamed, batches)
                return 0
            if self._settings.reconnect_rate is not None:
                wait_s = self._reconnect(now_ns, self._settings.reconnect_rate)
            if self._limit is not None:
                limit = min(self._limit.allowance(now_ns), BATCH_LIMIT)
                if not limit:
                    return min(self._limit.wait_s(now_ns), WAIT_S)
            if self._progress_ns:
                wait_s = min(wait_s, self._clock.until_s(self._next_progress_ns))
            if self._telling is not None:
                wait_s = min(wait_s, self._clock.until_s(self._telling.next_ns))
        messages = self._transport.receive(wait_s, limit)
        if messages:
            read_ns = time.monotonic_ns()
            self._flows = read_ns - self._drained_ns < FLOWING_NS
            self._drained_ns = read_ns
            self._take(messages, [(read_ns, len(messages))])
        return 0

    def _obey_impairments(self, now_ns: int) -> tuple[int, float]:
        """The number of messages that may be read now, and how long to wait for a message, or until it is above 0."""
        self._count()  # what was read before a change
        change = self._impairments.at(now_ns - self._start_ns)
        if change == "leave":
            self._transport.close()
            self._absent_since_ns = self._absent_since_ns or now_ns
        elif change == "return":
            self._come_back()
        limit, wait_s = self._impairments.allowance(now_ns - self._start_ns)
        return min(limit, BATCH_LIMIT), min(wait_s, WAIT_S)

    def _come_back(self) -> None:
        """Reconnects a disconnected subscriber; data flows after its subscription has taken effect."""
        if self._impairments.is_absent:
            self._impairments.is_absent = False
            self._transport.reconnect()
            self._reconnects += 1

    def _alone_until_ns(self, now_ns: int) -> int:
        """Until when this client only has to read data; 0 if it has other work now."""
        if now_ns < self._start_ns or not self._counts_later or self._impairments:
            return 0
        if self._settings.reconnect_rate is not None:
            return 0
        # Subscribers that count at the same time hold up each other's messages.
        phase_ns = STREAMED_NS * (self._client % TURNS) // TURNS
        until_ns = min(now_ns + STREAMED_NS - (now_ns - self._start_ns - phase_ns) % STREAMED_NS, self._stop_ns)
        if self._telling is not None:
            until_ns = min(until_ns, self._telling.next_ns)
        return min(until_ns, self._next_progress_ns) if self._progress_ns else until_ns

    def _reconnect(self, now_ns: int, rate: float) -> float:
        """Reconnects if it is due; returns seconds until the next time."""
        due_ns = self._start_ns + int((self._reconnects + 1) / rate * 1e9)
        if self._start_ns <= due_ns <= now_ns < self._stop_ns and self._clock is not None:
            self._count()
            begin, _ = self._transport.reconnect()
            self._reconnects += 1
            self._absent_since_ns = self._absent_since_ns or self._clock.at_ns(begin)
            return 0
        return min(max(due_ns - now_ns, 0) / 1e9, WAIT_S)

    def _take(self, messages: Sequence[bytes], batches: Sequence[tuple[int, int]]) -> None:
        """Takes batches: the time each was read at, and its number of messages."""
        if not self.heard_ns:
            self.heard_ns = batches[0][0]
        # Outside the window a batch is counted at once: the step may wait for its probe or its last message.
        later = self._counts_later and self._time_of(batches[-1][0]) <= self._stop_ns
        # A stop may have arrived meanwhile, so they are not counted before the control channel was read.
        if not later or self._arrivals.full:
            self._count()
        self._arrivals.add(messages, batches)
        if not later:
            self._count()

    def _count(self) -> None:
        """Counts the buffered messages: first those that arrived in the window, then those that arrived after it."""
        arrived = self._arrivals.take()
        if arrived is None:
            return
        if self._clock is None or self._clock.at_ns(int(arrived.read_ns[-1])) <= self._stop_ns:
            self._record(arrived)
            return
        inside = np.searchsorted(self._clock.at_ns(arrived.read_ns), self._stop_ns, side="right")
        for some in arrived.split(int(inside)):
            self._record(some)

    def _record(self, arrived: BufferedBatches) -> None:
        """Counts messages, which all arrived in the window, or all after it."""
        # Data can arrive before the start command, if the publishers got theirs first. Without the step's clock its age
        # is unknown.
        clock = self._clock
        counted = self._ledger.record(arrived.headers, self._time_of(int(arrived.read_ns[-1])), self._stop_ns)
        if not len(counted):
            return
        if len(counted) < len(arrived.headers):
            arrived = arrived.only(self._ledger.counted(arrived.headers))
        read_ns = arrived.read_ns
        first_ns = int(read_ns[0])
        if not self._batches:
            self._first_batch, self._first_ns = int(arrived.counts[0]), first_ns
            self._batch_ns = first_ns
        gap_ns = int(np.maximum.reduce(read_ns[1:] - read_ns[:-1], initial=first_ns - self._batch_ns))
        self._longest_gap_ns = max(self._longest_gap_ns, gap_ns)
        self._heard_ns = self._batch_ns = int(read_ns[-1])
        self._batches += len(arrived.counts)
        self._bytes += int(arrived.sizes.sum())
        if self._absent_since_ns:
            self._end_absence(self._time_of(self._batch_ns))
        if clock is None:
            return
        batch_ns = clock.at_ns(self._batch_ns)
        if self._limit is not None:
            self._limit.read(batch_ns, len(counted))
        self._impairments.read(batch_ns - self._start_ns, len(counted))
        times_ns, now_ns = arrived.headers["time_ns"], clock.at_ns(read_ns)
        each_ns = np.repeat(now_ns, arrived.counts)
        (self._latency if self._time_series is None else self._time_series).record(times_ns, each_ns)
        if self._topics is not None:
            hot = self._topics.hot(arrived.headers)
            if bool(hot.any()):
                self._hot_latency.record(times_ns[hot], each_ns[hot])
        if self._lag is not None:
            newest_ns = times_ns[np.cumsum(arrived.counts) - 1].view(np.int64)
            self._lag.add(now_ns, now_ns - newest_ns)

    @property
    def _counts_later(self) -> bool:
        """Whether the next batches may be counted later, because nothing waits for their content."""
        return (
            self._clock is not None
            and self.ready
            and self._finish is None
            and self._settings.receive_rate is None
            and not self._absent_since_ns
        )

    def _end_absence(self, now_ns: int) -> None:
        """Ends the absence of a reconnecting client when data flows again: then its subscription has taken effect."""
        add_absence(self._absent, self._absent_since_ns, now_ns)
        self._absent_since_ns = 0

    # --- drain -----------------------------------------------------------------------------------------------------

    def drained(self) -> bool:
        """Whether the drain has ended: all is received, nothing can follow, it was quiet, or the time is over."""
        finish = self._finish
        if finish is None:
            return False
        now_ns = time.monotonic_ns()
        undrained = self._transport.undrained(finish.system)
        # Partitions are not in order with each other: while one holds messages, the last sequence proves nothing.
        # Another member of a consumer group may have received what this one misses: no sequence ends a member's drain.
        if not self._member and not undrained and self._ledger.has_last(finish.publishers):
            self._ended = "complete"
        elif self._ledger.marked(finish.publishers):
            self._ended = "marked"
        elif now_ns > self._deadline_ns:
            self._ended = "deadline"
        elif now_ns - self._heard_ns > max(finish.quiet_s * 1e9, _QUIET_GAPS * self._longest_gap_ns) and not undrained:
            self._ended = "quiet"
        return self._ended is not None

    def _time_of(self, batch_ns: int) -> int:
        """When a batch was read, on the step's clock; 0 without a batch, or without a start that defined the clock."""
        return self._clock.at_ns(batch_ns) if self._clock is not None and batch_ns else 0

    def report(self) -> SubscriberReport:
        """The report of the step; only after :meth:`drained` is true."""
        if self._finish is None or self._ended is None:
            raise RuntimeError("a step is reported after it was drained")
        if self._absent_since_ns:
            self._end_absence(self._stop_ns)
        ledgers = self._ledger.close(self._finish.publishers, member=self._member)
        hot: HotTopicCounts | None = None
        if self._topics is not None:
            hot = HotTopicCounts(*self._ledger.hot(self._finish.publishers), self._hot_latency.histogram())
        return SubscriberReport(
            ledgers=ledgers,
            batches=self._batches,
            first_batch=self._first_batch,
            first_ns=self._time_of(self._first_ns),
            last_ns=self._time_of(self._batch_ns),
            bytes=self._bytes,
            stale=self._ledger.stale,
            latency=self._latency.histogram(),
            usage=self._usage.read(),
            undrained=self._transport.undrained(self._finish.system),
            absent=self._absent,
            reconnects=self._reconnects,
            # A slow reader whose buffers never filled lost nothing: its slowness had no effect.
            felt=self._settings.receive_rate is None or self._member or any(ledger.missing for ledger in ledgers),
            drain=self._ended,
            lag_bins_us=self._lag.means_us() if self._lag is not None else [],
            system=self._transport.report_system(),
            hot=hot,
        )
