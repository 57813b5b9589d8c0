"""Runs whose files are damaged: one line each, and the other runs of a folder are listed all the same."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra import cli
from hydra.config.scenario import load_scenario
from hydra.errors import EXIT_USAGE, HydraError, RunDirectoryError
from hydra.jupyter.recorded import load
from hydra.results.catalog import catalog
from hydra.results.store import DATABASE, RunStore
from hydra.run.resume import scenario_of
from tests.jupyter.runs import make

SMALL = {"sweep.clients": [30, 60, 120], "sweep.vary.msg_batch": [100, 1000], "sweep.duration_s": 10.0}


def _execute(sql: str) -> Callable[[Path], None]:
    def damage(database: Path) -> None:
        with closing(sqlite3.connect(database)) as db, db:
            db.execute(sql)

    return damage


def _cut(database: Path) -> None:
    database.write_bytes(database.read_bytes()[: 3 * 4096])


def _emptied(database: Path) -> None:
    database.write_bytes(b"")


def _noise(database: Path) -> None:
    database.write_bytes(random.Random(1).randbytes(20_000))  # no secret


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a missing table": _execute("DROP TABLE steps"),
    "no scenario": _execute("DELETE FROM run WHERE key = 'scenario'"),
    "a scenario that is none": _execute("UPDATE run SET value = '[1]' WHERE key = 'scenario'"),
    "no JSON": _execute("UPDATE run SET value = '{' WHERE key = 'scenario'"),
    "bytes for text": _execute("UPDATE run SET value = x'ff00ff' WHERE key = 'scenario'"),
    "no plan": _execute("UPDATE steps SET plan = '{}' WHERE epoch = 1"),
    "figures that are none": _execute("UPDATE steps SET figures = '[[]]' WHERE epoch = 1"),
    "cut off": _cut,
    "emptied": _emptied,
    "noise": _noise,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs: ``good``, and ``bad``, which is still to be damaged."""
    make(tmp_path / "good", load_scenario("kafka-batch", SMALL))
    with RunStore.open(tmp_path / "good", writable=True) as store:
        store.set_meta("overrides", SMALL)
    shutil.copytree(tmp_path / "good", tmp_path / "bad")
    return tmp_path


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_run_is_listed_with_the_reason_beside_the_others(
    folder: Path, damage: Callable[[Path], None]
) -> None:
    damage(folder / "bad" / DATABASE)
    good, bad = catalog(folder)
    assert (good["run"], good["steps"], good["why"]) == (str(folder / "good"), 6, "")
    assert (bad["run"], bad["ended"]) == (str(folder / "bad"), "unreadable")
    assert bad["why"]
    assert bad.keys() == good.keys()
    for read in (load, lambda run: scenario_of(run, "kafka-batch", {})):
        with pytest.raises(RunDirectoryError, match="bad") as error:
            read(folder / "bad")
        assert error.value.exit_code == EXIT_USAGE
        assert "\n" not in str(error.value)


def test_the_command_says_so_in_its_table(folder: Path) -> None:
    _noise(folder / "bad" / DATABASE)
    done = CliRunner().invoke(cli.cli, ["runs", str(folder)])
    assert done.exit_code == 0
    (line,) = (line for line in done.output.splitlines() if "bad" in line)
    assert "unreadable" in line
    assert "not a database" in line


def test_no_random_bytes_end_in_a_traceback(folder: Path) -> None:
    """Wherever they lie: a run is read as it is, or refused."""
    database = folder / "bad" / DATABASE
    whole, refused = database.read_bytes(), 0
    for seed in range(150):
        chance = random.Random(seed)  # no secret
        torn = bytearray(whole)
        at = chance.randrange(len(torn))
        torn[at : at + 40] = chance.randbytes(len(torn[at : at + 40]))
        database.write_bytes(torn)
        assert len(catalog(folder)) == 2
        try:
            load(folder / "bad")
        except HydraError:
            refused += 1
    assert 10 < refused < 150


def test_a_run_that_does_not_match_its_scenario_is_refused_before_anything_starts(folder: Path) -> None:
    _execute("UPDATE steps SET plan = replace(plan, '\"clients\":30', '\"clients\":31')")(folder / "bad" / DATABASE)
    scenario_of(folder / "good", "kafka-batch", {})
    with pytest.raises(RunDirectoryError, match=r"do not belong to its scenario.*clients=31"):
        scenario_of(folder / "bad", "kafka-batch", {})
