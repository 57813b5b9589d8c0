"""NATS: Hydra's clients beside bare loops of libnats and nats-py. As a program: the bare loop of nats-py."""

from __future__ import annotations

import asyncio
import csv
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, Final

import nats
import psutil
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api

from bench import programs
from bench.clients import forks
from bench.clients.channel import SharedServer, Sides, Workload, words
from hydra.model import Rate
from hydra.natstest.program import PROGRAM, NatsProgram
from hydra.natstest.settings import NatsSettings
from hydra.natstest.system import NatsCluster
from hydra.system.local_server import LocalServer

SIZE: Final = 128
_TOOL: Final = "nats"
_NULL: Final = subprocess.DEVNULL
_TOOL_COPIES: Final = 9_000_000
"""Messages that all its subscribers receive together."""
_SUBSCRIBED_S: Final = 0.5
"""The time between its connections and its subscriptions, which it does not announce."""
DEFAULTS: Final = asdict(NatsSettings())


def workload(client: str, subscribers: int, mode: str, rate: Rate = "max", seconds: float = 3.0) -> Workload:
    """What both sides carry.

    Args:
        client: ``native`` or ``nats-py``.
        subscribers: the number of subscribers.
        mode: ``core``; ``jetstream`` with acknowledgements at both ends.
        rate: messages/s, or ``"max"``.
        seconds: length of the window.
    """
    own = {"settings.mode": mode}
    return Workload("nats-fixed", client, subscribers, SIZE, rate, seconds, own)


def _command(client: str, values: Mapping[str, Any]) -> Sequence[str]:
    values = {**DEFAULTS, **values}
    if client == "native":
        return words(programs.bare("nats/bare-nats"), {**values, "server": values["servers"][0]})
    return [sys.executable, "-m", __name__, forks.encoded(values)]


def _lacks() -> str:
    return programs.lacks() or ("" if which(PROGRAM) else PROGRAM)


SIDES: Final = Sides(
    _command,
    SharedServer(lambda folder: LocalServer(NatsProgram(), NatsCluster(), folder), "nats.servers"),
    _lacks,
)


# --- nats bench ------------------------------------------------------------------------------------------------------


def lacks_tool() -> str:
    """What this machine lacks for ``nats bench``."""
    return _lacks() or ("" if which(_TOOL) else f"the command {_TOOL}")


def tool(subscribers: int) -> float:
    """Core messages/s that all subscribers of ``nats bench sub`` receive from one ``nats bench pub``.

    Raises:
        TimeoutExpired: a subscriber did not get all messages.
    """
    messages = _TOOL_COPIES // subscribers
    options = ("bench.tool", "--size", f"{SIZE}", "--msgs", f"{messages}", "--no-progress")
    command = (_TOOL, "--server", f"nats://{SIDES.where}", "bench")
    with TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        words = [*command, "sub", *options, "--clients", f"{subscribers}", "--csv", f"{table}"]
        with subprocess.Popen(words, stdout=_NULL, stderr=_NULL) as receiving:
            try:
                while len(psutil.Process(receiving.pid).net_connections()) < subscribers:
                    time.sleep(0.05)
                time.sleep(_SUBSCRIBED_S)
                subprocess.run([*command, "pub", *options], check=True, stdout=_NULL, stderr=_NULL)
                receiving.wait(programs.WITHIN_S)
            finally:
                receiving.kill()
        rows = list(csv.DictReader(table.read_text().splitlines()))
    return sum(int(row["MsgCount"]) for row in rows) / max(float(row["DurationSecs"]) for row in rows)


# --- the bare loop of nats-py ----------------------------------------------------------------------------------------


async def _connected(settings: dict[str, Any]) -> Client:
    return await nats.connect([f"nats://{server}" for server in settings["servers"]])


def receive(settings: dict[str, Any], tally: forks.Tally, subscribed: Callable[[], None]) -> None:
    """Counts in the callback of a subscription."""

    async def count(_: Msg) -> None:
        tally.messages += 1

    async def note(message: Msg) -> None:
        tally.late(message.data)

    async def work() -> None:
        client = await _connected(settings)
        on_message = note if settings["rate"] else count
        limits = {
            "pending_msgs_limit": settings["pending_messages"],
            "pending_bytes_limit": settings["pending_bytes"],
        }
        if settings["stream"]:
            config = api.ConsumerConfig(
                deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=settings["first"],
                ack_policy=api.AckPolicy.EXPLICIT,
                max_ack_pending=settings["max_ack_pending"],
            )
            await client.jetstream().subscribe(
                settings["subject"], cb=on_message, stream=settings["stream"], config=config, **limits
            )
        else:
            await client.subscribe(settings["subject"], cb=on_message, **limits)
            await client.flush()
        subscribed()
        await asyncio.Event().wait()

    asyncio.run(work())


def publish(settings: dict[str, Any], begin: Callable[[], forks.Interval]) -> int:
    """Publishes as the library's documentation does: with ``publish``, or with ``publish_async`` to a stream."""

    async def work() -> int:
        client = await _connected(settings)
        send: Callable[[str, bytes], Any] = client.publish
        if settings["stream"]:
            stream = client.jetstream(publish_async_max_pending=settings["publish_window"])
            send = stream.publish_async
        subject, sent, window = settings["subject"], 0, begin()
        if settings["rate"]:
            for message in window.due(settings["rate"], settings["size"]):
                await send(subject, message)
                while client.pending_data_size > 0:
                    await asyncio.sleep(0)
                sent += 1
            return sent
        message = bytes(settings["size"])
        for _ in window.rounds():
            for _ in range(forks.AT_ONCE):
                await send(subject, message)
            await asyncio.sleep(0)
            sent += forks.AT_ONCE
        return sent

    return asyncio.run(work())


if __name__ == "__main__":
    forks.run(receive, publish)
