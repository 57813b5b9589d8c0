"""What runs have left on a Mesos cluster, and its end."""

from __future__ import annotations

from hydra.errors import UsageError
from hydra.mesos.master import OperatorApi, leader
from hydra.mesos.settings import MesosSettings


def leftovers(master: str, settings: MesosSettings) -> list[dict[str, object]]:
    """A row for each run that a master still knows, for ``hydra ps``.

    Raises:
        UsageError, ClusterError: there is no such master, or it does not tell.
    """
    prefix = settings.framework("")
    return [
        {
            "run": framework.name.removeprefix(prefix),
            "framework": framework.id,
            "connected": "yes" if framework.connected else "no",
            "tasks": len(framework.tasks),
            "agents": len({agent for _, _, agent in framework.tasks}),
        }
        for framework in operator_api(settings, master).frameworks()
        if framework.name.startswith(prefix)
    ]


def end_run(master: str, settings: MesosSettings, run: str) -> list[str]:
    """Tears down what is left of a run; tells its frameworks.

    Raises:
        UsageError: the master knows no such run.
        ClusterError: it does not answer, or refuses.
    """
    api = operator_api(settings, master)
    found = [framework.id for framework in api.frameworks() if framework.name == settings.framework(run)]
    if not found:
        raise UsageError(f"the master knows no run {run!r}", f"hydra ps --master {master} lists those it knows")
    for framework in found:
        api.teardown(framework)
    return [f"framework {framework}" for framework in found]


def operator_api(settings: MesosSettings, master: str) -> OperatorApi:
    """The master that leads, asked as whom the settings name.

    Raises:
        UsageError, ClusterError: there is no such master.
    """
    return OperatorApi(leader(master), settings.principal, settings.secret)
