"""Stops: times in which nothing arrived at the subscribers outside the cohort although messages were due. Pure.

What is due is known from the schedule, not from what arrived, so the length of the trouble changes no threshold. At
rate ``max`` nothing has a due time: an interval that received something then stands for what is due (the upper quartile
of these intervals). Messages due in the last ``_DELAY_S`` of a time may arrive after it, and so may those that settings
hold back.

- *Empty*: an interval, or several in a row, in which nothing arrived although something was due and was not lost, or
  although ``_ENOUGH`` messages or more were due.
- *Held back*: in two seconds nearly nothing arrived in time, and messages arrived more than a second late. Between two
  moments in seconds that follow each other a backlog that grows makes messages late by less than that.
- *Missing*: two seconds received less than 40 % (at rate ``max`` 33 %) of what was due in them. Such a stop has no full
  second of its own, as the stop before, and what was due in it was lost, or was never sent. At rate ``max`` the seconds
  before and after must be usual: a slow beginning or a change is no stop.

At rate ``max`` the spread of the seconds limits what is found: an empty second between two usual ones, or two seconds
with little, are no stop if they are within ``_SPREADS`` of that spread.

A *shortage* is a second that received less than 70 % of what was due: a short stop, or the beginning of one.

``tests/measure/test_stops.py`` measures how often stops are found and steady steps reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from hydra.measure.observation import Observation
from hydra.model import Histogram, TimeSeriesInterval
from hydra.wire.buckets import highest_of, percentiles_us
from hydra.wire.load_schedule import LoadSchedule

_DELAY_S: Final = 0.2
"""The longest that a message takes without a stop, if many are due."""
_LONE_DELAY_S: Final = 0.5
"""The same if few are due, so the delay of one decides."""
_ENOUGH: Final = 7.0
"""The expected number of arriving messages from which on it is no chance that none arrives: exp(-7) is 0.1 %."""
_SHORTAGE: Final = 0.7
_LEAST_DUE: Final = 20.0
"""The least number of messages due in a second that shows a shortage."""
_MISSING: Final = 0.4
_SPREADS: Final = 5.5
"""At rate ``max`` a second is no chance if it is further below the usual than this many standard deviations."""
_DIP: Final = 0.33
"""``_MISSING`` at rate ``max``, where what is due is an estimate."""
_LATE_US: Final = 1_000_000
_PROMPT_US: Final = 250_000
_LATE_S: Final = 0.3
"""The least number of late messages, in seconds of traffic."""
_PROMPT_S: Final = 0.9
"""The largest number of messages that arrived in time in two seconds, in seconds of traffic."""
_LATE_EVENT_S: Final = 1.0
"""The longest time by which an event is late."""
_END: Final = 1e-6
"""The accuracy of the end of the window, s."""


@dataclass(frozen=True, slots=True)
class TrafficStop:
    """A time in which nothing arrived: the second in which it begins, and about how many seconds it lasted.

    If its messages were lost, only its whole seconds are known.
    """

    at_s: int
    for_s: float


@dataclass(frozen=True, slots=True)
class TrafficShortage:
    """A second that received less than was due, by this fraction (below zero)."""

    at_s: int
    by: float


@dataclass(frozen=True, slots=True)
class DueTraffic:
    """The messages that should arrive.

    Attributes:
        messages: the number of messages due from one moment of the step to another, in seconds; None at rate ``max``.
        copies: the number of copies of each message that should arrive, or its mean.
        drawn: whether subscribers have some topics only, so the copies of a message are only known as a mean.
        readable: the number of messages that the subscribers' read limit allows from one moment to another; None: there
            is no limit.
        held_back_s: the longest time by which settings delay a message.
        outages: begin and end of the events that explain that nothing arrives.
    """

    messages: Callable[[float, float], float] | None
    copies: float = 1.0
    drawn: bool = False
    readable: Callable[[float, float], float] | None = None
    held_back_s: float = 0.0
    outages: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The stops and the shortages of a step."""

    stops: Sequence[TrafficStop] = ()
    shortages: Sequence[TrafficShortage] = ()
    stopped: frozenset[int] = frozenset()
    """The positions of the intervals in which the stops are."""

    @property
    def stopped_s(self) -> float:
        """The length of all stops together, in seconds."""
        return sum(stop.for_s for stop in self.stops)


def find(course: Sequence[TimeSeriesInterval], whole: int, traffic: DueTraffic, interval_s: int = 1) -> Found:
    """The stops and shortages in the whole intervals of a window.

    Args:
        course: the intervals, oldest first, without gaps; those after the window included.
        whole: the number of whole intervals of the window.
        traffic: what should arrive.
        interval_s: the length of the interval in seconds.
    """
    return _Search(course, whole, traffic, interval_s).found()


