"""A command is handed to the cluster as a whole, or nothing of it stays there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from hydra.cluster.engine import Relocation
from hydra.cluster.kubernetes.access import Api
from hydra.cluster.kubernetes.in_cluster import relocating
from hydra.cluster.kubernetes.in_cluster.place import NotMadeError, Place
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.errors import ClusterError, ConfigError, Terminated

OWNER: dict[str, Any] = {"metadata": {"name": "hydra-first-controller", "uid": "u"}}


def asked(folder: Path, *words: str) -> Relocation:
    return Relocation("kubernetes", KubernetesSettings(), ["zmqfixed", "--quiet", *words], folder / "runs" / "first")


@pytest.fixture
def tidied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs of which what is in the cluster has been removed."""
    seen: list[str] = []
    place = Place(cast(Api, None), "kubernetes", "lab", "first")
    monkeypatch.setattr(Place, "of", lambda *_: place)
    monkeypatch.setattr(Place, "pod", lambda _: None)
    monkeypatch.setattr(Place, "create", lambda *_: OWNER)
    monkeypatch.setattr(Place, "tidy", lambda self: seen.append(self.run))
    return seen


@pytest.mark.parametrize(
    ("where", "what", "stays"),
    [
        ("jobs", NotMadeError("there is one"), True),
        ("jobs", ClusterError("no answer"), False),
        ("jobs", Terminated(), False),
        ("secrets", NotMadeError("a quota"), False),
        ("secrets", KeyboardInterrupt(), False),
        ("secrets", Terminated(), False),
        ("begin", ClusterError("no image"), False),
        ("begin", KeyboardInterrupt(), False),
        ("begin", Terminated(), True),
        ("begin", RuntimeError("a fault of ours"), False),
    ],
)
def test_what_is_half_made_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tidied: list[str], where: str, what: BaseException, stays: bool
) -> None:
    def create(_: Place, kind: str, __: object) -> dict[str, Any]:
        if kind == where:
            raise what
        return OWNER

    def begin(_: Place, __: object) -> None:
        raise what

    monkeypatch.setattr(Place, "create", create)
    monkeypatch.setattr(relocating, "await_begin", begin)
    if isinstance(what, KeyboardInterrupt):
        assert relocating.relocate(asked(tmp_path)) == 130
    else:
        with pytest.raises(type(what)):
            relocating.relocate(asked(tmp_path))
    assert tidied == ([] if stays else ["first"])


def test_a_cluster_file_that_cannot_be_used_is_refused_here(tmp_path: Path, tidied: list[str]) -> None:
    (tmp_path / "mine.toml").write_text("[cluster]\nrespawns = -1\n")
    with pytest.raises(ConfigError, match=r"mine\.toml: .*respawns must be 0 or more"):
        relocating.relocate(asked(tmp_path, "--config", str(tmp_path / "mine.toml")))
    assert not tidied


@pytest.mark.parametrize(("words", "shipped"), [((), False), (("--otlp", "http://collector:4318"), True)])
def test_variables_of_exports_go_along_with_otlp_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tidied: list[str], words: tuple[str, ...], shipped: bool
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=t0ken")
    made: list[str] = []

    def create(_: Place, __: str, body: object) -> dict[str, Any]:
        made.append(str(body))
        return OWNER

    def begin(_: Place, __: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Place, "create", create)
    monkeypatch.setattr(relocating, "await_begin", begin)
    assert relocating.relocate(asked(tmp_path, *words)) == 130
    assert any("OTEL_EXPORTER_OTLP_HEADERS" in each for each in made) == shipped
