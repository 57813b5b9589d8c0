"""NATS as a system under test: servers of our own or the user's, and the run's subjects and streams on them."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Hashable, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from hydra.errors import ServerError, StepError, UsageError
from hydra.events.warnings import HydraWarning, LeftBehind, LeftEarlier
from hydra.model import Role, Scenario, Settings
from hydra.native.command import command
from hydra.natstest.control_messages import End
from hydra.natstest.program import KIND, PROGRAM, NatsProgram
from hydra.natstest.server_cluster import NatsCluster
from hydra.natstest.settings import NatsSettings, spec_of
from hydra.natstest.stream_registry import Records
from hydra.natstest.streams import Streams
from hydra.natstest.watch import Watch
from hydra.system import Program, ServerCluster, Servers, Waiting, wait_alone
from hydra.system.embedded_server import EmbeddedServer
from hydra.system.server_recovery import await_return, unused_folder
from hydra.wire.protocol_constants import kind_of

_LONGEST_PART: Final = 100
"""Characters of a run's name in its streams'."""
_BLOCK_BYTES: Final = 512
_OWN_FOLDERS: Final = "nats"
_OF_STREAMS: Final = ("mode", "storage")
"""Settings that no client is told: they follow from the stream."""

_T = TypeVar("_T")


class NatsSystem:
    """See :class:`hydra.system.System`; without ``servers`` in the scenario they are ours.

    Args:
        scenario: what is run.
        deploy: whether they run as groups on agents; otherwise there is one, embedded.
        is_local: whether they run on this machine.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._scenario = scenario
        self._spec = spec_of(scenario)
        self._deploy = deploy
        self._is_local = is_local
        self._deployed: Servers | None = None
        self._own: Servers | None = None
        self._mute = ""
        self._streams: Streams | None = None
        self._watch: Watch | None = None  # of the user's
        self._records: Records | None = None  # of what is on the user's
        self._warnings: list[HydraWarning] = []
        self._address = ""
        self._version = ""
        self._run = ""
        self._folder = Path()
        self._wait: Waiting = wait_alone
        self._stream = ""  # of the present step, "" in core mode
        self._began: dict[str, int] = {}  # by stream, where its last step did

    def check(self) -> None:
        """The client is there, and so is nats-server, or the user's servers let us in and keep streams if need be."""
        self.program("subscriber")
        if self._spec.servers:
            with contextlib.closing(Streams(self._spec.servers.split(","))) as streams:
                try:
                    streams.reach(jetstream=self._needs_streams())
                except ServerError as e:
                    raise UsageError(e.what, e.remedy) from None
        elif self._is_local:
            NatsProgram().prepare()

    def _needs_streams(self) -> bool:
        modes = (NatsSettings.of(self._scenario.settings).mode, *self._scenario.values_of("mode"))
        return "jetstream" in modes

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts the servers or reaches the user's. Streams are made when a step asks for one.

        What a killed predecessor of this run left on the user's servers is removed.
        """
        # The suffix keeps two runs of the same name on one server apart.
        part = re.sub(r"[^A-Za-z0-9_-]+", "-", run)[:_LONGEST_PART]
        self._run = f"hydra-{part}-{secrets.token_hex(4)}"
        self._folder = folder
        self._wait = wait
        self._deployed = servers
        self._bring_up()

    def _bring_up(self) -> None:
        self._mute = ""
        self._began = {}
        if self._spec.servers:
            self._address = self._spec.servers
        else:
            free = unused_folder(self._folder, _OWN_FOLDERS)
            self._own = self._deployed or EmbeddedServer(NatsProgram(), NatsCluster(), free, wait=self._wait)
            self._address = self._own.start()
        self._streams = Streams(self._address.split(","), self._wait)
        self._version = self._streams.reach(jetstream=self._needs_streams())
        if self._own is None:
            self._watch = Watch(self._address.split(","))
            self._remove_earlier(self._streams)

    def _remove_earlier(self, streams: Streams) -> None:
        records = self._records = Records(self._folder)
        for stream in records.all():
            try:
                streams.delete(stream)
            except ServerError as e:
                self._warnings.append(LeftEarlier("a stream", f"kept {stream}: {e.what}"))
            else:
                records.remove(stream)
                self._warnings.append(LeftEarlier("a stream", f"removed {stream}"))

    def program(self, role: Role) -> Program:
        """The client that the scenario names."""
        if self._scenario.client == "native":
            return Program(command("nats", role, self._scenario.native), {})
        return Program.of_module("hydra.natstest.nats_py", kind_of("nats", role), libraries=("nats-py",))

    def server(self) -> Program | None:
        """One nats-server of its agent's."""
        if not self._deploy:
            return None
        return Program.of_module("hydra.natstest.server_main", KIND)

    def cluster(self) -> ServerCluster | None:
        """Servers with routes to each other."""
        return NatsCluster() if self._deploy else None

    def configure(self, settings: Settings) -> dict[str, Any]:
        """The settings, and where the data goes: a subject, and in JetStream its stream as it ends now.

        What a stream holds of steps before its last one is deleted.
        """
        own = NatsSettings.of(settings)
        self._stream = ""
        stream, subject, first = "", f"{self._run}.core", 1
        if own.mode == "jetstream":
            stream, subject = f"{self._run}-{own.storage}", f"{self._run}.{own.storage}"
            first = self._first(stream, subject, own.storage)
            self._stream = stream
        told = {name: value for name, value in settings.system.items() if name not in _OF_STREAMS}
        where = {"servers": self._address.split(","), "subject": subject, "stream": stream, "first": first}
        return {**told, **where}

    def _first(self, stream: str, subject: str, storage: str) -> int:
        """The sequence that the stream's next message gets; the stream is made if it is not there yet."""
        streams = self._opened()
        if stream not in self._began:
            if self._records is not None:
                self._records.add(stream)
            self._ask(lambda: streams.create(stream, subject, storage, self._spec.replicas))
        else:
            streams.forget(stream, self._began[stream])
        first = self._ask(lambda: streams.last(stream)) + 1
        self._began[stream] = first
        return first

    def finish(self) -> dict[str, Any] | None:
        """The stream's last sequence; nobody knows an end in core mode, but the servers have to be there still."""
        streams, stream = self._opened(), self._stream
        if not stream:
            self._ask(lambda: streams.reach(jetstream=False))
            return None
        return msgspec.to_builtins(End(last=self._ask(lambda: streams.last(stream))))  # type: ignore[no-any-return]

    def proof(self, settings: Settings) -> Hashable:
        """The servers, and all settings but a publisher's: with others a subscriber subscribes anew."""
        own = NatsSettings.of(settings)
        return (self._address, astuple(replace(own, publish_acks=True, publish_window=1)))

    def log_end(self, settings: Settings) -> int | None:
        """The messages that were ever put into the stream; None without one."""
        if NatsSettings.of(settings).mode == "core" or not self._stream:
            return None
        streams, stream = self._opened(), self._stream
        return self._ask(lambda: streams.last(stream))

    def _opened(self) -> Streams:
        if self._streams is None:
            raise ServerError("the NATS system is not open")
        return self._streams

    def _ask(self, question: Callable[[], _T]) -> _T:
        try:
            return question()
        except ServerError as e:
            self._mute = self.failure() or e.what
            raise StepError(self._mute) from e

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:
        """Nothing happens on purpose."""

    def after_step(self) -> None:
        """Nothing was broken on purpose."""

    def server_counters(self) -> dict[str, dict[str, float]]:
        """Nobody tells."""
        return {}

    def server_processes(self) -> Sequence[int]:
        """Of an embedded server."""
        return self._own.processes() if self._own else ()

    def failure(self) -> str:
        """Servers that ended, or do not answer."""
        theirs = self._watch.failure() if self._watch else ""
        return self._mute or theirs or (self._own.failure() if self._own else "")

    def revive(self) -> None:
        """New servers in the place of our own that failed; the user's are waited for.

        Raises:
            ServerError: the user's did not answer within ``COMES_BACK_WITHIN_S``, or ``ready_timeout_s`` where that is
                less.
        """
        if not self.failure():
            return
        if self._own is not None:
            self.close()
            self._bring_up()
            return
        streams = self._opened()
        await_return(lambda: streams.reach(jetstream=self._needs_streams()), self._wait, self._scenario.ready_timeout_s)
        self._mute = ""
        self._unwatch()
        self._watch = Watch(self._address.split(","))
        # A stream in memory may have gone with its server.
        self._began = {}

    def stored_bytes(self) -> int:
        """What streams in files take on this machine's disk, of servers of our own."""
        total = 0
        for path in self._folder.glob(f"**/streams/**/{self._run}-file/**/*") if self._own else ():
            with contextlib.suppress(OSError):  # the server has just removed it
                total += path.stat().st_blocks * _BLOCK_BYTES
        return total

    def warnings(self) -> list[HydraWarning]:
        """Streams that were left behind."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def metadata(self) -> dict[str, str]:
        """The servers' version, and where the data goes."""
        return {"servers": self._address, "subjects": f"{self._run}.*", PROGRAM: self._version}

    def close(self) -> None:
        """Deletes the streams, or ends the servers if they are ours."""
        self._unwatch()
        streams, own = self._streams, self._own
        self._streams = self._own = None
        try:
            if streams is not None:
                if own is None:
                    self._delete(streams)
                streams.close()
        finally:
            if own is not None:
                # The streams go with the servers' data.
                own.stop()

    def _unwatch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _delete(self, streams: Streams) -> None:
        for stream in streams.ours:
            try:
                streams.delete(stream)
            except ServerError as e:
                self._warnings.append(LeftBehind(stream, self._address, f"remove it once they answer again: {e.what}"))
            else:
                if self._records is not None:
                    self._records.remove(stream)
