"""``hydra report --images``: the files, and what can be in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import plotly.graph_objects as go
import psutil
import pytest

from hydra.errors import EXIT_INTERRUPTED, EXIT_USAGE, HydraError, MissingDependencyError, UsageError
from hydra.jupyter import images
from hydra.jupyter.blocks import Plot, file_name
from hydra.jupyter.command import write_report
from tests.integration.command import Hydra
from tests.jupyter.runs import FIXED, make
from tests.suite.waiting import LONG_S, wait_until

PNG = b"\x89PNG\r\n\x1a\n"


def plots(*names: str) -> list[Plot]:
    figure = go.Figure([go.Scatter(x=[1, 2], y=[3, 4])], layout={"height": 300})
    return [Plot(figure, name) for name in names]


@pytest.fixture
def chromium(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is found as Chromium, whether or not one is installed."""
    program = tmp_path_factory.mktemp("bin") / "chromium"
    program.touch(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(program))


@pytest.mark.tier("all")
def test_every_plot_is_a_png_and_an_svg(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    written = images.write_images(plots("loss", "rates", "loss"), folder)
    names = ["loss.png", "loss.svg", "rates.png", "rates.svg", "loss-2.png", "loss-2.svg"]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in folder.iterdir()) == sorted(names), "no draft is left"
    for path in written:
        begin = path.read_bytes()[:200]
        assert begin.startswith(PNG) if path.suffix == ".png" else b"<svg" in begin


@pytest.mark.tier("all")
def test_an_interrupted_chromium_leaves_nothing(tmp_path: Path) -> None:
    run = make(tmp_path / "run", FIXED, steps=1)
    words = [*Hydra, "report", str(run), "--images", "auto"]
    # The path of Chromium's socket has to be short.
    with tempfile.TemporaryDirectory(prefix="hydra-test-") as scratch:
        with subprocess.Popen(words, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": scratch}) as process:
            me = psutil.Process(process.pid)
            wait_until(lambda: [*Path(scratch).glob("hydra-images-*/*/Default")], "Chromium's profile", LONG_S)
            children = me.children(recursive=True)
            process.send_signal(signal.SIGINT)
            _, text = process.communicate(timeout=LONG_S)
        assert process.returncode == EXIT_INTERRUPTED
        assert text.strip() == b""
        assert not any(child.is_running() for child in children)
        assert list(Path(scratch).iterdir()) == []
    assert not (run / "images").exists()


@pytest.mark.usefixtures("chromium")
def test_images_that_cannot_be_drawn_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import kaleido

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the browser\nended")

    monkeypatch.setattr(kaleido, "write_fig_from_object_sync", broken)
    with pytest.raises(HydraError, match="Chromium could not draw the plots: the browser ended"):
        images.write_images(plots("loss"), tmp_path / "images")
    assert list(tmp_path.rglob("*")) == []


def test_a_missing_package_is_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make(tmp_path / "run", FIXED, steps=1)
    monkeypatch.setattr(images, "find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"-m pip install 'kaleido>=1.0'$") as error:
        write_report(run, images="auto")
    assert error.value.exit_code == EXIT_USAGE
    assert [path.name for path in run.iterdir()] == ["run.db"]


@pytest.mark.parametrize(("path", "text"), [("", "apt-get install chromium"), ("/none", "BROWSER_PATH is /none")])
def test_a_missing_chromium_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, text: str) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BROWSER_PATH", path)
    with pytest.raises(MissingDependencyError, match=text) as error:
        images.refuse_images(tmp_path / "images")
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_file_in_the_way_is_told(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is no folder"):
        images.refuse_images(tmp_path / folder)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_title_is_the_name_of_a_file() -> None:
    assert file_name("Difference of each row, with its 95 % interval") == "difference-of-each-row-with-its-95-interval"
    assert [file_name("Loss"), file_name("…")] == ["loss", "plot"]
