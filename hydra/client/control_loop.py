"""The loop of every client: work, then commands from the controller.

A client does not watch its relay or the controller. When the relay of a process group ends, the group's parent process
ends, and the client dies with its parent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from hydra.control.control_client import ControlClient
from hydra.errors import HydraError, without_number
from hydra.model import PublisherReport, SubscriberReport
from hydra.wire import report_batch
from hydra.wire.messages import (
    Batch,
    Configure,
    EpochCommand,
    Error,
    Finish,
    FromController,
    Quit,
    Ready,
    Report,
    Start,
    Stop,
)


def serve(control: ControlClient, work: Callable[[], float], obey: Callable[[FromController], None]) -> None:
    """Works and obeys commands until it receives ``quit``.

    While a long command runs, the controller may repeat it. The answer is newer than these repetitions, so the loop
    skips them: otherwise a configuration that fails after ten seconds would fail again for each repetition.

    Args:
        control: the client's end of the channel.
        work: does what is due now; returns how many seconds the loop may wait for a command (infinity: until one
        comes).
        obey: obeys one command.
    """
    while True:
        message, obeyed = control.receive(work()), None
        while message is not None:
            if isinstance(message, Quit):
                return
            if message != obeyed:
                obey(message)
            message, obeyed = control.receive(0), message


class StepLoop(ABC):
    """The loop of one client: how it obeys the commands of its steps, whatever sends or reads its messages."""

    def __init__(self, client: int, control: ControlClient) -> None:
        self._id = client
        self._control = control
        self._epoch = 0
        self._command: Configure | None = None  # None also after a configuration that failed
        self._report: tuple[Report | Batch, bytes | None] | None = None  # in frames, without its number

    def run(self) -> None:
        """Obeys commands until it receives ``quit``."""
        serve(self._control, lambda: min(self._work(), self._tend()), self._obey)

    def _tend(self) -> float:
        """Keeps the data connection alive, also between steps; returns after how many seconds it has to again."""
        return math.inf

    @abstractmethod
    def _work(self) -> float:
        """Does what is due now; returns how many seconds the loop may wait for a command."""

    @abstractmethod
    def _end(self) -> None:
        """Ends the step, even if the next one cannot be prepared; the connection may be lost."""

    @abstractmethod
    def _prepare(self, command: Configure) -> None:
        """Prepares for a step.

        Raises:
            HydraError, OSError, ValueError: the client cannot be prepared.
        """

    @abstractmethod
    def _endpoint(self) -> str | None:
        """The endpoint to send in ``ready`` right after the configuration; None: not ready yet."""

    @abstractmethod
    def _obey_step(self, command: EpochCommand) -> None:
        """Obeys another command of the configured step."""

    def _obey(self, message: FromController) -> None:
        if isinstance(message, Configure):
            self._configure(message)
        elif isinstance(message, EpochCommand) and self._command is not None and message.epoch == self._epoch:
            self._obey_step(message)

    def _configure(self, command: Configure) -> None:
        if command.epoch < self._epoch:
            return
        if self._command is None or command.epoch > self._epoch:
            self._end()
            self._epoch, self._command, self._report = command.epoch, None, None
            try:
                self._prepare(command)
            except (HydraError, OSError, ValueError) as e:
                self._complain(without_number(str(e)), command.number)
                return
        self._command = command  # a second one of the same epoch differs only in its probes
        self._control.acknowledge(command)
        endpoint = self._endpoint()
        if endpoint is not None:
            self._control.send(
                Ready(ids=[self._id], seq=1, epoch=self._epoch, number=command.number, endpoint=endpoint)
            )

    def _complain(self, why: str, number: int = 0) -> None:
        """Sends an error, as the answer to the command of this number; 0: to none."""
        self._control.send(Error(ids=[self._id], seq=1, epoch=self._epoch, number=number, message=why[:4000]))

    def _answer(self, number: int, report: Report | Batch, payload: bytes | None = None) -> None:
        """Sends the client's report as the answer to the command of this number, and keeps it for another one."""
        self._report = report, payload
        self._control.send(msgspec.structs.replace(report, number=number), payload)


class PublisherLoop(StepLoop):
    """A publisher's step begins by itself at its start time; the publisher reports when the step is stopped."""

    @abstractmethod
    def _start(self, configured: Configure, command: Start) -> None:
        """Accepts the window of the step; a repeated ``start`` changes nothing."""

    @abstractmethod
    def _stop(self, command: Stop) -> PublisherReport | None:
        """Ends the step; returns its report, or None if it has not been started."""

    def _obey_step(self, command: EpochCommand) -> None:
        if isinstance(command, Start) and self._command is not None:
            self._start(self._command, command)
            self._control.acknowledge(command)
        elif isinstance(command, Stop) and self._report is not None:
            self._answer(command.number, *self._report)
        elif isinstance(command, Stop) and (report := self._stop(command)) is not None:
            self._answer(command.number, Report(ids=[self._id], seq=1, epoch=self._epoch, publisher=report))


class LoopStep(Protocol):
    """One step of a subscriber, as its loop needs it."""

    def start(self, command: Start) -> None:
        """Accepts the window of the step; a repeated ``start`` changes nothing."""

    def stop(self, stop_at_ns: int) -> None:
        """Ends the window, perhaps early."""

    def finish(self, command: Finish) -> None:
        """Accepts what to expect, and drains from now on.

        Raises:
            ValueError: the system's part of the command is invalid; the command has no effect.
        """


S = TypeVar("S", bound=LoopStep)


class SubscriberLoop(StepLoop, Generic[S]):
    """A subscriber's step continues after its window until the subscriber has read all that ``finish`` announced."""

    def __init__(self, client: int, control: ControlClient) -> None:
        super().__init__(client, control)
        self._step: S | None = None  # the configured step
        self._finish_number = 0  # of the last ``finish``, which the report answers

    def _send_report(self, report: SubscriberReport) -> None:
        """Sends the report of the step as the answer to the last ``finish``."""
        cohort = [self._id] if self._command is not None and self._command.cohort else []
        columns, payload = report_batch.encode([(self._id, report)], cohort)
        self._answer(self._finish_number, Batch(ids=[self._id], seq=1, epoch=self._epoch, columns=columns), payload)

    def _obey_step(self, command: EpochCommand) -> None:
        step = self._step
        if step is None:
            return
        match command:
            case Start():
                step.start(command)
                self._control.acknowledge(command)
            case Stop():
                step.stop(command.stop_at_ns)
                self._control.acknowledge(command)
            case Finish() if self._report is not None:
                self._answer(command.number, *self._report)
            case Finish():
                self._finish_number = command.number
                try:
                    step.finish(command)
                except ValueError as e:
                    self._complain(without_number(str(e)), command.number)
            case _:
                pass
