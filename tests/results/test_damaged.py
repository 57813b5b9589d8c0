"""Runs whose files are damaged: one line each, and the other runs of a folder are listed all the same."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from hydra.cli import main
from hydra.config.scenario import load_scenario
from hydra.errors import EXIT_USAGE, HydraError, RunDirectoryError
from hydra.jupyter.run_data import load
from hydra.report.run_catalog import catalog
from hydra.run.run_metadata import scenario_of
from hydra.store.database import DATABASE, RunStore
from tests.jupyter.runs import make
from tests.results.damages import DAMAGES, _execute

SMALL = {"sweep.clients": [30], "sweep.vary.msg_batch": [100, 1000], "sweep.duration_s": 10.0}


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
    folder: Path, damage: Callable[[Path], object]
) -> None:
    damage(folder / "bad" / DATABASE)
    good, bad = catalog(folder)
    assert (good["run"], good["steps"], good["why"]) == (str(folder / "good"), 2, "")
    assert (bad["run"], bad["ended"]) == (str(folder / "bad"), "unreadable")
    assert bad["why"]
    assert bad.keys() == good.keys()
    for read in (load, lambda run: scenario_of(run, "kafka-batch", {})):
        with pytest.raises(RunDirectoryError, match="bad") as error:
            read(folder / "bad")
        assert error.value.exit_code == EXIT_USAGE
        assert "\n" not in str(error.value)


def test_the_command_says_so_in_its_table(folder: Path) -> None:
    DAMAGES["noise"](folder / "bad" / DATABASE)
    done = CliRunner().invoke(main.cli, ["runs", str(folder)])
    listed, why = (line for line in done.output.splitlines() if "bad" in line)
    assert ("unreadable" in listed, "not a database" in why, done.exit_code) == (True, True, 0)


def test_a_full_file_system_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / DATABASE).write_bytes(b"a database without its index is not read either")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
    with pytest.raises(RunDirectoryError, match="its file system is full: free some space"):
        RunStore.open(tmp_path)


@pytest.mark.tier("test")
def test_no_random_bytes_end_in_a_traceback(folder: Path) -> None:
    """Wherever they lie: a run is read as it is, or refused."""
    database = folder / "bad" / DATABASE
    whole, refused = database.read_bytes(), 0
    for seed in range(60):
        chance = random.Random(seed)  # no secret
        torn = bytearray(whole)
        at = chance.randrange(len(torn))
        torn[at : at + 400] = chance.randbytes(len(torn[at : at + 400]))
        database.write_bytes(torn)
        assert len(catalog(folder)) == 2
        try:
            load(folder / "bad")
        except HydraError:
            refused += 1
    assert 5 < refused < 60


def test_a_run_that_does_not_match_its_scenario_is_refused_before_anything_starts(folder: Path) -> None:
    _execute("UPDATE steps SET plan = replace(plan, '\"clients\":30', '\"clients\":31')")(folder / "bad" / DATABASE)
    scenario_of(folder / "good", "kafka-batch", {})
    with pytest.raises(RunDirectoryError, match=r"do not belong to its scenario.*clients=31"):
        scenario_of(folder / "bad", "kafka-batch", {})
