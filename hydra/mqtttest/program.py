"""How mosquitto is found and started; see :class:`hydra.client.server_interface.ServerProgram`."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.client.server_interface import installed
from hydra.errors import MissingDependencyError

KIND: Final = "mqtt-server"
CONFIGURATION: Final = "mosquitto.conf"
_PROGRAM: Final = "mosquitto"
_LEAST: Final = (2, 0)
"""Before 2.0 a server without users could not be told to let everybody in."""
_ANSWER_WITHIN_S: Final = 20.0


class ServerLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a server keeps for one client; what it has to know to start.

    Attributes:
        max_queued_messages: messages that wait for one client, those of QoS 0 in its connection; 0: no limit. Beyond
            it the server drops.
        max_inflight_messages: of QoS 1 and 2, those that are sent and not yet answered.
    """

    max_queued_messages: int
    max_inflight_messages: int


class MosquittoProgram:
    """A mosquitto that keeps nothing and lets everybody in."""

    kind = KIND
    title = "MQTT server mosquitto"
    ports = 1

    def prepare(self) -> Mapping[str, str]:
        """Finds it and asks for its version; see :func:`version_of`."""
        return {"mosquitto": version_of(find())}

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Writes its configuration; returns the command that runs it with as many descriptors as it may have.

        Raises:
            MissingDependencyError: it is not installed.
            OSError: there is no room.
            ValueError: ``join`` makes no sense.
        """
        limits = msgspec.convert(join, ServerLimits)
        (folder / CONFIGURATION).write_text(configuration(endpoint, limits))
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
        return ["/bin/sh", "-c", f'ulimit -n {most}; exec "$0" -c {CONFIGURATION}', find()]


def find() -> str:
    """The program's path.

    Raises:
        MissingDependencyError: it is not installed.
    """
    remedy = "apt install mosquitto, or name a server of your own with --broker HOST:PORT"
    return installed(_PROGRAM, "mosquitto, the MQTT server,", remedy)


def version_of(program: str) -> str:
    """The version that a mosquitto says it has.

    Raises:
        MissingDependencyError: it is too old, or says none.
    """
    said = subprocess.run([program, "-h"], capture_output=True, text=True, check=False, timeout=_ANSWER_WITHIN_S)
    found = re.search(r"mosquitto version (\d+)\.(\d+)(\S*)", said.stdout)
    if found is None:
        raise MissingDependencyError(f"{program} does not say which version it is", "apt install mosquitto")
    if (int(found[1]), int(found[2])) < _LEAST:
        least = ".".join(map(str, _LEAST))
        raise MissingDependencyError(f"{program} is too old: {found[0]}", f"Hydra needs {least} or newer")
    return f"{found[1]}.{found[2]}{found[3]}"


def configuration(endpoint: str, limits: ServerLimits) -> str:
    """Mosquitto's configuration file."""
    host, _, port = endpoint.rpartition(":")
    return "\n".join(
        [
            f"listener {port} {host}",
            "allow_anonymous true",
            "persistence false",
            f"max_queued_messages {limits.max_queued_messages}",
            f"max_inflight_messages {limits.max_inflight_messages}",
            "set_tcp_nodelay true",
            "sys_interval 0",
            "connection_messages false",
            "log_dest stderr",
            "log_type error",
            "log_type warning",
            # Started by root it would become another user, and the kernel then no longer ends it with its supervisor.
            # Others need no name: in a container a user may have none.
            *(["user root"] if os.geteuid() == 0 else []),
            "",
        ]
    )
