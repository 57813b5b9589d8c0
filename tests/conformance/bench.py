"""The work bench of a conformance test: one control channel, groups under test, and the verbs of a step."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec

from hydra.model import PublisherReport, SharedSettings, SubscriberReport
from hydra.wire.clock import StepClock, wall_offset_ns
from hydra.wire.messages import (
    Ack,
    Configure,
    Error,
    Finish,
    FromClient,
    HostClock,
    PublisherEndpoint,
    Quit,
    Ready,
    Report,
    Sent,
    Spell,
    Start,
    Stop,
)
from tests.conformance.group import GroupProgram
from tests.conformance.peer import Arrival, ControlPeer

LEAD_NS = 150_000_000
"""How far ahead of its window a start is sent here."""
APART_NS = 100_000_000_000
"""How long the step's clock has been running at another rate than this host's, where it does: 1 % of it is 1 s."""


@dataclass(frozen=True)
class Window:
    """A step's window on the step's clock, ns: this host's CLOCK_MONOTONIC + ``offset_ns`` when that was ``at_ns``."""

    start_ns: int
    stop_ns: int
    offset_ns: int
    at_ns: int = 0
    rate_ppb: int = 0

    @property
    def clock(self) -> HostClock:
        """What clients are told of the step's clock."""
        return HostClock(at_ns=self.at_ns, step_ns=self.at_ns + self.offset_ns, rate_ppb=self.rate_ppb)

    def now_ns(self) -> int:
        """The step's clock now."""
        return StepClock(self.clock).now_ns()

    def over(self, by_s: float = 0.0) -> bool:
        """Whether the window has been over for this long."""
        return self.now_ns() > self.stop_ns + by_s * 1e9


@dataclass(frozen=True)
class StepSettings:
    """What a step is set to: what all systems share, and the system's own."""

    shared: SharedSettings = field(default_factory=lambda: SharedSettings(burst=100))
    system: Mapping[str, Any] = field(default_factory=dict)


def with_values(settings: StepSettings, **values: Any) -> StepSettings:
    """The settings with some changed; each value goes where it belongs."""
    ours = {f.name for f in fields(SharedSettings)} & values.keys()
    return StepSettings(
        replace(settings.shared, **{name: values[name] for name in ours}),
        {**settings.system, **{name: value for name, value in values.items() if name not in ours}},
    )


def step_settings(**values: Any) -> StepSettings:
    """The default settings with these values."""
    return with_values(StepSettings(), **values)


