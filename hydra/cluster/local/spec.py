"""What generic code knows of the embedded engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from hydra.cluster.engine import Engine, EngineSpec, Opening
from hydra.cluster.local.engine import LocalEngine
from hydra.cluster.placement import merge


@contextlib.contextmanager
def _opened(opening: Opening) -> Iterator[Engine]:
    with contextlib.closing(LocalEngine(opening.agents, opening.folder / "sandbox")) as engine:
        yield engine


SPEC: Final = EngineSpec(
    name="local",
    masters="local",
    is_local=True,
    open=_opened,
    agents=lambda _master, declared, _settings: merge(declared),
)
