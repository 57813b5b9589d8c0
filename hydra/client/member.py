"""What runs in a forked client process, and how it and its group's relay introduce themselves."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import cast

from hydra.client.publisher import Publisher
from hydra.client.subscriber import Subscriber
from hydra.client.transport import Driver, Kind, PublisherTransport, SubscriberTransport
from hydra.control.client import ControlClient, Identity
from hydra.wire.messages import Error, Quit, Welcome
from hydra.wire.program import EXIT_DISMISSED, EXIT_STRANDED


def identity_of(
    kind: Kind, group: str, ids: Sequence[int], incarnation: int, versions: dict[str, str] | None = None
) -> Identity:
    """What a client says about itself, or with versions the relay of these clients.

    To look for versions takes 9 ms of CPU, three times what all else takes that a client does until it is welcomed.
    """
    return Identity(
        ids=ids,
        role=kind.role,
        group=group,
        incarnation=incarnation,
        implementation=kind.implementation,
        versions=versions or {},
        agent=os.environ.get("HYDRA_AGENT", ""),
    )


def await_welcome(control: ControlClient, endpoint: str, within_s: float) -> int | None:
    """None once whoever listens there has welcomed this process, otherwise the exit code."""
    deadline = time.monotonic() + within_s
    while (left := deadline - time.monotonic()) > 0:
        message = control.receive(left)
        if isinstance(message, Welcome):
            return None
        if isinstance(message, Quit):
            return EXIT_DISMISSED
    sys.stderr.write(f"no welcome at {endpoint} within {within_s:g} s\n")
    return EXIT_STRANDED


def client_main(
    kind: Kind,
    relay: str,
    group: str,
    client: int,
    incarnation: int,
    welcome_within_s: float,
    welcomed: Callable[[], object],
) -> int:
    """The life of one client process, whose relay listens at the endpoint ``relay``; returns its exit code."""
    control = ControlClient(relay, identity_of(kind, group, [client], incarnation))
    try:
        code = await_welcome(control, relay, welcome_within_s)
        if code is not None:
            return code
        welcomed()
        transport = kind.open(client, control)
        try:
            loop: Publisher | Subscriber | Driver
            if isinstance(transport, Driver):
                loop = transport
            elif kind.role == "publisher":
                loop = Publisher(client, control, cast(PublisherTransport, transport))
            else:
                loop = Subscriber(client, control, cast(SubscriberTransport, transport))
            loop.run()
        except Exception as e:
            control.send(Error(ids=[client], seq=1, epoch=0, message=f"{type(e).__name__}: {e}"[:4000], fatal=True))
            raise
        finally:
            transport.close()
        return EXIT_DISMISSED
    finally:
        control.close()
