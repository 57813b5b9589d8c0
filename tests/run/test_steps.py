"""What a step waits for before it is measured."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import DoesNotFitError
from hydra.model import Scenario, Settings, StepPlan
from hydra.run import step_sequence
from hydra.sweep.grid import GridSweep
from tests.run.contexts import context


@pytest.mark.parametrize(("rest_s", "waits"), [(2.4, [2.4]), (0.0, [])])
def test_the_system_is_left_alone_before_a_step_until_the_user_passes_its_row_over(
    monkeypatch: pytest.MonkeyPatch, rest_s: float, waits: list[float]
) -> None:
    def full(*_: object) -> None:
        raise DoesNotFitError("the machine is full")

    monkeypatch.setattr(step_sequence.StepSequence, "_require_room", full)
    scenario = Scenario("z", "zmq", "native", "rates", GridSweep(clients=(2,), duration_s=0.2))
    controller, observer, store = MagicMock(), MagicMock(), MagicMock()
    store.last_epoch.return_value = 1
    run = context(
        resolved=ResolvedScenario(scenario, MagicMock()),
        controller=controller,
        observer=observer,
        store=store,
        note=MagicMock(),
    )
    taken = step_sequence.StepSequence(run, MagicMock(), MagicMock())
    taken.take(StepPlan(2, Settings(rate=100.0), 0.2, rest_s=rest_s))
    assert [call.args[1] for call in controller.wait_until.call_args_list] == waits
    for call in controller.wait_until.call_args_list:
        for passes_over in (True, False):
            observer.passes_over = passes_over
            assert call.args[0]() is passes_over
