"""The broker that outlives commands: ``hydra kafka broker up|down|status``."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from hydra.config.user_folders import state_folder
from hydra.errors import ServerError
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.jars import locked
from hydra.kafkatest.program import KafkaProgram

STATE_FILE: Final = "broker.json"
DATA: Final = "data"
LOG: Final = "broker.log"
STOP_TIMEOUT_S: Final = 5.0
SAME_START_S: Final = 1.0
"""Two start times of one process may differ by the rounding of the kernel's clock ticks."""


@dataclass(frozen=True, slots=True)
class BrokerDaemon:
    """A broker that was started with ``up``.

    ``pid`` is the supervisor's process id, and ``created`` its start (s since 1970): the kernel may have given the id
    to another process.
    """

    bootstrap: str
    version: str
    pid: int
    created: float
    folder: str


def _home() -> Path:
    return state_folder() / "broker"


def up(state: Path | None = None, *, conf: Path | None = None, host: str = "127.0.0.1") -> BrokerDaemon:
    """Starts a broker that stays until ``down``.

    Raises:
        ServerError: a broker runs already, or the new one did not start.
        MissingDependencyError: Java or Maven is missing.
    """
    state = state or _home()
    with locked(state / "lock"):
        running = _running(state)
        if running is not None:
            raise ServerError(f"a broker runs already at {running.bootstrap}", "hydra kafka broker down ends it")
        _clear(state)
        broker = LocalBroker(state / DATA, KafkaProgram(conf), log=state / LOG, host=host)
        bootstrap = broker.start()
        try:
            pids = broker.pids
            if pids is None:
                raise ServerError("the broker ended at once", f"see {state / LOG}")
            found = BrokerDaemon(
                bootstrap, broker.versions["kafka"], pids[0], psutil.Process(pids[0]).create_time(), str(state / DATA)
            )
            unfinished = state / f"{STATE_FILE}.new"
            unfinished.write_text(json.dumps(asdict(found)))
            unfinished.replace(state / STATE_FILE)
        except BaseException:
            broker.stop()
            raise
        # Until here the broker ends with this process; from here on the state file contains its address.
        broker.detach()
        return found


def status(state: Path | None = None) -> BrokerDaemon | None:
    """The broker that runs, None if there is none."""
    return _running(state or _home())


def down(state: Path | None = None) -> bool:
    """Ends the broker and removes its data; False if none ran."""
    state = state or _home()
    with locked(state / "lock"):
        running = _running(state)
        if running is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                supervisor = psutil.Process(running.pid)
                supervisor.terminate()
                try:
                    supervisor.wait(STOP_TIMEOUT_S)
                except psutil.TimeoutExpired:
                    supervisor.kill()  # Java ends with the supervisor
        _clear(state)
        return running is not None


def _running(state: Path) -> BrokerDaemon | None:
    try:
        found = BrokerDaemon(**json.loads((state / STATE_FILE).read_text()))
        process = psutil.Process(found.pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return found if alive and abs(process.create_time() - found.created) < SAME_START_S else None
    except (FileNotFoundError, ValueError, TypeError, psutil.NoSuchProcess):
        return None  # no file, a damaged file, one of another version, or a process that has ended


def _clear(state: Path) -> None:
    (state / STATE_FILE).unlink(missing_ok=True)
    shutil.rmtree(state / DATA, ignore_errors=True)
