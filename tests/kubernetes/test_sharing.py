"""Which instance of the rig is whose, without any rig."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kubernetes import sharing
from tests.kubernetes.places import Place
from tests.kubernetes.processes import RigError
from tests.kubernetes.sharing import by_hand, own, shared

SESSION = "PYTEST_XDIST_TESTRUNUID"


class FakeRig:
    """Counts what is done to its instance."""

    ups: dict[int, int]
    up_now: set[int]

    def __init__(self, number: int, specs: Sequence[object] = ()) -> None:
        self.place = Place(number)

    @property
    def is_up(self) -> bool:
        return self.place.number in self.up_now

    def up(self) -> None:
        self.up_now.add(self.place.number)
        self.ups[self.place.number] = self.ups.get(self.place.number, 0) + 1

    def down(self) -> None:
        self.up_now.discard(self.place.number)

    def bring(self) -> str:
        return "rig.local/hydra:1"


@pytest.fixture(autouse=True)
def rigs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[FakeRig]:
    monkeypatch.setattr(sharing, "MACHINE", tmp_path)
    monkeypatch.setattr(sharing, "_TAKING", tmp_path / "taking")
    monkeypatch.setattr(sharing, "Rig", FakeRig)
    monkeypatch.setattr(FakeRig, "ups", {}, raising=False)
    monkeypatch.setattr(FakeRig, "up_now", set(), raising=False)
    monkeypatch.delenv("HYDRA_RIG", raising=False)
    monkeypatch.setenv(SESSION, "one")
    return FakeRig


def test_the_workers_of_a_session_share_an_instance_until_the_last_one_ends(rigs: type[FakeRig]) -> None:
    first = shared()
    number = first.__enter__().place.number
    with shared() as rig:
        assert rig.place.number == number
        first.__exit__(None, None, None)
        assert rigs.up_now == {number}
    assert rigs.up_now == set()
    assert rigs.ups == {number: 1}


def test_sessions_and_tests_that_break_their_rig_have_instances_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared() as first, own() as broken:
        monkeypatch.setenv(SESSION, "two")
        with shared() as others:
            assert len({each.place.number for each in (first, broken, others)}) == 3


def test_what_a_killed_session_left_is_taken_and_what_a_human_started_is_not(rigs: type[FakeRig]) -> None:
    sharing._users(1).write_text("a session that was killed")
    rigs.up_now.update({1, 2})
    with own() as first, own() as second:
        assert (first.place.number, second.place.number) == (1, 3)


def test_nobody_ends_by_hand_what_tests_use() -> None:
    with shared() as rig, pytest.raises(RigError, match="tests use instance"), by_hand(rig.place.number):
        pass


def test_a_named_instance_stays_up(rigs: type[FakeRig], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYDRA_RIG", "4")
    with shared(), shared() as rig:
        assert rig.place.number == 4
    assert rigs.up_now == {4}
    assert rigs.ups == {4: 1}


def test_there_is_an_end_to_instances(rigs: type[FakeRig]) -> None:
    rigs.up_now.update(range(1, 10))
    with pytest.raises(RigError, match="in use"), shared():
        pass
