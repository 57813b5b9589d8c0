"""What a proxy drops on one subscriber's connection is found: by whom, how many, and which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from hydra.measure.observation import Observation
from hydra.model import SequenceRange, Settings, StepPlan
from hydra.wire.subscriber_table import table_of
from tests.conformance.bench import Bench, step_settings
from tests.suite.figures import figures
from tests.truth.proxy import Plan, Proxy
from tests.truth.scale import cases
from tests.truth.stage import PUBLISHER, Measured, Stage

pytestmark = pytest.mark.tier("all")

VICTIM, BYSTANDER = 1, 2
RATE, SECONDS = 1000.0, 0.6
SETTINGS = step_settings(rate=RATE, message_size=100, sndhwm=0)
RANGES = 256
"""The most ranges that a report names (docs/control-protocol.md)."""

Loses = Callable[[int], bool]


def ranges_of(sequences: list[int]) -> list[SequenceRange]:
    """The runs in rising sequences."""
    runs: list[SequenceRange] = []
    for sequence in sequences:
        if runs and runs[-1][1] == sequence - 1:
            runs[-1] = (runs[-1][0], sequence)
        else:
            runs.append((sequence, sequence))
    return runs


PLANTED: Sequence[tuple[str, Loses]] = cases(
    [("every 7th", lambda n: n % 7 == 3), ("13 of every 100, and the last ones", lambda n: n % 100 < 13 or n >= 590)],
    [
        ("one", lambda n: n == 217),
        ("the first", lambda n: n == 0),
        ("every other", lambda n: n % 2 == 0),
        ("all but a few", lambda n: n % 97 != 5),
        ("all", lambda _: True),
    ],
)


@pytest.mark.parametrize("loses", [pytest.param(loses, id=name) for name, loses in PLANTED])
def test_what_one_connection_loses_is_found_exactly(bench: Bench, zmq_command: str, loses: Loses) -> None:
    stage = Stage(bench, zmq_command, [VICTIM, BYSTANDER])
    step = stage.next(SETTINGS)
    with Proxy(step.endpoint) as proxy:
        step.connect({VICTIM: proxy.endpoint})
        plan = proxy.plan = Plan(step.epoch, SETTINGS.shared.message_size, lambda n: None if loses(n) else 0)
        measured = step.run(SECONDS)

    sent = measured.publisher.sent
    assert sent >= 0.5 * RATE * SECONDS
    # The proxy saw all that was sent, and dropped what it was to drop.
    assert sorted([*plan.dropped, *(m.sequence for m in plan.handed_on)]) == list(range(sent))
    assert plan.dropped == [n for n in range(sent) if loses(n)]

    (victim,) = measured.subscribers[VICTIM].ledgers
    assert (victim.received, victim.missing) == (sent - len(plan.dropped), len(plan.dropped))
    required = ranges_of(plan.dropped)
    assert [tuple(r) for r in victim.missing_ranges] == required[:RANGES]
    assert victim.truncated == (len(required) > RANGES)
    assert (victim.duplicates, victim.reordered, victim.extra) == (0, 0, 0)

    (bystander,) = measured.subscribers[BYSTANDER].ledgers
    assert (bystander.received, bystander.missing, bystander.missing_ranges) == (sent, 0, [])

    row = figures(observed(measured))
    assert row["client_loss_pct"] == pytest.approx(100 * len(plan.dropped) / (2 * sent), rel=1e-12)
    assert (row["failed_clients"], row["failed_lossy"]) == (1, 1)
    assert row["total_rx"] == (2 * sent - len(plan.dropped)) / 2


def observed(measured: Measured) -> Observation:
    """The step as the runner hands it to ``measure``."""
    return Observation(
        queue="high-water mark",
        batch=100,
        plan=StepPlan(len(measured.subscribers), Settings(rate=RATE, message_size=100), SECONDS),
        publishers={PUBLISHER},
        subscribers=set(measured.subscribers),
        publisher_reports={PUBLISHER: measured.publisher},
        subscriber_reports=table_of(measured.subscribers),
        window_ns=(measured.window.start_ns, measured.window.stop_ns),
    )
