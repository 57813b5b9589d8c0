"""What runs in the forked processes of a group: one client, or the warden."""

from __future__ import annotations

import json
import math
import os
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, cast

import zmq

from hydra.client.publisher import Publisher
from hydra.client.subscriber import Subscriber
from hydra.client.transport import Driver, Kind, PublisherTransport, SubscriberTransport
from hydra.client.watcher import watcher_of
from hydra.control.client import ControlClient, Identity
from hydra.control.curve import Credentials
from hydra.wire.messages import ChildExit, Error, Quit, Watch, Welcome
from hydra.wire.program import EXIT_DISMISSED, EXIT_STRANDED

KILL: Final = struct.Struct("=II")
"""A client that is to be killed, by its id, unless its incarnation is above the second number."""
ANY_INCARNATION: Final = 2**32 - 1


def _identity(kind: Kind, group: str, ids: Sequence[int], incarnation: int, *, warden: bool) -> Identity:
    return Identity(
        ids=ids,
        role=kind.role,
        group=group,
        warden=warden,
        incarnation=incarnation,
        implementation=kind.implementation,
        versions=kind.versions(),
        agent=os.environ.get("HYDRA_AGENT", ""),
    )


def await_welcome(control: ControlClient, endpoint: str, within_s: float) -> int | None:
    """None once welcomed, otherwise the exit code."""
    deadline = time.monotonic() + within_s
    while (left := deadline - time.monotonic()) > 0:
        message = control.receive(left)
        if isinstance(message, Welcome):
            return None
        if isinstance(message, Quit):
            return EXIT_DISMISSED
    sys.stderr.write(f"no welcome from the controller at {endpoint} within {within_s:g} s\n")
    return EXIT_STRANDED


def client_main(
    kind: Kind,
    credentials: Credentials,
    group: str,
    client: int,
    incarnation: int,
    welcome_within_s: float,
    welcomed: Callable[[], object],
) -> int:
    """The life of one client process; returns its exit code."""
    control = ControlClient(credentials, _identity(kind, group, [client], incarnation, warden=False))
    try:
        code = await_welcome(control, credentials.endpoint, welcome_within_s)
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
            dismissed = loop.run()
        except Exception as e:
            control.send(Error(ids=[client], seq=1, epoch=0, message=f"{type(e).__name__}: {e}"[:4000], fatal=True))
            raise
        finally:
            transport.close()
        if not dismissed:
            sys.stderr.write(f"client {client}: the controller has been silent for too long\n")
        return EXIT_DISMISSED if dismissed else EXIT_STRANDED
    finally:
        control.close()


def warden_main(kind: Kind, credentials: Credentials, group: str, ids: Sequence[int], deaths: int, kills: int) -> int:
    """Reports the deaths that the parent writes to the pipe ``deaths``, a JSON line each, until that closes.

    A ``quit`` that names clients is handed to the parent through the pipe ``kills``, each as :data:`KILL`: it is how
    the controller gets rid of a client that no longer answers. One that is gone for good was not heard of: it is
    reported again. A ``watch`` is obeyed.
    """
    control = ControlClient(credentials, _identity(kind, group, ids, 0, warden=True))
    poller = zmq.Poller()
    poller.register(control.socket, zmq.POLLIN)
    poller.register(deaths, zmq.POLLIN)
    watcher = watcher_of(ids, control.send, os.getppid() if kind.role == "publisher" else None)
    buffer = b""
    gone: dict[int, ChildExit] = {}
    while True:
        ready = dict(poller.poll(math.ceil(1000 * min(1.0, watcher.work()))))
        while (message := control.receive(0)) is not None:
            if isinstance(message, Quit) and message.ids:
                for client in gone.keys() & set(message.ids):
                    control.send(gone[client])
                most = ANY_INCARNATION if message.incarnation is None else message.incarnation
                os.write(kills, b"".join(KILL.pack(client, most) for client in message.ids))
            elif isinstance(message, Watch):
                watcher.take(message)
        if deaths in ready:
            data = os.read(deaths, 65536)
            if not data:
                control.close()
                return EXIT_DISMISSED
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                death = json.loads(line)
                exit_ = ChildExit(ids=[death.pop("id")], seq=1, **death)
                if not exit_.replaced:
                    gone[exit_.ids[0]] = exit_
                control.send(exit_)
