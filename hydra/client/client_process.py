"""What runs in a forked client process."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import cast

from hydra.client.publisher import Publisher
from hydra.client.subscriber import Subscriber
from hydra.client.transport import Driver, Kind, PublisherTransport, SubscriberTransport
from hydra.control.client import ControlClient, Identity
from hydra.wire.messages import Error, Quit, Welcome
from hydra.wire.protocol_constants import EXIT_DISMISSED, EXIT_STRANDED


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
    kind: Kind, relay: str, identity: Identity, welcome_within_s: float, welcomed: Callable[[], object]
) -> int:
    """The life of one client process, whose relay listens at the endpoint ``relay``; returns its exit code."""
    (client,) = identity.ids
    control = ControlClient(relay, identity)
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
