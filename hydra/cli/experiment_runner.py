"""An experiment from its first part to its last one: what is there is kept, what was begun goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from hydra.cli.part_results import done_of
from hydra.config.resolved import ResolvedScenario
from hydra.config.scenario import resolved_from
from hydra.errors import (
    EXIT_GOOD,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    DoesNotFitError,
    HydraError,
    PlacementError,
)
from hydra.report.experiments import PartRecord, Record, write_record, write_tables
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.run.outcome import code_of
from hydra.run.resume import continued
from hydra.store.database import ENDED_KEY, RunStore
from hydra.store.folders import DATABASE
from hydra.system import Done, Experiment, Order, Part

_FINISHED: Final = "finished"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command asks for.

    Attributes:
        experiment: which one.
        order: with what.
        request: for all parts: in which folder, what is replaced in every part, and how.
    """

    experiment: Experiment
    order: Order
    request: RunRequest

    @property
    def folder(self) -> Path:
        """Of the experiment."""
        return self.request.out

    @property
    def overrides(self) -> Mapping[str, object]:
        """Keys that are replaced in every part."""
        return self.request.overrides

    def say(self, text: str) -> None:
        """Shows a line, unless only warnings are shown."""
        self.request.say(text)

    def scenario(self, part: Part, overrides: Mapping[str, object]) -> ResolvedScenario:
        """The scenario of a part with these keys replaced; errors as for ``resolve``."""
        return resolved_from(f"{self.experiment.name}, part {part.name}", part.name, part.scenario, overrides)


def run(asked: Asked, record: Record) -> tuple[int, list[Done]]:
    """Runs every part that is not finished yet; the exit code, and all parts.

    Ctrl-C ends it, and keeps everything that was measured.

    Raises:
        HydraError: it could not go on; what was measured until then is in the tables.
    """
    done: list[Done] = []
    codes: list[int] = []
    ended, error = "failed", ""
    try:
        while (part := asked.experiment.next_part(asked.order, done)) is not None:
            label = _label(asked, len(done) + 1)
            asked.say(f"{label}{part.name}")
            code, each = _take(asked, part, label)
            done.append(each)
            codes.append(code)
            if code == EXIT_INTERRUPTED:
                ended = "interrupted"
                break
            _keep(asked, record, done)
        else:
            ended = _FINISHED
    except KeyboardInterrupt:
        ended = "interrupted"
        codes.append(EXIT_INTERRUPTED)
    except HydraError as e:
        error = str(e)
        done += [begun] if (begun := _begun(asked, part)) else []
        raise
    finally:
        _keep(asked, dataclasses.replace(record, ended=ended, error=error), done)
    return max(codes, default=EXIT_GOOD), done


def _label(asked: Asked, number: int) -> str:
    parts = asked.experiment.parts
    return f"part {number} of {len(parts(asked.order))}: " if parts else f"part {number}: "


def _keep(asked: Asked, record: Record, done: Sequence[Done]) -> None:
    parts = [PartRecord(each.part.name, _ended(asked.folder / each.part.name), each.reason) for each in done]
    record = dataclasses.replace(record, parts=parts)
    write_record(asked.folder, record)
    write_tables(asked.folder, record, asked.experiment.views(asked.order, done))


def _take(asked: Asked, part: Part, label: str) -> tuple[int, Done]:
    """Runs a part, goes on with it, or takes it as it is; its exit code, and what came of it."""
    folder = asked.folder / part.name
    is_there = (folder / DATABASE).is_file()
    load = partial(asked.scenario, part)
    resolved = continued(folder, load, asked.overrides) if is_there else load(asked.overrides)
    if is_there and (kept := _complete(part, resolved, folder)):
        return code_of([dict(row) for row in kept.rows]), kept
    try:
        end = launcher.launch(resolved, asked.request.part(part.name, label))
    except (PlacementError, DoesNotFitError) as e:
        asked.say(f"{part.name} is skipped: {e}")
        return EXIT_INCOMPLETE, Done(part, resolved.scenario, (), reason=str(e))
    with RunStore.open(folder) as store:
        return end.code, done_of(part, resolved, store)


def _complete(part: Part, resolved: ResolvedScenario, folder: Path) -> Done | None:
    """A part that has every row, measured; None: there is something left to do."""
    with RunStore.open(folder) as store:
        results = store.results()
        sweep = resolved.sweep
        if store.meta(ENDED_KEY) != _FINISHED or sweep.next(results) is not None or sweep.offered_again(results):
            return None
        return done_of(part, resolved, store)


def _begun(asked: Asked, part: Part | None) -> Done | None:
    """What was measured of a part that failed; None: nothing was."""
    if part is None or not (asked.folder / part.name / DATABASE).is_file():
        return None
    with RunStore.open(asked.folder / part.name) as store:
        return done_of(part, asked.scenario(part, asked.overrides), store)


def _ended(folder: Path) -> str:
    if not (folder / DATABASE).is_file():
        return ""
    with RunStore.open(folder) as store:
        return str(store.meta(ENDED_KEY, ""))
