"""The steps of ``[sweep.held]``: full speed, and for every series the highest rate of a ladder that was held. Pure."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from hydra.measure import rates
from hydra.measure.column import AGGREGATE_MAX, ANSWER, HIGH_PPS, LOW_PPS, STATUS, WALL, WHY
from hydra.measure.host_columns import GENERATOR_LIMITED
from hydra.measure.latency_columns import Latency
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Cohort, Figure, Scenario, Settings, StepPlan, with_values
from hydra.sweep import held_columns as columns
from hydra.sweep import search_columns
from hydra.sweep.cleanness import add_host_facts
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.held_warnings import of_held
from hydra.sweep.interface import QUICK_DRAIN_S, LadderProgress, Row, step_bound_s
from hydra.sweep.ladder import Ladder
from hydra.sweep.ladder_climb import HeldKind, LadderClimb, ends_of, limit_s, progress_of, wall_s
from hydra.sweep.scripted_sweep import PlayedScript, Script, ScriptedSweep
from hydra.sweep.search_spec import SearchSeries, SearchSpec
from hydra.sweep.search_warnings import SearchInterrupted
from hydra.sweep.series_cohorts import cohort_of, warn
from hydra.sweep.step_retry import ClientCountFailedError, StepRetry

SATURATION_BYTES: Final = 100_000_000
"""The most bytes that a publisher sends at full speed: what servers, logs and readers still keep in memory."""
_FIRST_DELIVERIES: Final = 200_000
"""The messages to all subscribers of the first step at full speed, which shows how fast they arrive."""
_QUICK_S: Final = 1.0
"""If these arrive in less than this time, a step of more messages follows."""
_LONGER_S: Final = 5.0
"""That step has as many messages as arrive in this time."""
_AT_ONCE_S: Final = 0.2
"""The least time that is assumed of messages without a rate."""
_BELOW_FULL_SPEED: Final = 0.7
"""The ladder begins at this share of the rate received at full speed."""
_USUAL_SHORT_STEPS: Final = 5


class HeldSeries:
    """A series of a client count: the name that begins its columns, and its steps."""

    def __init__(self, name: str, climb: LadderClimb) -> None:
        self.name = name
        self.climb = climb


class HeldRates(ScriptedSweep[HeldSeries]):
    """The highest rates of a ladder that were held, for every client count, ascending.

    Args:
        scenario: the scenario.
        held: the table ``[sweep.held]``.
        search: the table ``[sweep.search]``.
    """

    def __init__(self, scenario: Scenario, held: HeldSpec, search: SearchSpec) -> None:
        self._saturated = held.saturation or "max_rate" in search.series
        self._search = columns.as_held(search, saturated=self._saturated)
        super().__init__(scenario, (column.name for column in search_columns.published(self._search)))
        self._held = held
        self._rates = search_columns.rates(self._search)
        self._duration_s = scenario.sweep.duration_s
        self._short_s = min(held.short_s, self._duration_s)
        self._limit_s = limit_s(held, self._duration_s)
        self._climbs = [name for name in self._rates if name not in ("max_rate", "nodrop")]

    def rows(self, results: Sequence[StepResult]) -> list[Row]:
        """See :class:`hydra.sweep.interface.Sweep`."""
        taken = [sum(map(wall_s, each.taken)) for each in self._play(results)]
        return [row | {WALL: seconds} for row, seconds in zip(super().rows(results), taken, strict=True)]

    def offered_again(self, results: Sequence[StepResult]) -> set[int]:
        """See :class:`hydra.sweep.interface.Sweep`.

        Without full speed these are also all steps of the counts after a failed one, which begin with what it finds.
        """
        again = super().offered_again(results)
        if self._saturated or not again:
            return again
        first = min(result.plan.clients for result in results if result.epoch in again)
        return again | {result.epoch for result in results if result.plan.clients > first}

    def progress(self, results: Sequence[StepResult]) -> LadderProgress | None:
        """See :class:`hydra.sweep.interface.Sweep`."""
        last = results[-1]
        climbs = [each.climb for each in self._of_last(results).found if each.climb.series == last.plan.series]
        return progress_of(last, climbs[-1].limits) if climbs else None

    def bound_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`: no step begins that would exceed the limit but for its drain."""
        nodrop_s = 2 * step_bound_s(self._scenario, self._short_s) if "nodrop" in self._rates else 0.0
        return len(self._clients) * (self._limit_s * len(self._climbs) + nodrop_s)

    def expected_s(self) -> float:
        """See :class:`hydra.sweep.interface.Sweep`."""
        short_s, whole_s = self._short_s + QUICK_DRAIN_S, self._duration_s + QUICK_DRAIN_S
        steps_s = 2 * (len(self._rates) - len(self._climbs)) * short_s
        steps_s += len(self._climbs) * (_USUAL_SHORT_STEPS * short_s + whole_s * (whole_s > short_s))
        return min(len(self._clients) * (steps_s + self._scenario.warmup_s), self.bound_s())

    def _retry(self, clients: int) -> StepRetry:
        """See :class:`hydra.sweep.scripted_sweep.ScriptedSweep`: dead and silent subscribers make a step not clean."""
        return StepRetry(self._scenario, clients, _not_measured)

    # --- the script --------------------------------------------------------------------------------------------------

    def _measure(self, retry: StepRetry, row: Row, found: list[HeldSeries]) -> Script:
        """See :class:`hydra.sweep.scripted_sweep.ScriptedSweep`."""
        settings = self._scenario.settings
        marks = self._search.sndhwms
        first = with_values(settings, {"sndhwm": marks[0]}) if marks else settings
        received, fastest, start, began_s = None, None, self._as_last(retry.clients), 0.0
        if self._saturated:
            steps = yield from self._full_speed(retry, first, "max_rate", row)
            began_s = sum(map(wall_s, steps))
            # A stop in one of the steps must not make the ladder begin far below.
            received = max(filter(None, map(self._received, steps)), default=None)
            fastest = next((f for each in reversed(steps) if (f := each.figures.totals.avg_tx_rate_pps)), None)
            if received and fastest:
                start = _BELOW_FULL_SPEED * received
        for series in self._search.series:
            if series == "max_rate":
                continue
            if series == "nodrop":
                yield from self._full_speed(retry, with_values(settings, {"nodrop": True}), series, row)
                continue
            cohort = cohort_of(self._search, series, retry.clients, received)
            if not isinstance(cohort, Cohort):
                warn(row, series, cohort)
                continue
            own = {search_columns.sndhwm_prefix(m): with_values(settings, {"sndhwm": m}) for m in marks}
            for name, of_step in own.items() if series == "loss" and marks else [(series, first)]:
                ends = ends_of(self._search, ladder := Ladder(self._held.ladder))
                seconds = (self._duration_s, self._short_s, self._limit_s, began_s)
                climb = LadderClimb(of_step, series, cohort, ladder, *ends, *seconds)
                found.append(HeldSeries(name, climb))
                began_s = 0.0
                try:
                    yield from climb.climb(retry, start, fastest)
                finally:
                    self._fill(row, name, climb)
                if climb.low is not None:
                    start = climb.ladder.rate(climb.low)

    def _as_last(self, clients: int) -> float:
        """The rate (messages/s) with which a count begins without full speed.

        This is the total to all subscribers that was held at the count before; ``start_rate`` for the first one.
        """
        last = max((count for count in self._played if count < clients), default=None)
        known = [each.climb.limits[0] for each in self._played[last].found] if last else []
        return next((rate * (last or 0) / clients for rate in known if rate), self._search.start_rate)

    def _full_speed(
        self, retry: StepRetry, settings: Settings, series: SearchSeries, row: Row
    ) -> Generator[StepPlan, StepResult, list[StepResult]]:
        """The step at rate ``max``, whose failure is no failure of the row, after one of few messages.

        A server that keeps what it cannot deliver yet would disturb the steps that follow: few messages come first, and
        more only if these arrive quickly.

        Raises:
            ClientCountFailedError: the clients do not fit, or the user skips the row.
        """
        most = max(SATURATION_BYTES // round(settings.mean_bytes), rates.LEAST_MESSAGES)
        receivers = retry.clients * self._scenario.publishers
        messages = min(max(_FIRST_DELIVERIES // receivers, rates.LEAST_MESSAGES), most)
        taken = [(yield self._at_full_speed(retry.clients, settings, series, messages))]
        seconds = _arrived_in_s(taken[0].figures)
        if seconds is not None and seconds < _QUICK_S and messages < most:
            arrived = messages * (1 - (taken[0].figures.totals.client_loss_pct or 0.0) / 100)
            messages = min(max(round(arrived * _LONGER_S / seconds), messages), most)
            taken.append((yield self._at_full_speed(retry.clients, settings, series, messages)))
        if taken[-1].status == "skipped":
            raise ClientCountFailedError("skipped", taken[-1].reason, taken[-1].figures)
        result = next((each for each in reversed(taken) if each.status == "ok"), taken[-1])
        row[self._rates[series]] = result.figures.totals.avg_rx_rate_pps
        row[f"{series}_steps"] = len(taken)
        together = AGGREGATE_MAX if series == "max_rate" else f"{series}_aggregate_pps"
        row[together] = result.figures.rates.aggregate_pps
        row[f"{series}_verdict"] = result.figures.limit.verdict
        if (limited := result.figures.limit.generator_limited) is not None:
            row[f"{series}_{GENERATOR_LIMITED}"] = limited
        return taken

    def _at_full_speed(self, clients: int, settings: Settings, series: SearchSeries, messages: int) -> StepPlan:
        """A step in which each publisher sends this number of messages at rate ``max``."""
        return StepPlan(clients, replace(settings, rate="max", messages=messages), self._short_s, series)

    def _received(self, step: StepResult) -> float | None:
        """The rate of one publisher (messages/s) that reached the subscribers at full speed; None: not known."""
        publishers = self._scenario.publishers
        figures = step.figures
        sent, received = figures.totals.avg_tx_rate_pps, figures.totals.avg_rx_rate_pps
        if figures.passing.group:
            received = figures.rates.aggregate_pps
        known = [rate for rate in (sent, received and received / publishers) if rate]
        return min(known, default=None)

    # --- the row -----------------------------------------------------------------------------------------------------

    def _known(self, played: PlayedScript[HeldSeries]) -> Row:
        """See :class:`hydra.sweep.scripted_sweep.ScriptedSweep`."""
        known: Row = {}
        for each in played.found if played.row[STATUS] == "partial" else ():
            if not each.climb.ended:
                self._fill(known, each.name, each.climb)
                known[f"{each.name}{WHY}"] = SearchInterrupted.why
                known[f"{each.name}_note"] = _note(known, each.name)
        return known

    def _fill(self, row: Row, name: str, climb: LadderClimb) -> None:
        """Writes what is known of a series into a row."""
        kind, held, failing = climb.kind, climb.confirming, climb.failing
        low, high = climb.limits
        row[self._rates[name]] = low if kind in (HeldKind.HELD, HeldKind.AT_LEAST) else None
        figures = held.figures if held else StepFigures()
        latency = figures.latency or Latency()
        row[f"{name}{ANSWER}"] = kind.value
        row[f"{name}{columns.HELD_S}"] = held.plan.duration_s if held else None
        clean, whole = climb.holds if held else (None, None)
        row |= {f"{name}{columns.CLEAN_STEPS}": clean, f"{name}{columns.WHOLE_STEPS}": whole}
        row[f"{name}{columns.TOTAL}"] = low * self._scenario.publishers if held and low is not None else None
        row[f"{name}{columns.LOST}"] = figures.totals.client_loss_pct
        row[f"{name}{columns.P50}"], row[f"{name}{columns.P99}"] = latency.latency_p50_us, latency.latency_p99_us
        row[f"{name}{columns.NOT_HELD}"] = high if kind is not HeldKind.UNCONFIRMED else None
        cause: tuple[Figure, Figure] = columns.cause_of(failing.figures) if failing else (None, None)
        row[f"{name}{columns.CAUSE}"], row[f"{name}{columns.AMOUNT}"] = cause
        row[f"{name}{columns.FAILURES}"] = climb.failures or None
        row[f"{name}{columns.FAILED_BELOW}"] = (
            columns.RungRates(tuple(below)) if (below := climb.failed_below) else None
        )
        if kind is HeldKind.UNCONFIRMED:
            row |= {f"{name}{LOW_PPS}": low, f"{name}{HIGH_PPS}": high}
        row[f"{name}_steps"] = len(climb.steps)
        row[f"{name}_verdict"] = failing.figures.limit.verdict if failing else None
        if failing and failing.figures.limit.generator_limited is not None:
            row[f"{name}_{GENERATOR_LIMITED}"] = failing.figures.limit.generator_limited
        add_host_facts(row, [step for step in (failing, held) if step])
        if failing and climb.cohort.kind != "none":
            cohort = failing.figures.cohort
            row[f"{name}_cohort_loss_pct"] = cohort.cohort_loss_pct
            if name == "slow":
                row["slow_cohort_felt"] = cohort.cohort_felt
        row[f"{name}_note"] = _note(row, name)


def _not_measured(result: StepResult) -> str:
    return "" if result.status == "ok" else result.reason or "no reason was given"


def _arrived_in_s(figures: StepFigures) -> float | None:
    """The seconds in which the messages of a step arrived; None: none did.

    Messages that each subscriber received at once have no rate, but a latency.
    """
    totals, latency = figures.totals, figures.send_latency
    if not totals.total_rx:
        return None
    if rate := totals.avg_rx_rate_pps or figures.rates.rx_span_rate_pps:
        return totals.total_rx / rate
    return max(_AT_ONCE_S, (latency.latency_from_send_max_us or 0.0) / 1e6 if latency else 0.0)


def _note(row: Row, name: str) -> str | None:
    return "; ".join(warning.sentence for warning in of_held(row, name)) or None