class Bench:
    """Starts groups, speaks to them as the controller would, and leaves nothing behind."""

    def __init__(self, *, silence_s: float = 0.0, host: str = "127.0.0.1") -> None:
        self.peer = ControlPeer(silence_s=silence_s, host=host)
        self.groups: list[GroupProgram] = []
        self.not_told: frozenset[str] = frozenset()
        """Settings of the system that the client under test has none of: ``configure`` leaves them out."""

    def launch(
        self,
        command: str,
        kind: str,
        *,
        first_id: int = 1,
        count: int = 1,
        group: str = "g",
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        lifeline: bool = True,
        await_hello: bool = True,
    ) -> GroupProgram:
        """Starts a group and waits until its relay has said hello, told of its clients and read their welcome.

        A client that ends before its welcome was read has a successor that is told of twice before it is meant.
        """
        standard = [kind, "--group", group, "--first-id", str(first_id), "--count", str(count)]
        environment = {**self.peer.environment, "HYDRA_AGENT": "agent-1", **(env or {})}
        program = GroupProgram(command, [*standard, *arguments], environment, lifeline=lifeline)
        self.groups.append(program)
        if await_hello:
            clients = range(first_id, first_id + count)
            self.peer.present(clients)
            self.peer.relays_in_sync(clients)
        return program

    # --- the verbs of a step ---------------------------------------------------------------------------------------

    def tell_configure(
        self,
        ids: Iterable[int],
        epoch: int,
        settings: StepSettings | None = None,
        *,
        publishers: Mapping[int, str] | None = None,
        probe: bool = True,
        progress_s: float = 0.0,
        group: str = "",
        load: Sequence[tuple[float, float]] = (),
        course_s: float = 0.0,
        spells: Sequence[Spell] = (),
        system: Mapping[str, Any] | None = None,
    ) -> None:
        """Sends ``configure`` and waits for nothing; ``system`` is added to that of the settings."""
        told = settings or StepSettings()
        command = Configure(
            epoch=epoch,
            settings=told.shared,
            publishers=[PublisherEndpoint(p, e) for p, e in (publishers or {}).items()],
            probe=probe,
            progress_s=progress_s,
            group=group,
            load=list(load),
            course_s=course_s,
            spells=list(spells),
            system={k: v for k, v in told.system.items() if k not in self.not_told} | dict(system or {}),
        )
        self.peer.tell_anew(ids, command)

    def configure_publisher(
        self, client: int, epoch: int, settings: StepSettings | None = None, *, timeout_s: float = 10.0, **more: Any
    ) -> str:
        """Configures a publisher; returns the data endpoint that it named."""
        self.tell_configure([client], epoch, settings, **more)
        self.peer.heard(Ack, [client], epoch=epoch, command="configure", timeout_s=timeout_s)
        return self.peer.heard(Ready, [client], epoch=epoch, timeout_s=timeout_s).endpoint

    def configure_subscribers(
        self,
        ids: Sequence[int],
        epoch: int,
        settings: StepSettings | None = None,
        *,
        timeout_s: float = 10.0,
        **more: Any,
    ) -> None:
        """Configures subscribers and waits for their ack, not for their readiness."""
        self.tell_configure(ids, epoch, settings, **more)
        self.peer.heard(Ack, ids, epoch=epoch, command="configure", timeout_s=timeout_s)

    def start(self, ids: Sequence[int], epoch: int, duration_s: float, *, rate_ppb: int = 0) -> Window:
        """Sends ``start`` for a window a little ahead and waits until everybody has it.

        ``rate_ppb`` is how much faster than this host's the step's clock has been running for a while.
        """
        at_ns = time.monotonic_ns() - (APART_NS if rate_ppb else 0)
        clock = Window(0, 0, wall_offset_ns(), at_ns, rate_ppb)
        start_ns = clock.now_ns() + LEAD_NS
        window = replace(clock, start_ns=start_ns, stop_ns=start_ns + round(duration_s * 1e9))
        self.tell_start(ids, epoch, window)
        self.peer.heard(Ack, ids, epoch=epoch, command="start")
        return window

    def tell_start(self, ids: Iterable[int], epoch: int, window: Window) -> None:
        """Sends ``start`` and waits for nothing."""
        self.peer.tell_anew(
            ids,
            Start(
                epoch=epoch,
                start_at_ns=window.start_ns,
                stop_at_ns=window.stop_ns,
                clock=window.clock,
            ),
        )

    def await_end(self, window: Window, by_s: float = 0.0) -> None:
        """Serves the channel until the window is over."""
        self.peer.wait(lambda: window.over(by_s), "the end of the window", 60)

    def stop(self, ids: Iterable[int], epoch: int, window: Window) -> None:
        """Sends ``stop``."""
        self.peer.tell_anew(ids, Stop(epoch=epoch, stop_at_ns=window.stop_ns))

    def publisher_report(self, client: int, epoch: int, window: Window, timeout_s: float = 15.0) -> PublisherReport:
        """Stops a publisher and takes its report."""
        self.stop([client], epoch, window)
        report = self.peer.heard(Report, [client], epoch=epoch, timeout_s=timeout_s).publisher
        assert report is not None
        return report

    def tell_finish(
        self,
        ids: Iterable[int],
        epoch: int,
        sent: Mapping[int, int],
        *,
        unacknowledged: Mapping[int, list[tuple[int, int]]] | None = None,
        system: Mapping[str, Any] | None = None,
        drain_max_s: float = 5.0,
        quiet_s: float = 0.5,
    ) -> None:
        """Sends ``finish``: how much each publisher sent."""
        missing = unacknowledged or {}
        self.peer.tell_anew(
            ids,
            Finish(
                epoch=epoch,
                publishers=[Sent(publisher=p, sent=n, unacknowledged=missing.get(p, [])) for p, n in sent.items()],
                drain_max_s=drain_max_s,
                quiet_s=quiet_s,
                system=None if system is None else dict(system),
            ),
        )

    def subscriber_report(
        self, client: int, epoch: int, sent: Mapping[int, int], *, timeout_s: float = 15.0, **more: Any
    ) -> SubscriberReport:
        """Finishes a subscriber's step and takes its report."""
        self.tell_finish([client], epoch, sent, **more)
        report = self.peer.heard(Report, [client], epoch=epoch, timeout_s=timeout_s).subscriber
        assert report is not None
        return report

    def ignores_commands(self, client: int, epochs: Iterable[int], window: Window) -> None:
        """Sends this client the commands of steps that it does not have; fails if it answers, or dies of them."""
        before = len(self._answers())
        for epoch in epochs:
            self.tell_start([client], epoch, window)
            self.stop([client], epoch, window)
            self.tell_finish([client], epoch, {}, drain_max_s=0.1)
        self.peer.sync([client])
        self.peer.stays(lambda: len(self._answers()) == before, "an answer, or its end", 0.3)

    def _answers(self) -> list[FromClient | Arrival]:
        """What has been said beside answers to ``configure`` and pings."""
        log = self.peer.log
        return [
            m
            for m in log
            if not isinstance(m, Error | Ready) and getattr(m, "command", "") not in ("configure", "ping")
        ]

    # --- ends ------------------------------------------------------------------------------------------------------

    def quit(self) -> None:
        """Dismisses everybody."""
        self.peer.tell_everyone(Quit())

    def await_gone(self, program: GroupProgram, within_s: float) -> int:
        """Waits until no process of the group is left; the parent's exit code."""
        began = time.monotonic()
        self.peer.wait(lambda: program.exit_code() is not None, "the group's parent ends", within_s)
        left = within_s - (time.monotonic() - began)
        self.peer.wait(lambda: not program.members(), "every process of the group ends", max(left, 0.1))
        code = program.exit_code()
        assert code is not None
        return code

    def close(self) -> None:
        """Kills what is left of the groups and closes the channel."""
        for program in self.groups:
            program.close()
        self.peer.close()


def same_answer(first: Report, second: Report) -> bool:
    """Whether a report was repeated word for word, its ``seq`` apart."""
    return msgspec.structs.replace(first, seq=1) == msgspec.structs.replace(second, seq=1)