class _Search:
    def __init__(self, course: Sequence[TimeSeriesInterval], whole: int, traffic: DueTraffic, interval_s: int) -> None:
        self._intervals, self._whole, self._traffic, self._width = course, whole, traffic, interval_s
        self._share = 1.0
        self._usual_pps = 0.0
        self._spread = 0.0
        self._explained = self._of_outages()
        some = [n for n in range(whole) if course[n].received]
        if traffic.messages is None:
            if some:
                received = np.array([course[n].received for n in some], np.float64)
                self._usual_pps = float(np.quantile(received, 0.75)) / interval_s
                # The faster half has no stops. Its distance from its lowest is that of a normal distribution.
                faster = received[received >= np.median(received)]
                self._spread = 1.4826 * float(np.median(faster - faster.min())) / (self._usual_pps * interval_s)
            return
        due = [(course[n].received, self._due(n * interval_s, (n + 1) * interval_s)[1]) for n in some]
        arrived = [received / copies for received, copies in due if copies > 0]
        if arrived:
            self._share = min(float(np.quantile(arrived, 0.75)), 1.0)

    def found(self) -> Found:
        stops, stopped = self._empty()
        if self._width > 1:
            return Found(stops, (), frozenset(stopped))
        for n in range(self._whole - 1):
            pair = {n, n + 1}
            if pair & stopped or pair & self._explained:
                continue
            for_s = self._missing_s(n) or self._held_back_s(n)
            if for_s:
                stops.append(TrafficStop(n, for_s))
                stopped |= pair
        stops.sort(key=lambda stop: stop.at_s)
        return Found(stops, self._shortages(stopped), frozenset(stopped))

    def _due(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """The messages and the copies that are due in a time."""
        if end_s <= begin_s:
            return 0.0, 0.0
        if self._traffic.messages is None:
            due = self._usual_pps * (end_s - begin_s)
            return due, due
        messages = self._traffic.messages(begin_s, end_s)
        copies = messages * self._traffic.copies
        if self._traffic.readable is not None:
            copies = min(copies, self._traffic.readable(begin_s, end_s))
        return messages, copies

    def _expected(self, first: int, last: int, delay_s: float) -> tuple[float, float]:
        """The messages, and the copies, that must arrive in intervals."""
        end_s = (last + 1) * self._width - delay_s - self._traffic.held_back_s
        messages, copies = self._due(first * self._width, end_s)
        return (copies if self._traffic.drawn else min(messages, copies)), copies * self._share

    def _empty(self) -> tuple[list[TrafficStop], set[int]]:
        stops: list[TrafficStop] = []
        stopped: set[int] = set()
        empty = [n for n in range(self._whole) if not self._intervals[n].received and n not in self._explained]
        for _, row in groupby(enumerate(empty), lambda numbered: numbered[1] - numbered[0]):
            run = [n for _, n in row]
            if self._is_stop(run[0], run[-1]):
                stops.append(TrafficStop(run[0] * self._width, self._length_s(run[0], run[-1])))
                stopped |= set(run)
        return stops, stopped

    def _length_s(self, first: int, last: int) -> float:
        """The length of a stop in empty intervals: more than these, if the first message after it was later."""
        empty_s = float((last + 1 - first) * self._width)
        then = self._intervals[last + 1].latency if last + 1 < len(self._intervals) else Histogram()
        if self._traffic.messages is None or self._traffic.readable is not None or not then.counts:
            return empty_s
        before = percentiles_us(self._intervals[first - 1].latency, [75.0])[0] if first else None
        late_s = (then.max_us - (before or 0)) / 1e6
        # A single message may be late for another reason.
        return max(empty_s, round(min(late_s, empty_s + 2 * self._width), 1))

    def _is_stop(self, first: int, last: int) -> bool:
        if self._traffic.messages is None:
            if first == last and self._by_chance(first):
                return False
            last = first  # what is due is an estimate, which is not added up
        if self._share * self._expected(first, last, _DELAY_S)[0] >= _ENOUGH:
            return True
        if self._traffic.messages is None or self._traffic.drawn:
            return False
        if any(interval.lost != 0 for interval in self._intervals[first : last + 1]):
            return False  # A few lost messages are a loss and no stop.
        return self._expected(first, last, _LONE_DELAY_S)[0] >= 1

    def _missing_s(self, n: int) -> float:
        """The length of a stop in two seconds, part of whose messages never arrived; 0: there is none."""
        if self._traffic.messages is None and not self._is_dip(n):
            return 0.0
        least, expected = self._expected(n, n + 1, _DELAY_S)
        received = self._intervals[n].received + self._intervals[n + 1].received
        if least < _LEAST_DUE or received >= _MISSING * expected:
            return 0.0
        return round(2 - received / (self._due(n, n + 2)[1] * self._share), 1)

    def _by_chance(self, n: int) -> bool:
        """Whether an empty interval at ``max`` may be chance: the spread reaches it, and its neighbours are usual."""
        neighbours = [self._intervals[k].received for k in (n - 1, n + 1) if 0 <= k < self._whole]
        usual = self._usual_pps * self._width
        return _SPREADS * self._spread >= 1 and sum(neighbours) > 0.75 * len(neighbours) * usual

    def _is_dip(self, n: int) -> bool:
        """Whether, at ``max``, two seconds are far below the usual, and the seconds beside them are not."""
        if not n:
            return False
        neighbours = [self._intervals[k].received for k in (n - 1, n + 2) if k < self._whole]
        both = (self._intervals[n].received + self._intervals[n + 1].received) / 2
        least = min(_DIP, 1 - _SPREADS * self._spread / 2**0.5)
        return both < least * self._usual_pps and min(neighbours) >= _SHORTAGE * self._usual_pps

    def _held_back_s(self, n: int) -> float:
        """The length of a stop in two seconds whose messages arrived after it; 0: there is none."""
        if self._traffic.messages is None or self._traffic.readable is not None:
            return 0.0
        before, then = self._intervals[n].latency, self._intervals[n + 1].latency
        later = self._intervals[n + 2].latency if n + 2 < len(self._intervals) else Histogram()
        highest_us = max(each.max_us for each in (then, later))
        usual_us = percentiles_us(before, [75.0])[0] if highest_us >= _LATE_US else None
        if usual_us is None:
            return 0.0
        a_second = self._due(n, n + 2)[1] * self._share / 2
        late = sum(_count(each, usual_us + _LATE_US) for each in (then, later))
        prompt = sum(sum(h.counts[1::2]) - _count(h, usual_us + _PROMPT_US) for h in (before, then))
        if a_second * 2 < _LEAST_DUE or late < _LATE_S * a_second or prompt > _PROMPT_S * a_second:
            return 0.0
        return round((highest_us - usual_us) / 1e6, 1)

    def _shortages(self, stopped: set[int]) -> list[TrafficShortage]:
        found: list[TrafficShortage] = []
        for n in range(self._whole):
            least, expected = self._expected(n, n, _DELAY_S)
            received = self._intervals[n].received
            if self._traffic.messages is None or n in stopped or n in self._explained or least < _LEAST_DUE:
                continue
            if received < _SHORTAGE * expected:
                found.append(TrafficShortage(n, received / (self._due(n, n + 1)[1] * self._share) - 1))
        return found

    def _of_outages(self) -> set[int]:
        """The intervals that events explain: from their begin until most of what is due arrives after their end."""
        found: set[int] = set()
        for begin_s, end_s in self._traffic.outages:
            end_s += _LATE_EVENT_S
            for n in range(self._whole):
                if (n + 1) * self._width <= begin_s:
                    continue
                found.add(n)
                due = self._due(n * self._width, (n + 1) * self._width)[1]
                if n * self._width >= end_s and self._intervals[n].received > _SHORTAGE * due:
                    break
        return found


def _count(histogram: Histogram, least_us: int) -> int:
    pairs = zip(histogram.counts[::2], histogram.counts[1::2], strict=True)
    return sum(count for index, count in pairs if highest_of(index) >= least_us)


def found_in(o: Observation) -> Found | None:
    """The stops and shortages of a step; None: they are unknown."""
    facts, settings = o.facts, o.plan.settings
    # A subscriber that connects again all the time is away at times.
    if facts is None or not facts.complete or o.stored or o.counted or settings.reconnect_rate is not None:
        return None
    width = facts.interval_s
    until_s = min(facts.duration_s, o.window_s) + _END
    whole = sum(interval.begin_s + width <= until_s for interval in o.course)
    if whole * width < 2 or facts.copies <= 0:
        return None
    return find(o.course, whole, traffic_in(o, facts.copies), width)


def traffic_in(o: Observation, copies: float) -> DueTraffic:
    """The messages that should arrive in a step; ``copies`` is the number of copies of each."""
    plan, settings = o.plan, o.plan.settings
    points = plan.load or ([] if settings.rate == "max" else [(0.0, float(settings.rate))])
    load = LoadSchedule(points) if points else None

    def due(begin_s: float, end_s: float) -> float:
        if load is None:
            return 0.0
        first, last = (load.count_by(round(at_s * 1e9) - 1) for at_s in (begin_s, end_s))
        if settings.messages is not None:
            first, last = min(first, settings.messages), min(last, settings.messages)
        return float((last - first) * len(o.publishers))

    def readable(begin_s: float, end_s: float) -> float:
        readers, limit = len(o.subscribers) - len(o.cohort), settings.receive_rate or 0.0
        return float(readers * (int(end_s * limit) - int(begin_s * limit)))

    return DueTraffic(
        due if load is not None else None,
        copies,
        drawn=settings.chosen_topics < settings.topics,
        readable=None if settings.receive_rate is None else readable,
        held_back_s=o.held_back_s,
        outages=o.outages,
    )
