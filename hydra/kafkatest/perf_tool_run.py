"""One run of a performance tool of Kafka: a Java process that never outlives the client that runs it.

A step of a client is one run; this file also has the common part of publishers and subscribers.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from hydra.client.control_loop import StepLoop
from hydra.client.linux_process import UsageMeter
from hydra.client.supervised_process import SupervisedProcess
from hydra.errors import HydraError
from hydra.kafkatest.jars import Jars, Java, conf_folder, fetch, find_java
from hydra.kafkatest.java_properties import with_files, written
from hydra.kafkatest.perf_tool_lines import ConsumerOutput, ProducerOutput
from hydra.kafkatest.program import LOGGING

JAVA_OPTIONS: Final = ("-Xmx512m", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
"""The Java options of Kafka's own scripts for the tools."""
PROPERTIES: Final = "client.properties"
LOOK_EVERY_S: Final = 0.05
"""How often a client reads the output of a tool."""
_LOG: Final = "tool.log"
_GRACE_S: Final = 1.0

Output = TypeVar("Output", bound=ProducerOutput | ConsumerOutput)


@cache
def installed() -> tuple[Java, Jars]:
    """The Java and the jars with which the tools run.

    Raises:
        MissingDependencyError: one of them is not installed and cannot be fetched.
    """
    return find_java(), fetch()


class ToolRun:
    """A running tool, and its own folder in the working directory, which contains the user's secrets.

    The supervisor removes the folder and kills Java when this process ends in any way.

    Arguments:
        main: the tool's name.
        arguments: the tool's arguments, which never contain a secret.
        config: the properties of the tool's client, written to ``PROPERTIES`` in the folder.
        read: called with each line of the tool's output.

    Raises:
        MissingDependencyError: Java or the jars are not installed.
        OSError: the tool could not be started, or a file that ``config`` names cannot be read.
    """

    def __init__(
        self, main: str, arguments: Sequence[str], config: Mapping[str, str], read: Callable[[str], None]
    ) -> None:
        java, jars = installed()
        self._read = read
        self._rest = b""
        self._stack = ExitStack()
        with ExitStack() as failing:
            folder = Path(tempfile.mkdtemp(prefix="kafka-tool-", dir=Path.cwd()))
            # The supervisor removes it as well, unless the supervisor was killed.
            self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
            failing.push(self._stack)
            file = os.open(folder / PROPERTIES, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "w", encoding="ascii") as stream:
                stream.write(written(with_files(config)))
            shutil.copyfile(conf_folder() / LOGGING, folder / LOGGING)
            command = [
                *(java.program, *JAVA_OPTIONS, "-Duser.timezone=UTC", f"-Dlog4j2.configurationFile={LOGGING}"),
                *("-cp", jars.classpath, f"org.apache.kafka.tools.{main}", *arguments),
            ]
            self._log = folder / _LOG
            self._java = SupervisedProcess(command, folder, self._log, grace_s=_GRACE_S)
            self._stack.callback(self._java.stop)
            self._output = self._stack.enter_context(self._log.open("rb"))
            failing.pop_all()

    @property
    def pid(self) -> int:
        """Java's process id."""
        return self._java.command_pid

    def poll(self, timeout_s: float = 0.0) -> int | None:
        """Reads the output so far, or until the end within ``timeout_s``; returns the status, None while it runs."""
        ended = self._java.wait_for_end(timeout_s)
        *lines, self._rest = (self._rest + self._output.read()).split(b"\n")
        for line in lines:
            self._read(line.decode(errors="replace"))
        return self._java.status if ended else None

    def written_ns(self) -> int:
        """When the tool last wrote output, ns since 1970 by this host's wall clock."""
        return self._log.stat().st_mtime_ns

    def close(self) -> None:
        """Ends the tool within seconds, and removes its folder; may be called twice."""
        self._stack.close()


class ToolStep(Generic[Output]):
    """One step of a client: one run of a tool.

    Arguments:
        main: the tool's name.
        config: the properties of the tool's client.
        output: parses the tool's output.

    Attributes:
        failure: why there is no account; "" if there is one.
    """

    def __init__(self, main: str, config: Mapping[str, str], output: Output) -> None:
        self.failure = ""
        self._main = main
        self._config = config
        self._output = output
        self._run: ToolRun | None = None
        self._status: int | None = None
        self._usage = UsageMeter(children=True)

    @property
    def _over(self) -> bool:
        return self._status is not None or bool(self.failure)

    def _launch(self, arguments: Sequence[str]) -> None:
        try:
            self._run = ToolRun(
                self._main, [*arguments, "--command-config", PROPERTIES], self._config, self._output.read
            )
        except (HydraError, OSError) as e:
            self.failure = f"{self._main} could not be started: {e}"

    def _look(self, timeout_s: float = 0.0) -> None:
        """Reads the output so far, or until the end within ``timeout_s``."""
        if self._run is None or self._status is not None:
            return
        self._status = self._run.poll(timeout_s)
        if self._status is not None and not self._has_account:
            self.failure = (
                f"{self._main} ended with {self._status}: {self._output.complaint or 'the tool printed no results'}"
            )

    @property
    def _has_account(self) -> bool:
        return bool(self._output.figures)

    def close(self) -> None:
        """Ends the tool; may be called twice."""
        if self._run is not None:
            self._run.close()


class ToolLoop(StepLoop):
    """The loop of a client that sends or reads its messages by a tool."""

    _step: Any = None

    def close(self) -> None:
        """Ends the tool; may be called twice."""
        step, self._step = self._step, None
        if step is not None:
            step.close()

    def _end(self) -> None:
        self.close()
