"""Every experiment asks for the parts, and shows the tables, that it did when this file's folder was written."""

from __future__ import annotations

import time

import pytest

from hydra.config.file_locations import experiments
from hydra.experiments.experiment import find
from tests.experiments.made_up_rows import GOLDEN, text_of


@pytest.mark.parametrize("name", experiments())
def test_parts_and_tables_are_those_of_the_golden_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "localtime", time.gmtime)  # the lines have the time of this machine
    assert text_of(find("", name)).splitlines() == (GOLDEN / f"{name}.txt").read_text().splitlines()


def test_every_golden_file_is_of_an_experiment() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(experiments())
