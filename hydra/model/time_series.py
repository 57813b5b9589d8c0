"""The course of a step: its figures second by second."""

from __future__ import annotations

from dataclasses import dataclass, field

from hydra.model.reports import Histogram


@dataclass(frozen=True, slots=True)
class CourseFacts:
    """What the seconds of a step belong to.

    ``start_ns`` is the begin of the window on the step's clock. Of each message that was due, so many copies are
    expected at the subscribers outside the cohort: ``copies``, and ``cohort_copies`` at those inside. ``complete`` is
    whether the seconds add up to what the clients reported in the end; None before that, or if the step never ended.
    """

    start_ns: int
    duration_s: float
    interval_s: int
    copies: float
    cohort_copies: float = 0.0
    complete: bool | None = None


@dataclass(frozen=True, slots=True)
class CourseInterval:
    """What happened in one interval of a step, a second or longer, which begins at ``begin_s`` after its start.

    ``due`` and ``sent`` are of all publishers; ``received`` and ``latency`` of all subscribers outside the cohort, by
    the time of arrival. ``lost`` are the copies that were due in the interval and were lost; None while nobody knows.
    """

    begin_s: int
    due: int
    sent: int = 0
    received: int = 0
    cohort_received: int = 0
    lost: int | None = None
    latency: Histogram = field(default_factory=Histogram)
    cohort_latency: Histogram = field(default_factory=Histogram)
