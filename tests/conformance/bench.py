"""The work bench of a conformance test: one control channel, groups under test, and the verbs of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from time import monotonic_ns
from typing import Any

import msgspec

from hydra.model import PublisherReport, SharedSettings, SubscriberReport
from hydra.wire import messages as wire
from hydra.wire.clock import StepClock, wall_offset_ns
from tests.conformance.group import GroupProgram
from tests.conformance.peer import Account, Arrival, ControlPeer
from tests.suite.waiting import SOON_S, TIME_FACTOR

CLIENT = 3
"""Who is under test, where it is one."""
ONE, OTHER, STRANGER = 100, 101, 666
"""Publishers that a subscriber's settings name, and one that they do not."""
LEAD_NS = round(60_000_000 * TIME_FACTOR)
"""How far ahead of its window a start is sent here, at least."""
_MOST_AHEAD_NS = 1_000_000_000
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
    def clock(self) -> wire.HostClock:
        """The step's clock as clients get it."""
        return wire.HostClock(at_ns=self.at_ns, step_ns=self.at_ns + self.offset_ns, rate_ppb=self.rate_ppb)

    def now_ns(self) -> int:
        """The step's clock now."""
        return StepClock(self.clock).now_ns()

    def expired(self, by_s: float = 0.0) -> bool:
        """Whether the window has been over for this long."""
        return self.now_ns() > self.stop_ns + by_s * 1e9


@dataclass(frozen=True)
class StepSettings:
    """What a step is set to: what all systems share, and the system's own."""

    shared: SharedSettings = field(default_factory=lambda: SharedSettings(burst=100))
    system: Mapping[str, Any] = field(default_factory=dict)


def with_values(settings: StepSettings, **values: Any) -> StepSettings:
    """The settings with some changed; each value goes where it belongs."""
    own = {f.name for f in fields(SharedSettings)} & values.keys()
    return StepSettings(
        replace(settings.shared, **{name: values[name] for name in own}),
        {**settings.system, **{name: value for name, value in values.items() if name not in own}},
    )


def step_settings(**values: Any) -> StepSettings:
    """The default settings with these values."""
    return with_values(StepSettings(), **values)


