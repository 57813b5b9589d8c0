"""``hydra ceiling``: measures, stores and prints the highest rates of Hydra's own clients, over the control channel."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Final

import click

from hydra.control.controller import Controller
from hydra.errors import MissingDependencyError, ReadinessError
from hydra.events.value_formatting import counted
from hydra.measure.verdict import Ceiling
from hydra.model import NativeSpec, Role, SharedSettings
from hydra.native.build import find
from hydra.native.client_command import command
from hydra.store.ceiling_cache import add, load, path
from hydra.system import Program
from hydra.wire.clock import wall_offset_ns
from hydra.wire.messages import Configure, Finish, HostClock, PublisherEndpoint, PublisherTotal, Start, Stop
from hydra.wire.protocol_constants import kind_of

LANGUAGES: Final = ("python", "native")
_WINDOWS: Final = 3
"""The best of this many windows counts: other work on the machine can only lower a rate."""
_GROUP: Final = "ceiling"
_ELSEWHERE: Final = 2**31
"""The id of the publisher that subscribers subscribe to; no such publisher exists."""
_WITHIN_S: Final = 60.0
_END_WITHIN_S: Final = 5.0
_AHEAD_NS: Final = 300_000_000
_MOST: Final = 2**40
"""The number of sent messages that subscribers are given: more than any of them receives."""


def measure(language: str, role: Role, clients: int, message_size: int, window_s: float) -> Ceiling:
    """Measures the rate of all clients together, without a system that limits them: the best of three windows.

    Args:
        language: one of ``LANGUAGES``.
        role: the role of all clients.
        clients: number of clients; each is a process.
        message_size: size of a message in bytes.
        window_s: length of a window in seconds.

    Raises:
        ReadinessError: a client did not connect, or did not answer.
        MissingDependencyError: the native client was not built.
    """
    with _group(_program(language, role), clients) as controller:
        windows = range(1, _WINDOWS + 1)
        messages = max(_window(controller, e, role, clients, message_size, round(window_s * 1e9)) for e in windows)
    return Ceiling(language, role, clients, message_size, messages / window_s)


def _program(language: str, role: Role) -> Program:
    if language == "native":
        return Program(command("null", role, NativeSpec()), {})
    return Program.of_module("hydra.cli.ceiling_client", kind_of("null", role))


@contextmanager
def _group(program: Program, clients: int) -> Iterator[Controller]:
    controller = Controller(_GROUP)
    lifeline = os.pipe()
    controller.roster.expect(_GROUP, list(range(clients)))
    names = ("--group", _GROUP, "--first-id", "0", "--count", str(clients))
    environment = {**os.environ, **controller.environment, **program.environment, "HYDRA_LIFELINE": str(lifeline[0])}
    process = subprocess.Popen([*program.command, *names], env=environment, pass_fds=(lifeline[0],))
    try:
        if not controller.wait_until(lambda: len(controller.roster.present()) == clients, _WITHIN_S):
            raise ReadinessError(
                f"not all of {counted(clients, 'client')} connected within {_WITHIN_S:.0f} s", "try fewer"
            )
        yield controller
        controller.quit()
        controller.wait_until(lambda: process.poll() is not None, _END_WITHIN_S)
    finally:
        # Processes that are still running end when their lifeline closes.
        for end in lifeline:
            os.close(end)
        controller.close()
        try:
            process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _window(controller: Controller, epoch: int, role: Role, clients: int, message_size: int, window_ns: int) -> int:
    """Measures one window; the number of messages that all clients sent or received."""
    everybody = list(range(clients))
    controller.roster.begin(epoch)
    answers = controller.roster.answers
    ahead_ns = wall_offset_ns()
    # The commands need this long to reach all clients.
    begin_ns = time.monotonic_ns() + _AHEAD_NS + clients * 1_000_000
    end_ns = begin_ns + window_ns
    configure = Configure(
        epoch=epoch,
        number=1,
        settings=SharedSettings(rate="max", burst=100, message_size=message_size),
        publishers=[] if role == "publisher" else [PublisherEndpoint(_ELSEWHERE, "null")],
        probe=False,
        system={"from_ns": begin_ns, "until_ns": end_ns, "ahead_ns": ahead_ns},
    )
    clock = HostClock(at_ns=0, step_ns=ahead_ns)
    window = (begin_ns + ahead_ns, end_ns + ahead_ns)
    controller.tell(everybody, configure)
    controller.tell(everybody, Start(epoch=epoch, number=2, start_at_ns=window[0], stop_at_ns=window[1], clock=clock))
    controller.wait_until(lambda: time.monotonic_ns() > end_ns, _WITHIN_S)
    controller.tell(everybody, Stop(epoch=epoch, number=3, stop_at_ns=window[1]))
    if role == "publisher":
        _await(controller, lambda: len(answers.publisher_reports) == clients)
        return sum(report.sent for report in answers.publisher_reports.values())
    sent = PublisherTotal(publisher=_ELSEWHERE, sent=_MOST)
    controller.tell(everybody, Finish(epoch=epoch, number=4, publishers=[sent], drain_max_s=0.5, quiet_s=0.1))
    _await(controller, lambda: len(answers.subscriber_reports.ids) == clients)
    return int(answers.subscriber_reports.table().in_window.sum())


def _await(controller: Controller, reported: Callable[[], bool]) -> None:
    if not controller.wait_until(reported, _WITHIN_S):
        raise ReadinessError(f"not all clients reported within {_WITHIN_S:.0f} s", "try fewer")


_ROLES: Final[tuple[Role, ...]] = ("publisher", "subscriber")


def run_ceiling(
    languages: Sequence[str], clients: Sequence[int], sizes: Sequence[int], window_s: float, *, as_json: bool
) -> None:
    """Measures each combination, publishers always one at a time, and prints all ceilings that are known then.

    Raises:
        HydraError: a ceiling could not be measured or stored.
    """
    # Without a request for them, the native clients are not compiled for a first look.
    present = LANGUAGES if find() else LANGUAGES[:1]
    for language, role in product(languages or present, _ROLES):
        for count, size in product([1] if role == "publisher" else clients, sizes):
            try:
                add([measure(language, role, count, size, window_s)])
            except MissingDependencyError:
                if languages:
                    raise
                break  # the user did not ask for this language
    rows = [
        {"clients in": c.language, "role": c.role, "clients": c.clients, "bytes": c.message_size, "messages/s": c.pps}
        for c in load()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    from hydra.report.table import tabled, terminal_width

    click.echo(tabled(rows, terminal_width(), floats=",.0f"))
    click.echo(
        f"these rates are kept in {path()}; rows within 10 % of one of these rates are marked as limited by the clients"
    )
