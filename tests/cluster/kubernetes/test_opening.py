"""What is refused before a cluster is asked, and what a run that begins makes of its address."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from hydra.cluster.driven import Driver
from hydra.cluster.engine import Opening
from hydra.cluster.kubernetes import opening as module
from hydra.cluster.kubernetes.pods import Family
from hydra.cluster.kubernetes.removal import TRIES_S
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.errors import ClusterError, UsageError
from hydra.system import Program


class StartedError(Exception):
    """The cluster would be asked now."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the run would be."""

    def started(*_: object) -> NoReturn:
        raise StartedError

    monkeypatch.setattr(module, "check_context", lambda _: None)
    monkeypatch.setattr(module, "Driver", started)
    monkeypatch.delenv(module.POD_IP, raising=False)
    return tmp_path / "run"


def begin(folder: Path, settings: KubernetesSettings) -> None:
    def programs() -> Sequence[Program]:
        return ()

    with module.begun(Opening("k8s://", (), settings, "run", folder, programs)):
        pass


@pytest.mark.parametrize("advertise", ["127.0.0.1", "localhost", "0.0.0.0", "192.0.2.1"])  # is refused
def test_an_address_that_no_pod_can_reach_is_refused_before_anything_is_made(folder: Path, advertise: str) -> None:
    with pytest.raises(UsageError, match=f"--advertise {advertise} "):
        begin(folder, KubernetesSettings(advertise=advertise))
    assert not folder.exists()


@pytest.mark.parametrize(
    ("advertise", "pod", "own"),
    [("127.0.0.1", {"hostNetwork": True}, ""), ("127.0.0.1", {}, "127.0.0.2"), ("", {}, "")],
)
def test_what_a_pod_may_reach_is_tried(
    folder: Path, monkeypatch: pytest.MonkeyPatch, advertise: str, pod: dict[str, object], own: str
) -> None:
    if own:  # this is a Pod: the cluster file may be another machine's
        monkeypatch.setenv(module.POD_IP, own)
    with pytest.raises(StartedError):
        begin(folder, KubernetesSettings(advertise=advertise, pod=pod))


@pytest.mark.parametrize("hello", [{"python": "3.11"}, {"python": "3.11", "hydra": "0.0.1", "digest": "d"}])
def test_an_image_with_another_hydra_is_what_its_user_gave(hello: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="the image hydra:1 holds"):
        keep({"kind": "keeper", "hello": hello})


def keep(*said: dict[str, Any]) -> None:
    """Has a keeper made, of whom the driver then says this."""
    told = [
        {"kind": "door", "port": 1, "message": ""},
        {"kind": "made", "tag": "hydra-run-keeper", "name": "hydra-run-keeper", "uid": "u"},
        *said,
    ]
    driver = SimpleNamespace(closed=False, send=lambda _: None, receive=lambda _: [told.pop(0)] if told else [])
    family = Family("run", "lab", {}, KubernetesSettings(), "hydra:1", archive=False)
    module._Beginning(cast(Driver, driver), lambda _: None).keep(family, "10.0.0.1")


def offline(status: int) -> dict[str, Any]:
    return {"kind": "offline", "status": status, "message": "no"}


@pytest.mark.parametrize("status", [0, 401, 429, 500, 503])
def test_a_watch_that_is_refused_for_a_moment_does_not_end_a_beginning(status: int) -> None:
    with pytest.raises(UsageError, match="the image hydra:1 holds"):  # so its keeper has been heard
        keep(offline(status), {"kind": "keeper", "hello": {"python": "3.11"}})


def test_a_watch_that_is_refused_for_good_ends_a_beginning_at_once() -> None:
    with pytest.raises(ClusterError, match="cannot watch pods"):
        keep(offline(403), {"kind": "keeper", "hello": {"python": "3.11"}})


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ([offline(401)], "cannot watch pods: .*who asks"),
        ([offline(401), {"kind": "online"}], "the keeper's Job made no Pod within 30 s"),
    ],
)
def test_a_watch_that_is_refused_for_a_minute_ends_a_beginning_with_the_reason(
    said: list[dict[str, Any]], refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with pytest.raises(ClusterError, match=refusal):
        keep(*said)
    assert (next(seconds) > TRIES_S) == (len(said) == 1)
