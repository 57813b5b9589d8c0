"""The embedded broker: a real Apache Kafka on this machine that lives exactly as long as its owner wants it."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from hydra.errors import BrokerError
from hydra.kafkatest.jars import Jars, Java, conf_folder, fetch, find_java
from hydra.kafkatest.nodes import Node, settings
from hydra.kafkatest.template import (
    DATA,
    Template,
    accepts,
    copy_storage,
    free_ports,
    kafka_uuid,
    prepare,
    server_command,
)
from hydra.kafkatest.topics import cluster_id
from hydra.kafkatest.warmup import warm_up
from hydra.servers.background import Background
from hydra.servers.supervised import Supervised, tail
from hydra.system import Waiting, wait_alone

START_TIMEOUT_S: Final = 60.0
PREPARE_TIMEOUT_S: Final = 900.0
"""The first time on a machine, jars are fetched, and a broker runs to make the archive of its classes."""
STOP_TIMEOUT_S: Final = 600.0
"""It is killed within 4 s; removing what it kept may take a slow disk long."""
PORT_ATTEMPTS: Final = 5


class EmbeddedBroker:
    """One Kafka in KRaft mode; its data is thrown away with it.

    Java runs under a supervisor process: it dies within 2 s of its owner, even by SIGKILL, and the folder goes
    with it.

    Arguments:
        folder: for data and settings; created, and removed on every exit path. Must not exist, or be empty.
        conf: the folder with ``pom.xml``, ``server.properties`` and ``jvm.options``; None is the installed one.
        log: where the broker's output goes; None is inside ``folder`` and goes with it.
        host: the address to bind and to tell clients.
        ports: picks a port for clients and one for the controller; another may be quicker to bind them.
        warm: sends and receives some thousands of messages before ``start`` returns.
        wait: how ``start`` and ``stop`` wait for it.
        more: from its ports for clients and for controllers, settings that go over those of ``conf``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        conf: Path | None = None,
        log: Path | None = None,
        host: str = "127.0.0.1",
        ports: Callable[[str, int], list[int]] = free_ports,
        warm: bool = True,
        wait: Waiting = wait_alone,
        more: Callable[[int, int], Mapping[str, str]] | None = None,
    ) -> None:
        self._folder = folder.resolve()
        self._conf = (conf or conf_folder()).resolve()
        self._log = (log or self._folder / "broker.log").resolve()
        self._host = host
        self._ports = ports
        self._warm = warm
        self._wait = wait
        self._more = more
        self._running: Supervised | None = None
        self._created = False
        self._bootstrap = ""
        self.version = ""
        """The version of Kafka, once started."""

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients.

        Raises:
            BrokerError: the broker is not started.
        """
        if not self._bootstrap:
            raise BrokerError("the embedded broker is not started", "call start() first")
        return self._bootstrap

    @property
    def pids(self) -> tuple[int, int] | None:
        """Process ids of the supervisor and of Java, None when it does not run."""
        return (self._running.pid, self._running.command_pid) if self._running else None

    def start(self, timeout_s: float = START_TIMEOUT_S) -> str:
        """Starts it, waits until it answers, warms it up; returns the bootstrap address.

        Raises:
            BrokerError: it did not come up in ``timeout_s``; holds the last lines of its log.
            MissingDependencyError: Java or Maven is missing.
        """
        if self._running is not None:
            raise BrokerError("the embedded broker is started already", "stop it first")
        if self._folder.exists() and any(self._folder.iterdir()):
            raise BrokerError(f"the broker's folder {self._folder} is not empty", "name a new one")
        with contextlib.closing(Background(self._wait)) as background:
            return self._start(background, timeout_s)

    def _start(self, background: Background, timeout_s: float) -> str:
        java, jars, template = background.ask(self._prepared, PREPARE_TIMEOUT_S)
        self.version = jars.version
        deadline = time.monotonic() + timeout_s
        for _ in range(PORT_ATTEMPTS):
            port, controller_port = self._ports(self._host, 2)
            self._created = True
            self._folder.mkdir(parents=True, exist_ok=True)
            cluster = kafka_uuid()
            copy_storage(template.storage, self._folder / DATA, cluster)
            values = settings([Node(self._host, port, controller_port)], 1)
            more = self._more(port, controller_port) if self._more else None
            command = server_command(java, jars, self._conf, template, self._folder, values, more)
            try:
                self._running = Supervised(command, self._folder, self._log)
                if self._wait_until_up(background, port, cluster, deadline):
                    self._bootstrap = f"{self._host}:{port}"
                    if self._warm:
                        self._warm_up(background, max(1.0, deadline - time.monotonic()))
                    return self._bootstrap
                last = tail(self._log)
            except OSError as e:
                self.stop()
                raise BrokerError(f"the Kafka broker could not be started: {e}", "see conf/kafka/") from None
            except BaseException:
                # Ctrl-C as well: nothing may stay behind.
                self.stop()
                raise
            self.stop()
            if "in use" not in last and "BindException" not in last:
                raise BrokerError(f"the Kafka broker ended while it came up: {last}", "see conf/kafka/")
        raise BrokerError(f"the Kafka broker found its ports taken {PORT_ATTEMPTS} times in a row", "try again")

    def alive(self) -> bool:
        """Whether the broker's process runs; costs one system call."""
        return self._running is not None and not self._running.wait_for_end(0.0)

    def failure(self) -> str:
        """That the broker's process ended, or ""; costs one system call."""
        return "" if self.alive() else "the embedded Kafka broker ended"

    def detach(self) -> None:
        """Lets the broker live on without this process; SIGTERM to the supervisor ends it."""
        if self._running is not None:
            self._running.detach()

    def stop(self) -> None:
        """Ends the broker and removes its folder; may be called twice, or without ``start``."""
        running, self._running, self._bootstrap = self._running, None, ""
        created, self._created = self._created, False

        def clear() -> None:
            if running is not None:
                running.stop()
            shutil.rmtree(self._folder, ignore_errors=True)

        if created:
            # On a thread of its own: what the start has asked of another may take long.
            with contextlib.closing(Background(self._wait)) as background:
                background.ask(clear, STOP_TIMEOUT_S)

    def __enter__(self) -> EmbeddedBroker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _prepared(self) -> tuple[Java, Jars, Template]:
        java, jars = find_java(), fetch(self._conf)
        return java, jars, prepare(java, jars, self._conf)

    def _wait_until_up(self, background: Background, port: int, cluster: str, deadline: float) -> bool:
        """True when it answers; False when its process ended."""
        running, address = self._running, f"{self._host}:{port}"
        if running is None:
            return False
        # The cluster's id tells our broker from a stranger who was quicker to bind the port.
        answers = background.repeated(lambda: accepts(self._host, port) and cluster_id(address, 1.0) == cluster)
        if not self._wait(lambda: running.wait_for_end(0.0) or answers(), deadline - time.monotonic()):
            raise BrokerError(f"the Kafka broker did not answer in time: {tail(self._log)}", "see conf/kafka/")
        return not running.wait_for_end(0.0)

    def _warm_up(self, background: Background, within_s: float) -> None:
        address = self._bootstrap
        try:
            background.ask(lambda: warm_up(address, within_s), within_s)
        except TimeoutError:
            raise BrokerError(f"the warm-up of the broker at {address} took longer than {within_s:.0f} s") from None
