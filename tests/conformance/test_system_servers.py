"""What clients of any system must do if the server is killed and returns, and that nothing of them is left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hydra.model import RESTART, Role
from hydra.wire.messages import Connect, HostClock
from tests.conformance.bench import CLIENT, ONE, Bench
from tests.conformance.system_stage import Subject, SystemStage, SystemStep, command
from tests.conformance.systems import each
from tests.conformance.zmq_subscribing import got
from tests.suite.waiting import LONG_S

pytestmark = pytest.mark.tier("all")
STEADY: dict[str, Any] = {"rate": 500.0, "message_size": 100, "burst": 50}


def returns(subject: Subject) -> bool:
    """Whether Hydra can restart the server of this system with these settings."""
    event = subject.spec.settings.events.get(RESTART)
    return not subject.group and event is not None and not event.why_not(subject.scenario)


@pytest.fixture
def own_stage(subject: Subject, tmp_path: Path, stage: SystemStage) -> Iterator[SystemStage]:
    """The system with a server that the test kills."""
    with contextlib.closing(SystemStage(subject, tmp_path / "own")) as made:
        yield made


def restart(step: SystemStep, down_s: float = 0.2) -> None:
    """Kills the server, and waits until it is back."""
    peer = step.bench.peer
    killed = step.system.servers.kill()
    peer.stays(lambda: True, "", down_s)
    killed.start()
    peer.wait(killed.is_back, "the server", LONG_S)


@each(returns)
def test_a_publisher_accounts_for_its_messages_and_comes_back(
    bench: Bench, subject: Subject, own_stage: SystemStage
) -> None:
    bench.launch(command(subject, "publisher"), "", first_id=CLIENT)
    with contextlib.closing(SystemStep(subject, own_stage, bench)) as step:
        step.publisher(1, **STEADY)
        window = bench.start([CLIENT], 1, 3.0)
        bench.await_moment(window, 0.3)
        restart(step)
        bench.await_end(window)
        report = bench.publisher_report(CLIENT, 1, window, LONG_S)
        undecided = sum(last - first + 1 for first, last in report.unacknowledged)
        assert report.acknowledged + undecided == report.sent
        assert report.acknowledged > 0
    with contextlib.closing(SystemStep(subject, own_stage, bench)) as step:
        step.publisher(2, **STEADY)
        _, report = bench.publish(CLIENT, 2, 0.2)
        assert 0 < report.sent == report.acknowledged
        bench.peer.wait(lambda: len(step.data(2)) >= report.sent, "all messages")


@each(returns)
def test_a_subscriber_comes_back_and_reports_how_long_it_was_away(
    bench: Bench, subject: Subject, own_stage: SystemStage
) -> None:
    bench.launch(command(subject, "subscriber"), "", first_id=CLIENT)
    with contextlib.closing(SystemStep(subject, own_stage, bench)) as step:
        # Subscribers connect again in a step that a server's restart is planned for.
        step.further = {"connect": Connect(clock=HostClock(0, 0))}
        window = step.begun(1, ONE, seconds=4.0)
        step.write(1, range(50), ONE)
        got(bench, 1, 50)
        restart(step)
        step.renew()
        sent = 50
        while not window.expired(-0.3):
            step.write(1, [sent], ONE)
            sent += 1
            bench.peer.stays(lambda: True, "", 0.05)
        step.further = {}
        report = step.report(1, {ONE: sent}, drain_max_s=2.0)
        (ledger,) = report.ledgers
        assert ledger.received + ledger.missing == sent
        assert ledger.received > 50
        if subject.implementation.shows_losses != "never":
            ((lost_ns, back_ns, _),) = (report.system or {})["connection"]["disconnections"]
            assert 0 < lost_ns < back_ns
    with contextlib.closing(SystemStep(subject, own_stage, bench)) as step:
        step.begun(2, ONE)
        step.write(2, range(20), ONE)
        assert [x.missing for x in step.report(2, {ONE: 20}).ledgers] == [0]


@each(lambda subject: not subject.group)
@pytest.mark.parametrize("role", ["publisher", "subscriber"])
def test_all_its_processes_end_in_the_middle_of_a_step(
    bench: Bench, subject: Subject, stage: SystemStage, role: Role
) -> None:
    program = bench.launch(command(subject, role), "", first_id=CLIENT)
    with contextlib.closing(SystemStep(subject, stage, bench)) as step:
        if role == "publisher":
            step.publisher(1, rate="max")
        else:
            step.subscribers(1, [ONE])
        bench.start([CLIENT], 1, 30)
        bench.quit()
        assert bench.await_exit(program) == 0
