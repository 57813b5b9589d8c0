"""The first contact with the user's servers: what a run needs of them is known before anything is made on them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hydra.errors import UsageError
from hydra.model import Scenario
from hydra.natstest.settings import spec_of
from hydra.natstest.streams import JetStreams

_API: Final = "$JS.API.STREAM"
_REQUESTS: Final = ("CREATE", "INFO", "PURGE", "DELETE")
"""The requests about a stream that the controller sends."""


def examine(streams: JetStreams, scenario: Scenario, servers: str, *, jetstream: bool) -> None:
    """Asks the user's servers for what the run will need, and makes nothing.

    Args:
        streams: the connection to the servers, which have answered.
        scenario: the scenario.
        servers: the addresses, for errors.
        jetstream: whether a row needs a stream.

    Raises:
        UsageError: the servers would reject the run.
        ServerError: they do not answer.
    """
    info = streams.info()
    require_size(info, scenario.largest_bytes, servers)
    if jetstream:
        require_servers(info, spec_of(scenario).replicas, servers)
        used, most = streams.usage()
        if 0 < most <= used:
            raise UsageError(
                f"the account at NATS at {servers} has {used} streams, and {most} are allowed (max_streams)",
                "delete a stream, raise max_streams, or use --mode core",
            )
    forbidden = streams.forbidden(*subjects(scenario))
    if forbidden:
        raise no_right(servers, forbidden[0], scenario)


def require_size(info: Mapping[str, Any], largest_bytes: int, servers: str) -> None:
    """Raises UsageError if a message is larger than the servers accept; ``info`` is a server's INFO."""
    most = info.get("max_payload")
    if isinstance(most, int) and largest_bytes > most:
        raise UsageError(
            f"a message has {largest_bytes} bytes, and NATS at {servers} accepts {most} (max_payload)",
            "lower --message-size, or raise max_payload of the servers",
        )


def require_servers(info: Mapping[str, Any], replicas: int, servers: str) -> None:
    """Raises UsageError if a stream has several replicas and the server is in no cluster; ``info`` is its INFO."""
    if replicas > 1 and not info.get("cluster"):
        raise UsageError(
            f"a stream with {replicas} replicas needs {replicas} servers, and NATS at {servers} is 1 server",
            "lower nats.replicas, or name a cluster",
        )


def subjects(scenario: Scenario) -> tuple[list[str], list[str]]:
    """The subjects to publish to, and those to subscribe to: like those of the run, but no client uses them."""
    run = f"hydra-check-{secrets.token_hex(8)}"
    data = [f"{run}.{kind}" for kind in _kinds(scenario)]
    streams = [kind for kind in _kinds(scenario) if kind != "core"]
    requests = [f"{_API}.{request}.{run}-{kind}" for kind in streams for request in _REQUESTS]
    return [*data, *requests], [subject for subject in data if subject.endswith(".core")]


def _kinds(scenario: Scenario) -> Iterator[str]:
    """The last tokens of the subjects to which the rows publish."""
    modes = scenario.values_of("mode")
    if "core" in modes:
        yield "core"
    if "jetstream" in modes:
        yield from dict.fromkeys(map(str, scenario.values_of("storage")))


def no_right(servers: str, server_text: str, scenario: Scenario) -> UsageError:
    """The error for a user who may not use a subject of the run; ``server_text`` is the server's text."""
    granted = ", ".join(f"*.{kind}" for kind in _kinds(scenario))
    more = f", and publish on {_API}.>" if any(kind != "core" for kind in _kinds(scenario)) else ""
    return UsageError(
        f"NATS at {servers} refuses this user: {server_text.removeprefix('nats: ')}",
        f"grant publish and subscribe on {granted}{more}",
    )
