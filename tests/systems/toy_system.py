"""A system of another package, as small as possible: a file that publishers append to and subscribers read."""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from hydra.client import process_group
from hydra.client.transport import Kind, PublisherTransport, read_system
from hydra.model import Role, Scenario, Settings, SetupPart, SystemSettings, setting
from hydra.options.late_commands import keyed
from hydra.options.scenario_commands import scenario_command
from hydra.options.shared_flags import duration_flag, rate_flag
from hydra.system import (
    DeliveryRules,
    Footprint,
    Identity,
    Implementation,
    OwnSettings,
    Program,
    Published,
    Servers,
    System,
    SystemSpec,
    Waiting,
)
from hydra.wire import kind_of
from hydra.wire.data_message import HEADER
from hydra.wire.messages import Configure, SystemObject

LENGTH_BYTES: Final = 4
LOOK_EVERY_S: Final = 0.001
LONGEST_WAIT_S: Final = 0.02
"""Commands wait for so long: a command does not end the wait for a message."""


@dataclass(frozen=True, slots=True)
class ToySettings(SystemSettings):
    """``chunk``: bytes that a subscriber reads at once; ``shared``: this many share the messages, 0: none."""

    chunk: int = setting(65536, least=1, most=1_000_000, compared=True)
    shared: int = setting(0, compared=True)


@dataclass(frozen=True, slots=True)
class ToyTable:
    """The table [toy]: ``file`` is what the file is called; the password is needed for nothing."""

    file: str = "toy.data"
    password: str = ""


class ToyConfigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of ``configure``."""

    chunk: int
    shared: int
    path: str


class Client:
    """The part of both kinds: what they do with the file."""

    _file: BinaryIO | None = None

    def report_system(self) -> dict[str, Any] | None:
        return None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Publisher(Client, PublisherTransport):
    """See :class:`hydra.client.transport.PublisherTransport`, whose default methods it inherits."""

    marks_end = True
    _signals = 0

    def configure(self, command: Configure) -> str:
        self.close()
        path = read_system(command.system, ToyConfigure).path
        self._file = Path(path).open("ab", buffering=0)  # noqa: SIM115  # until close
        return path

    def probe(self, message: bytes) -> None:
        self._signals += 1
        self.send([message + self._signals.to_bytes(LENGTH_BYTES, "little")], 0)

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        if self._file is None:
            return 0
        self._file.write(b"".join(len(m).to_bytes(LENGTH_BYTES, "little") + m for m in messages))
        return len(messages)


class Subscriber(Client):
    """See :class:`hydra.client.transport.SubscriberTransport`."""

    def __init__(self, client: int) -> None:
        self._client = client
        self._rest = b""
        self._messages: list[bytes] = []
        self._chunk = 1
        self._shared = 0

    def configure(self, command: Configure) -> None:
        reported = read_system(command.system, ToyConfigure)
        self._chunk = reported.chunk
        self._shared = reported.shared
        if self._file is None:
            self._file = Path(reported.path).open("rb", buffering=0)  # noqa: SIM115  # until close
            self._file.seek(0, 2)
            self._rest, self._messages = b"", []

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        deadline = time.monotonic() + min(timeout_s, LONGEST_WAIT_S)
        while len(self._messages) < limit:
            if not (more := self._read()) and (self._messages or time.monotonic() >= deadline):
                break
            if not more:
                time.sleep(LOOK_EVERY_S)  # noqa: TID251  # nothing wakes the reader of a file
            self._messages += more
        taken, self._messages = self._messages[:limit], self._messages[limit:]
        return taken

    def _read(self) -> list[bytes]:
        self._rest += self._file.read(self._chunk) if self._file else b""
        messages, at = [], 0
        while (begin := at + LENGTH_BYTES) <= len(self._rest):
            end = begin + int.from_bytes(self._rest[at:begin], "little")
            if end > len(self._rest):
                break
            message = self._rest[begin:end]
            if not self._shared or _turn(message) % self._shared == self._client % self._shared:
                messages.append(message)
            at = end
        self._rest = self._rest[at:]
        return messages

    def reconnect(self) -> tuple[int, int]:
        now_ns = time.monotonic_ns()
        return now_ns, now_ns

    def undrained(self, system: SystemObject) -> int:
        return 0


def _turn(message: bytes) -> int:
    """Which member's turn a message is: by its sequence; by the number behind a probe or an end marker."""
    epoch, _, sequence, _ = HEADER.unpack_from(message)
    return int(sequence if epoch else int.from_bytes(message[HEADER.size :], "little"))


class ToySystem(System):
    """The file of a run."""

    def __init__(self, scenario: Scenario) -> None:
        self._table: ToyTable = scenario.tables["toy"]
        self._path = Path()

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        self._path = (folder / self._table.file).absolute()
        self._path.touch()

    def program(self, role: Role) -> Program:
        program = Program.of_module("toy_system", kind_of("toy", role))
        return replace(program, environment={**program.environment, "PYTHONPATH": str(Path(__file__).parent)})

    def configure(self, settings: Settings) -> dict[str, Any]:
        return {**settings.system.values(), "path": str(self._path)}

    def proof(self, settings: Settings) -> Hashable:
        return str(self._path)

    def metadata(self) -> dict[str, str]:
        return {"toy": "1.0"}


def kinds() -> Mapping[str, Kind]:
    """The clients that this program offers."""
    return {
        "toy-pub": Kind("publisher", "file", lambda: {"toy": "1.0"}, lambda *_: Publisher()),
        "toy-sub": Kind("subscriber", "file", lambda: {"toy": "1.0"}, lambda client, *_: Subscriber(client)),
    }


@scenario_command(
    "toy-fixed",
    "toy",
    rate_flag,
    duration_flag,
    keyed("--chunk", key="settings.chunk", type=int, help="Bytes that a subscriber reads at once."),
    keyed("--shared", key="settings.shared", type=int, help="So many subscribers share the messages."),
)
def toy_fixed(**_: Any) -> None:
    """A file at a fixed rate, by subscriber count."""


def delivery(scenario: Scenario, settings: Settings) -> DeliveryRules:
    """How the file delivers messages."""
    return DeliveryRules(queue="page cache", group="readers" if ToySettings.of(settings).shared else "")


SPEC = SystemSpec(
    identity=Identity(
        name="toy",
        title="a file",
        implementations={"file": Implementation(Footprint(threads=3, files=12, memory_bytes=8_000_000))},
        make=lambda scenario, _deploy, _is_local: ToySystem(scenario),
    ),
    settings=OwnSettings(
        step=ToySettings,
        tables={"toy": ToyTable},
        shown=lambda scenario: [SetupPart("chunk", scenario.values_of("chunk"), "chunks of {} B")],
        logins=lambda scenario: [("", scenario.tables["toy"].password)],
        is_secret=lambda key: key.endswith("password"),
    ),
    delivery=delivery,
    published=Published(folder=Path(__file__).parent),
)


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
