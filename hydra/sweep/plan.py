"""What a scenario measures: the base of the first of a kind's objects. Pure.

The methods here suit kinds whose rows are single steps at given settings; other kinds override them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

from hydra.errors import Key
from hydra.model import Figure, Scenario, StepPlan
from hydra.sweep.interface import ScenarioPart, Sweep


class RowSettings(NamedTuple):
    """Settings of rows that differ from the scenario's, and their place in the file.

    Attributes:
        key: the table that contains them.
        settings: values by name.
        nth: the position of the value in a list under the setting's name; None: the value is not in a list.
        keys: the keys that may stand beside the settings.
    """

    key: Key
    settings: Mapping[str, Figure]
    nth: int | None = None
    keys: tuple[str, ...] = ()

    def place(self, name: str) -> Key:
        """The key of a setting's value."""
        return (*self.key, name) if self.nth is None else (*self.key, name, self.nth)


class Case(NamedTuple):
    """Rows that are checked together: what they need, and whether the system supports them.

    Attributes:
        scenario: a scenario with only these rows.
        key: the key of these rows in the file; (): they are the whole scenario.
        settings: the settings under that key.
    """

    scenario: Scenario
    key: Key = ()
    settings: Mapping[str, Figure] = {}


class SweepPlan(ScenarioPart, ABC):
    """What a scenario measures, before and while it is measured."""

    in_order: ClassVar[bool] = False
    """Whether each step depends on those before it, so a row has several steps and is repeated as a whole."""
    keeps_time: ClassVar[bool] = True
    """Whether its time limit is near to the time that it usually takes."""

    def completed(self) -> Scenario:
        """The scenario with the values that follow from its sweep."""
        return self._scenario

    def given(self) -> Iterator[RowSettings]:
        """All settings of rows that differ from the scenario's."""
        yield from ()

    def refusals(self) -> Iterator[tuple[Key, str, str]]:
        """The reasons to reject the scenario: the key, what is wrong, what to try."""
        yield from ()

    def cases(self) -> list[Case]:
        """The scenario in parts that are checked one by one: what each needs, and whether the system supports it."""
        return [Case(self._scenario)]

    @abstractmethod
    def begin(self) -> Sweep:
        """The object that decides the next step, without repeats."""

    def parts(self) -> dict[Hashable, Scenario]:
        """The parts that are repeated as a whole, here each subscriber count, by the key that :meth:`part_of` gives."""
        alone = {("", clients): replace(self._sweep, clients=(clients,), repeat=1) for clients in self._sweep.counts}
        return {part: replace(self._scenario, sweep=sweep) for part, sweep in alone.items()}

    def part_of(self, plan: StepPlan) -> Hashable:
        """The key of the part that a step belongs to."""
        return plan.point, plan.clients

    @property
    def sharp_ratio(self) -> float | None:
        """The duration if losses begin at one rate, in expected durations; None: chance has no part in it."""
        return None

    @property
    def aims(self) -> Mapping[str, object] | None:
        """The settings that define its figures, by name; a comparison with a published table shows differing ones.

        None: no published table is of this kind.
        """
        return {}

    @property
    def facts(self) -> dict[str, object]:
        """The settings that may differ between compared runs, except those that rows contain."""
        sweep = self._sweep
        return {"duration_s": sweep.duration_s, "repeat": sweep.repeat, "seconds": sweep.seconds}
