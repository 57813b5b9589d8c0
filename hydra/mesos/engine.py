"""The Mesos engine: groups are command tasks on the agents of a Mesos cluster.

:class:`~hydra.mesos.state.MesosState` decides; ``driver.py`` holds the connection to the master.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Final

from hydra.client.network_interfaces import resolved
from hydra.engine.artifacts.archive import Artifact
from hydra.engine.artifacts.archive_server import ArtifactServer
from hydra.engine.artifacts.start_script import RUNNER, rewritten
from hydra.engine.driver_engine import DriverEngine, DriverProcess
from hydra.errors import ClusterError, MissingDependencyError, UsageError
from hydra.mesos import translate
from hydra.mesos.master import CREDENTIALS, INSTALL, hosts, leftovers, route_to
from hydra.mesos.settings import MesosSettings
from hydra.mesos.state import MesosState, TaskProgram
from hydra.model import Group, Launch
from hydra.system import Waiting

OFFERS_WITHIN_S: Final = 30.0
"""How long a run waits at its beginning for the first offers."""
_SETTLE_S: Final = 3.0
"""How long a run waits for further agents after the first offers."""
_CONFIRM_WITHIN_S: Final = 1.0
_STOP_WITHIN_S: Final = 12.0
"""The teardown is one HTTP call, for which pymesos waits 10 s at most."""


class MesosEngine(DriverEngine[MesosState]):
    """Runs groups as tasks of a framework of its own, which ends with the engine.

    A group starts when its agent is offered, within about a second.
    """

    def __init__(
        self,
        master: str,
        settings: MesosSettings,
        run: str,
        artifact: Artifact | None,
        log: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the driver's process and, unless ``settings.artifact`` names a copy, the archive's server.

        Args:
            master: ``host:port`` or ``zk://…``.
            settings: the engine's settings.
            run: the run's name, which the framework's name contains.
            artifact: the archive for agents; None if agents have everything that groups need.
            log: the log file of the driver's process.
            clock: a clock in seconds.

        Raises:
            MissingDependencyError: pymesos is not installed.
            UsageError: ``master`` or ``settings.advertise`` is no address.
            ClusterError: there is no route to the master.
        """
        if importlib.util.find_spec("pymesos") is None or importlib.util.find_spec("http_parser") is None:
            raise MissingDependencyError("--master needs pymesos, which is not installed", INSTALL)
        hosts(master)
        address = resolved(settings.advertise) if settings.advertise else route_to(master)
        self._master = master
        self._settings = settings
        with contextlib.ExitStack() as stack:
            url = settings.artifact
            if artifact is not None and not url:
                server = ArtifactServer(artifact, address)
                stack.callback(server.close)
                url = server.url
            driver = DriverProcess("hydra.mesos.driver", log)
            stack.callback(driver.close)
            super().__init__(driver, MesosState(_program(url, artifact)), address, _STOP_WITHIN_S, clock)
            self._log = log
            framework = translate.framework_info(
                name=settings.framework(run),
                user=settings.user or getpass.getuser(),
                role=settings.role,
                principal=settings.principal,
                failover_timeout_s=settings.failover_timeout_s,
                hostname=platform.node(),
            )
            known_as = {"principal": settings.principal, "secret": settings.secret}
            self._driver.send([{"call": "open", "master": master, **known_as, "framework": framework}])
            self._held = stack.pop_all()

    def await_offers(self, within_s: float = OFFERS_WITHIN_S) -> None:
        """Waits until the cluster's agents have been offered.

        Raises:
            ClusterError: no master answers, or the master rejects the framework or offers nothing.
        """
        deadline = self._clock() + within_s
        settled: float | None = None
        while not self._state.offered_all():
            now = self._clock()
            if self._state.fatal:
                raise ClusterError(f"Mesos at {self._master}: {self._state.fatal}", self._remedy())
            if self._state.agents():
                settled = settled or min(deadline, now + _SETTLE_S)
                if now >= settled:
                    return
            if now >= deadline:
                raise self._nothing_offered(within_s)
            self._pump(0.1)

    def confirm(self, wait: Waiting) -> None:
        """Waits up to 1 s for the framework's end, which the master reports after the end of its tasks.

        Raises:
            ClusterError: the framework has ended.
        """

        def ended() -> bool:
            self._pump()
            return bool(self._state.fatal)

        wait(ended, _CONFIRM_WITHIN_S)
        self._state.require_framework()

    def _launch(self, groups: Sequence[Group], now: float) -> list[Launch]:
        if self._state.program.uris:
            groups = [replace(group, command=tuple(rewritten(group.command))) for group in groups]
        return self._state.launch(groups, now)

    def _release(self) -> None:
        self._held.close()

    def _remedy(self) -> str:
        """What to do about a framework that the master does not accept."""
        is_unknown = f"HTTP {int(HTTPStatus.UNAUTHORIZED)}" in self._state.fatal
        return f"{CREDENTIALS}; see {self._log}" if is_unknown else f"see {self._log}"

    def _holders(self) -> str:
        """The runs of Hydra that have tasks on the cluster, as the end of a sentence."""
        with contextlib.suppress(UsageError, ClusterError):  # what the user reads then names no run
            runs = [
                f"{row['run']} ({row['tasks']} tasks)"
                for row in leftovers(self._master, self._settings)
                if row["tasks"]
            ]
            return f"; runs of Hydra with tasks there: {', '.join(runs)}" if runs else ""
        return ""

    def _nothing_offered(self, within_s: float) -> ClusterError:
        if not self._state.framework:
            return ClusterError(
                f"no Mesos master at {self._master} took our framework within {within_s:g} s",
                f"check --master, and principal and secret under [mesos]; see {self._log}",
            )
        agents = self._state.agent_count
        seen = "" if agents is None else f", and it has {agents} active agents"
        return ClusterError(
            f"the Mesos master at {self._master} offered nothing to role {self._settings.role} "
            f"within {within_s:g} s{seen}{self._holders()}",
            f"see hydra agents --master {self._master}; hydra kill RUN --master {self._master} ends a run; other "
            "frameworks, a quota or reservations may hold it all, too",
        )


def _program(url: str, artifact: Artifact | None) -> TaskProgram:
    if not url:
        return TaskProgram()
    return TaskProgram(
        uris=(translate.Uri(url),),
        # Mesos starts sh without another shell, in the sandbox as its working directory.
        prefix=("/bin/sh", RUNNER),
        environment={"HYDRA_ARTIFACT": artifact.digest} if artifact is not None else {},
    )
