"""What generic code knows of the embedded engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hydra.cluster.engine import Engine, EngineSpec, Opening
from hydra.model import Agent


@contextlib.contextmanager
def _opened(opening: Opening) -> Iterator[Engine]:
    from hydra.cluster.local.engine import LocalEngine

    with contextlib.closing(LocalEngine(opening.agents, opening.folder / "sandbox")) as engine:
        yield engine


def _agents(_master: str, declared: Sequence[Agent], _settings: Any) -> list[Agent]:
    from hydra.cluster.placement import merge

    return merge(declared)


SPEC: Final = EngineSpec(
    name="local",
    masters="local",
    is_local=True,
    open=_opened,
    agents=_agents,
)
