"""The notebook that starts a sweep."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from hydra.errors import HydraError
from hydra.jupyter import notebook_run
from hydra.store.database import RunStore
from tests.jupyter.kernel import execute

NOTEBOOK = Path(notebook_run.__file__).with_name("sweep.ipynb")


@pytest.mark.tier("all")
def test_the_notebook_runs_a_sweep_and_plots_it(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    (parameters,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    parameters.source = 'SCENARIO, CLIENTS, RATE, DURATION, OUT = "zmqfixed", [2], 200, 0.3, "sweep"'
    done = execute(notebook, tmp_path)
    with RunStore.open(tmp_path / "sweep") as store:
        assert [(r.plan.clients, r.plan.settings.rate, r.status) for r in store.results()] == [(2, 200.0, "ok")]
        assert store.meta("ended") == "finished"
    outputs = [output for cell in done.cells for output in cell.get("outputs", [])]
    text = "".join(o.text for o in outputs if o.output_type == "stream")
    assert text.startswith("$ hydra zmqfixed --out sweep --clients 2 --rate 200 --duration 0.3\n")
    plots = [plot for o in outputs if (plot := o.get("data", {}).get("application/vnd.plotly.v1+json"))]
    assert len(plots) == 3
    assert all(plot["data"] for plot in plots)


@pytest.mark.tier("all")
def test_a_sweep_that_cannot_run_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HydraError, match="hydra zmqfixed ended with exit code 2"):
        notebook_run.start("zmqfixed", tmp_path / "run", clients="many")
    assert "'many' is not a list of whole numbers" in capsys.readouterr().out


def test_flags_become_words() -> None:
    words = notebook_run.command(
        "zmqfixed", Path("out"), {"clients": [1, 2], "message_size": 64, "nodrop": True, "rate": None}
    )
    assert words == ["zmqfixed", "--out", "out", "--clients", "1,2", "--message-size", "64", "--nodrop"]


def test_the_notebook_is_valid_empty_and_thin() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.outputs for cell in code] == [[]] * len(code)
    assert [cell.execution_count for cell in code] == [None] * len(code)
    assert all(len(cell.source.splitlines()) <= 5 for cell in code)


def test_a_sweep_without_a_name_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(HydraError, match="no sweep is named") as error:
        notebook_run.start("", tmp_path / "run")
    assert "SCENARIO" in error.value.remedy
    assert not (tmp_path / "run").exists()
