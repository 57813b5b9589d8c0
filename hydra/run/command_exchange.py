"""Commands to clients, which are resent until each client has answered or died, or time is up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from pyroaring import BitMap

from hydra.client.linux_process import local_limit_in
from hydra.control.epoch_replies import CommandRetry
from hydra.errors import StepError
from hydra.events.value_formatting import id_ranges
from hydra.model.machine import LOCAL_LIMITS
from hydra.run.context import RunContext
from hydra.run.deployment import Deployment
from hydra.wire import RESEND_EVERY_S
from hydra.wire.messages import FromController, encode

ANSWER_WITHIN_S: Final = 30.0
"""The time limit in seconds for commands that clients carry out at once."""

Shares = Sequence[tuple[BitMap, FromController]]
"""Sets of clients, each with its command."""


class CommandExchange:
    """Sends commands to the clients of a deployment, and reports why clients do not answer.

    Arguments:
        run: the run of the clients.
        deployment: the clients.
    """

    def __init__(self, run: RunContext, deployment: Deployment) -> None:
        self._run = run
        self._deployment = deployment

    def ask(
        self,
        shares: Shares,
        answered: Callable[[], BitMap],
        timeout_s: float,
        look: Callable[[], None] = lambda: None,
        *,
        is_sent: bool = False,
        margin_s: float = 0.0,
        every_s: float = RESEND_EVERY_S,
    ) -> BitMap:
        """Sends these clients their commands, repeatedly, until each has answered or died.

        Args:
            shares: the command of each client.
            answered: returns the clients that have answered so far; other clients may be among them.
            timeout_s: the time limit in seconds.
            look: called repeatedly during the wait; an exception from it ends the wait.
            is_sent: whether the commands have been sent once already.
            margin_s: the wait continues for at least this many seconds after the last new answer.
            every_s: the seconds between two resends to clients that have not answered.

        Returns the clients that have neither answered in time nor died.
        """
        deployment = self._deployment
        required = _recipients(shares)
        longest = max((len(encode(command)) for _, command in shares), default=1)
        connections = [ids for _, ids in self._run.controller.roster.identities(required)]
        outstanding = CommandRetry(
            connections, self._run.now_s(), timeout_s, margin_s=margin_s, every_s=every_s, command_bytes=longest
        )
        if not is_sent:
            self._send(shares, required)

        def done() -> bool:
            deployment.watch()
            look()
            answers, now_s = answered(), self._run.now_s()
            if _all_in(required, answers, deployment.died):
                return True
            outstanding.heard(len(answers), now_s)
            if again := outstanding.due(answers, deployment.died, now_s):
                self._send(shares, again)
            return outstanding.expired(now_s)

        self._run.controller.wait_until(done, math.inf)
        return required - answered() - deployment.died

    def _send(self, shares: Shares, clients: BitMap) -> None:
        for ids, command in shares:
            self._run.controller.send_to(ids & clients, command)

    def require(
        self,
        shares: Shares,
        answered: Callable[[], BitMap],
        who: str,
        what: str,
        timeout_s: float,
        *,
        is_sent: bool = False,
    ) -> None:
        """Sends these clients their commands and waits until all living ones have answered.

        Raises:
            StepError: a client did not answer or reported an error, or the system under test failed.
        """
        clients = _recipients(shares)

        def look() -> None:
            for client, text in self._run.controller.roster.answers.errors.items():
                if client in clients:
                    limit = LOCAL_LIMITS.get(local_limit_in(text))
                    raise StepError(f"client {client}: {text}", f"on its host, {limit.remedy}" if limit else "")
            self.check_system()

        self.evict_unanswered(
            self.ask(shares, answered, timeout_s, look, is_sent=is_sent), len(clients), who, what, timeout_s
        )

    def evict_unanswered(self, missing: BitMap, count: int, who: str, what: str, timeout_s: float) -> None:
        """Evicts the clients that have not answered, and raises StepError if there are any."""
        if missing:
            self._deployment.evict(missing)
            raise StepError(
                f"{len(missing)} of {count} {who} did not {what} within {timeout_s:g} s: {id_ranges(missing)}"
            )

    def check_system(self) -> None:
        """Raises StepError if the system under test has failed."""
        if failure := self._run.system.servers.failure():
            raise StepError(failure)

    def require_publishers(self) -> None:
        """Raises StepError if a publisher died."""
        if dead := self._deployment.died & BitMap(self._deployment.publishers):
            raise StepError(f"publisher {dead.min()} died")


def _recipients(shares: Shares) -> BitMap:
    return BitMap().union(*(ids for ids, _ in shares))


def _all_in(required: BitMap, answered: BitMap, died: BitMap) -> bool:
    """Whether all of these clients have answered or died; compares counts first, as it is called every few messages."""
    return len(answered) + len(died) >= len(required) and not required - answered - died
