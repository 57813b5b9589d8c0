"""The specification of the local engine, by which generic code uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from hydra.engine.interface import Engine
from hydra.engine.specification import EngineSpec, Opening
from hydra.errors import UsageError
from hydra.model import Agent


@contextlib.contextmanager
def _opened(opening: Opening) -> Iterator[Engine]:
    _require(opening.agents)
    _require_sockets()
    from hydra.local.engine import LocalEngine

    with contextlib.closing(LocalEngine(opening.agents, opening.folder / "sandbox")) as engine:
        yield engine


def _agents(_master: str, declared: Sequence[Agent], _settings: Any) -> list[Agent]:
    _require(declared)
    from hydra.engine.placement import merge

    return merge(declared)


def _require(declared: Sequence[Agent]) -> None:
    if not declared:
        raise UsageError(
            "the cluster file declares no agents, on which --master local runs",
            "write [[agents]] as in conf/hydra.toml, or name another --master",
        )


def _require_sockets() -> None:
    """Refuses a folder for sockets in which no group could make its own, before anything starts."""
    from hydra.client.linux_process import sockets_folder

    folder = sockets_folder()
    try:
        # Permissions are no proof, as for the run's directory.
        Path(mkdtemp(prefix="hydra-", dir=folder)).rmdir()
    except OSError as e:
        raise UsageError(
            f"no folder for the sockets of clients can be made in {folder}: {e.strerror}",
            "set TMPDIR to a folder that can be written",
        ) from e


SPEC: Final = EngineSpec(
    name="local",
    masters="local",
    is_local=True,
    open=_opened,
    agents=_agents,
)
