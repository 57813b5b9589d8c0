"""The facts of the machines in a comparison of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hydra.analysis.compared_runs import differences
from hydra.config.scenario import resolve
from hydra.model import MachineRecord
from hydra.report.comparison_input import load_sides
from hydra.store.database import MACHINES_KEY, RunStore
from hydra.store.stored_scenario import as_stored
from tests.machine.trees import machine


def stored(folder: Path, machines: dict[str, MachineRecord] | None) -> Path:
    metadata = {"scenario": as_stored(resolve("zmqfixed").scenario), "name": folder.name}
    with RunStore.create(folder, metadata) as store:
        if machines is not None:
            store.set_meta(MACHINES_KEY, machines)
    return folder


def test_a_comparison_names_the_facts_in_which_the_machines_differ(tmp_path: Path) -> None:
    one = machine("bare-metal-intel", tmp_path / "tree")
    other = replace(one, governor="performance", boost=False, swap_used_bytes=0)
    runs = [stored(tmp_path / "a", {"h": one}), stored(tmp_path / "b", {"here": other, "there": one})]
    sides, _ = load_sides(runs)
    found = {each.what: each.values for each in differences([side.facts for side in sides])}
    assert found == {
        "machines.governor": ("powersave", "performance / powersave"),
        "machines.boost": ("yes", "no / yes"),
    }


def test_hosts_that_exchange_a_fact_differ(tmp_path: Path) -> None:
    one = machine("bare-metal-intel", tmp_path / "tree")
    other = replace(one, governor="performance")
    runs = [stored(tmp_path / "a", {"h": one, "i": other}), stored(tmp_path / "b", {"h": other, "i": one})]
    sides, _ = load_sides(runs)
    assert {each.what: each.values for each in differences([side.facts for side in sides])} == {
        "machines.h.governor": ("powersave", "performance"),
        "machines.i.governor": ("performance", "powersave"),
    }


def test_a_run_without_a_record_of_its_machine_has_no_machine_to_compare(tmp_path: Path) -> None:
    one = machine("bare-metal-amd", tmp_path / "tree")
    sides, _ = load_sides([stored(tmp_path / "a", {"h": one}), stored(tmp_path / "b", None)])
    assert differences([side.facts for side in sides]) == []
