"""The specification of the Mesos engine, by which generic code uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from hydra.engine.interface import Engine
from hydra.engine.specification import EngineFlags, EngineSettings, EngineSpec, Leftovers, Opening
from hydra.mesos.settings import MesosSettings
from hydra.model import Agent
from hydra.options.shared_flags import agents_flags


@contextlib.contextmanager
def _opened(opening: Opening) -> Iterator[Engine]:
    """Registers a framework for the run; checks first that a master answers, before anything is created."""
    from hydra.engine.artifacts.archive import build
    from hydra.mesos.engine import MesosEngine
    from hydra.mesos.master import leader

    leader(opening.master)
    opening.folder.mkdir(parents=True, exist_ok=True)
    artifact = build(opening.programs())
    log = opening.folder / "mesos.log"
    engine = MesosEngine(opening.master, opening.settings, opening.run, artifact, log)
    with contextlib.closing(engine):
        engine.await_offers()
        yield engine


def _agents(master: str, _: Sequence[Agent], settings: MesosSettings) -> list[Agent]:
    from hydra.mesos.master import operator_api

    return operator_api(settings, master).agents()


def _leftovers(master: str, settings: MesosSettings) -> list[dict[str, object]]:
    from hydra.mesos.master import leftovers

    return leftovers(master, settings)


def _end_run(master: str, settings: MesosSettings, run: str) -> list[str]:
    from hydra.mesos.master import end_run

    return end_run(master, settings, run)


SPEC: Final = EngineSpec(
    name="mesos",
    masters="the address of a Mesos master",
    # A bare host name could belong to any engine; zk:// is ZooKeeper, which knows the master.
    handles=lambda master: "://" not in master or master.startswith("zk://"),
    is_local=False,
    open=_opened,
    agents=_agents,
    settings=EngineSettings(
        MesosSettings,
        environment={"principal": "HYDRA_MESOS_PRINCIPAL", "secret": "HYDRA_MESOS_SECRET"},
        secrets=lambda settings: (settings.secret,),
        users=lambda settings: (settings.principal,),
    ),
    flags=EngineFlags(groups=agents_flags),
    leftovers=Leftovers(_leftovers, _end_run),
)
