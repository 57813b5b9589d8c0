"""Why the servers of a scenario cannot be restarted by its events, or their clients would return too late."""

from __future__ import annotations

from itertools import pairwise

from hydra.model import IMPAIRMENTS, RESTART, EventSpec, Scenario


def why_no_restart(scenario: Scenario, users: str) -> str:
    """Why the server of this scenario cannot be restarted by an event, or "".

    Args:
        scenario: the scenario.
        users: the address of the user's servers, or "".
    """
    if users:
        return "Hydra never ends your own servers; leave out --servers"
    if any(event.kind in IMPAIRMENTS for event in scenario.events):
        return "subscribers that 'slow' or 'gone' impairs return at times of their own; run the events one at a time"
    if any(rate is not None for rate in scenario.values_of("reconnect_rate")):
        return "subscribers with reconnect_rate end connections of their own; leave it out"
    ends = _restarts(scenario)
    if ends and _ends_s(ends[-1]) >= scenario.sweep.shortest_s:
        return f"the server would return {_ends_s(ends[-1]):g} s after the start, when the step is over; lower for_s"
    if any(_ends_s(one) >= other.at_s for one, other in pairwise(ends)):
        return "two of them overlap; let each begin after the server has returned"
    return ""


def late_return(scenario: Scenario, back_s: float) -> str:
    """A hint if steps usually end before all clients are connected again, or "".

    Args:
        scenario: the scenario.
        back_s: how long clients need after the server was started again, s.
    """
    ends, shortest_s = _restarts(scenario), scenario.sweep.shortest_s
    if not ends or (back := _ends_s(ends[-1]) + back_s) < shortest_s:
        return ""
    return (
        f"{RESTART!r}: clients are usually connected again {back_s:g} s after the server was started again, {back:g} s "
        f"after the start of the step, which lasts {shortest_s:g} s; those that are not count in never_back. Make "
        f"steps longer than {back:g} s (--duration), or let the event begin earlier"
    )


def _restarts(scenario: Scenario) -> list[EventSpec]:
    return sorted((event for event in scenario.events if event.kind == RESTART), key=lambda event: event.at_s)


def _ends_s(event: EventSpec) -> float:
    return event.at_s + event.for_s