class Bench:
    """Starts groups, speaks to them as the controller would, and leaves nothing behind."""

    def __init__(self, *, silence_s: float = 0.0, host: str = "127.0.0.1") -> None:
        self.peer = ControlPeer(silence_s=silence_s, host=host)
        self.groups: list[GroupProgram] = []
        self.unsupported: frozenset[str] = frozenset()
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
        """Starts a group and waits until its relay has sent ``hello``, registered its clients and read their welcome.

        A client that ends before its welcome was read has a successor that is registered twice before it is meant.
        Without ``kind`` the command has its kind.
        """
        standard = [*filter(None, [kind]), "--group", group, "--first-id", str(first_id), "--count", str(count)]
        program = self._start(command, [*standard, *arguments], env or {}, lifeline=lifeline)
        if await_hello:
            clients = range(first_id, first_id + count)
            self.peer.present(clients)
            self.peer.relays_in_sync(clients)
        return program

    def refused(self, command: str, arguments: Sequence[str], env: Mapping[str, str] | None = None) -> str:
        """Starts a group that cannot be; the one line that it prints before it ends with exit code 2."""
        program = self._start(command, arguments, env or {})
        assert program.process.wait(SOON_S) == 2
        (line,) = program.stderr().splitlines()
        return line

    def _start(
        self, command: str, arguments: Sequence[str], env: Mapping[str, str], *, lifeline: bool = True
    ) -> GroupProgram:
        environment = {**self.peer.environment, "HYDRA_AGENT": "agent-1", **env}
        self.groups.append(GroupProgram(command, arguments, environment, lifeline=lifeline))
        return self.groups[-1]

    # --- the verbs of a step ---------------------------------------------------------------------------------------

    def send_configure(
        self,
        ids: Iterable[int],
        epoch: int,
        settings: StepSettings | None = None,
        *,
        publishers: Mapping[int, str] | None = None,
        probe: bool = True,
        system: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Sends ``configure`` and waits for nothing; ``system`` is added to that of the settings."""
        reported = settings or StepSettings()
        command = wire.Configure(
            epoch=epoch,
            number=1,
            settings=reported.shared,
            publishers=[wire.PublisherEndpoint(p, e) for p, e in (publishers or {}).items()],
            probe=probe,
            system={k: v for k, v in reported.system.items() if k not in self.unsupported} | dict(system or {}),
            **more,
        )
        self.peer.send_new(ids, command)

    def configure_publisher(self, client: int, epoch: int, settings: StepSettings | None = None, **more: Any) -> str:
        """Configures a publisher; returns the data endpoint that it named."""
        self.send_configure([client], epoch, settings, **more)
        self.peer.heard(wire.Ack, [client], epoch=epoch, command="configure")
        return self.peer.heard(wire.Ready, [client], epoch=epoch).endpoint

    def configure_subscribers(
        self, ids: Sequence[int], epoch: int, settings: StepSettings | None = None, **more: Any
    ) -> None:
        """Configures subscribers and waits for their ack, not for their readiness."""
        self.send_configure(ids, epoch, settings, **more)
        self.peer.heard(wire.Ack, ids, epoch=epoch, command="configure")

    def start(self, ids: Sequence[int], epoch: int, duration_s: float, *, rate_ppb: int = 0) -> Window:
        """Sends ``start`` for a window a little ahead and waits until all clients have it.

        It is further ahead where a ping takes long, so that clients of a busy machine have the start in time, too.
        ``rate_ppb`` is how much faster than this host's the step's clock has been running for a while.
        """
        request_ns = monotonic_ns()
        self.peer.relays_in_sync(ids)
        lead_ns = max(LEAD_NS, min(10 * (monotonic_ns() - request_ns), _MOST_AHEAD_NS))
        at_ns = monotonic_ns() - (APART_NS if rate_ppb else 0)
        clock = Window(0, 0, wall_offset_ns(), at_ns, rate_ppb)
        start_ns = clock.now_ns() + lead_ns
        window = replace(clock, start_ns=start_ns, stop_ns=start_ns + round(duration_s * 1e9))
        self.send_start(ids, epoch, window)
        self.peer.heard(wire.Ack, ids, epoch=epoch, command="start")
        return window

    def send_start(self, ids: Iterable[int], epoch: int, window: Window) -> None:
        """Sends ``start`` and waits for nothing."""
        self.peer.send_new(
            ids,
            wire.Start(
                epoch=epoch, number=2, start_at_ns=window.start_ns, stop_at_ns=window.stop_ns, clock=window.clock
            ),
        )

    def await_end(self, window: Window, by_s: float = 0.0) -> None:
        """Serves the channel until the window is over."""
        left_s = (window.stop_ns - window.now_ns()) / 1e9
        self.peer.wait(lambda: window.expired(by_s), "the end of the window", max(left_s, 0.0) + SOON_S)

    def await_moment(self, window: Window, at_s: float) -> None:
        """Serves the channel until the window has lasted for so long."""
        self.await_end(replace(window, stop_ns=window.start_ns), at_s)

    def stop(self, ids: Iterable[int], epoch: int, window: Window) -> None:
        """Sends ``stop``."""
        self.peer.send_new(ids, wire.Stop(epoch=epoch, number=3, stop_at_ns=window.stop_ns))

    def publish(
        self, client: int, epoch: int, duration_s: float, *, after_s: float = 0.0
    ) -> tuple[Window, PublisherReport]:
        """Has a publisher send in a window, and stops it ``after_s`` after that; the window and its report."""
        window = self.start([client], epoch, duration_s)
        self.await_end(window, after_s)
        return window, self.publisher_report(client, epoch, window)

    def publisher_report(self, client: int, epoch: int, window: Window, timeout_s: float = SOON_S) -> PublisherReport:
        """Stops a publisher and takes its report."""
        self.stop([client], epoch, window)
        return self.peer.heard(wire.Report, [client], epoch=epoch, timeout_s=timeout_s).publisher

    def send_finish(
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
        self.peer.send_new(
            ids,
            wire.Finish(
                epoch=epoch,
                number=4,
                publishers=[
                    wire.PublisherTotal(publisher=p, sent=n, unacknowledged=missing.get(p, [])) for p, n in sent.items()
                ],
                drain_max_s=drain_max_s,
                quiet_s=quiet_s,
                system=None if system is None else dict(system),
            ),
        )

    def subscriber_report(
        self, client: int, epoch: int, sent: Mapping[int, int], *, timeout_s: float = SOON_S, **more: Any
    ) -> SubscriberReport:
        """Finishes a subscriber's step and takes its report."""
        return self.subscriber_reports([client], epoch, sent, timeout_s=timeout_s, **more)[client]

    def subscriber_reports(
        self, ids: Sequence[int], epoch: int, sent: Mapping[int, int], *, timeout_s: float = SOON_S, **more: Any
    ) -> dict[int, SubscriberReport]:
        """The same of several."""
        self.send_finish(ids, epoch, sent, **more)
        return {client: self.reported(client, epoch, timeout_s) for client in ids}

    def reports_again(self, client: int, epoch: int) -> None:
        """Waits until a client has reported once more, and holds that against its first report."""

        def reports() -> list[wire.Report | Account]:
            of_publishers = self.peer.messages_of(wire.Report, client, epoch=epoch)
            return [*of_publishers, *self.peer.messages_of(Account, client, epoch=epoch)]

        self.peer.wait(lambda: len(reports()) >= 2, f"another report of client {client}")
        assert same_answer(*reports())

    def hears_why_not(self, client: int, epoch: int, named: str = "") -> None:
        """Waits until a client reports that it cannot obey, for a reason with this text, and continues to run."""
        error = self.peer.heard(wire.Error, [client], epoch=epoch)
        assert error.message
        assert named in error.message
        assert not error.fatal

    def reported(self, client: int, epoch: int, timeout_s: float = SOON_S) -> SubscriberReport:
        """Waits for the report of a subscriber that has been instructed to finish."""
        return self.peer.heard(Account, [client], epoch=epoch, timeout_s=timeout_s).report

    def ignores_commands(self, client: int, epochs: Iterable[int], window: Window) -> None:
        """Sends this client the commands of steps that it does not have; fails if it answers, or dies of them."""
        before = len(self._answers())
        for epoch in epochs:
            self.send_start([client], epoch, window)
            self.stop([client], epoch, window)
            self.send_finish([client], epoch, {}, drain_max_s=0.1)
        self.peer.sync([client])
        self.peer.stays(lambda: len(self._answers()) == before, "an answer, or its end", 0.3)

    def _answers(self) -> list[wire.FromClient | Arrival | Account]:
        """The messages except answers to ``configure`` and pings."""
        return [
            m
            for m in self.peer.log
            if not isinstance(m, wire.Error | wire.Ready) and getattr(m, "command", "") not in ("configure", "ping")
        ]

    # --- ends ------------------------------------------------------------------------------------------------------

    def quit(self) -> None:
        """Dismisses every client."""
        self.peer.broadcast(wire.Quit())

    def rest(self, epoch: int) -> None:
        """Ends what the clients do, by the configuration of an epoch in which there is nothing to do."""
        ids = [client for hello in self.peer.messages_of(wire.Hello) for client in hello.ids]
        self.peer.send_to(
            ids, wire.Configure(epoch=epoch, number=1, settings=StepSettings().shared, publishers=[], probe=False)
        )
        # Without a topic, for example, it is an error, and as good. An ended client sends nothing.
        text = self.peer.messages_of
        self.peer.wait(
            lambda: (
                bool(text(wire.ChildExit))
                or all(text(wire.Ack, c, epoch=epoch) or text(wire.Error, c, epoch=epoch) for c in ids)
            ),
            "everybody's rest",
        )

    def await_exit(self, program: GroupProgram, within_s: float = SOON_S) -> int:
        """Waits until no process of the group is left; the parent's exit code."""
        self.peer.wait(lambda: program.exit_code() is not None, "the group's parent ends", within_s)
        self.peer.wait(lambda: not program.members(), "every process of the group ends", within_s)
        code = program.exit_code()
        assert code is not None
        return code

    def close(self) -> None:
        """Kills what is left of the groups and closes the channel."""
        for program in self.groups:
            program.close()
        self.peer.close()


def same_answer(first: wire.Report | Account, second: wire.Report | Account) -> bool:
    """Whether a report was repeated word for word, but for its ``seq`` and the number of the command."""
    if isinstance(first, Account) or isinstance(second, Account):
        return isinstance(first, Account) and isinstance(second, Account) and first.report == second.report
    return msgspec.structs.replace(first, seq=1, number=0) == msgspec.structs.replace(second, seq=1, number=0)
