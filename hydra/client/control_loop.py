"""The duty cycle that every client runs: some work, then whatever the controller has to say.

No client looks whether the other end is still there: it dies with its group's parent, which ends when its relay does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from hydra.control.control_client import ControlClient
from hydra.errors import HydraError
from hydra.model import PublisherReport, SubscriberReport
from hydra.wire.messages import (
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
    name_of,
)


def serve(control: ControlClient, work: Callable[[], float], obey: Callable[[FromController], None]) -> None:
    """Works and obeys until told to quit.

    A command that takes long may be given again meanwhile. Its answer is younger than those repetitions, so they are
    not obeyed: a configuration that fails after ten seconds would fail once more for each of them.

    Args:
        control: the client's end of the channel.
        work: does what is due now; returns for how many seconds the loop may wait for a command, infinity where nothing
            is due before one comes.
        obey: takes one command.
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
    """The loop of one client: what it does with the commands of its steps, whatever sends or reads its messages."""

    def __init__(self, client: int, control: ControlClient) -> None:
        self._id = client
        self._control = control
        self._epoch = 0
        self._command: Configure | None = None  # None as well after one that could not be obeyed
        self._report: Report | None = None

    def run(self) -> None:
        """Obeys until told to quit."""
        serve(self._control, self._work, self._obey)

    @abstractmethod
    def _work(self) -> float:
        """Does what is due now; how long the loop may wait for a command, in seconds."""

    @abstractmethod
    def _end(self) -> None:
        """The step ends, also if the next one cannot be: there may be no connection left."""

    @abstractmethod
    def _prepare(self, command: Configure) -> None:
        """Gets ready for a step.

        Raises:
            HydraError, OSError, ValueError: it cannot be.
        """

    @abstractmethod
    def _endpoint(self) -> str | None:
        """What is said to be ready as soon as it is configured; None: nothing yet."""

    @abstractmethod
    def _heed(self, command: EpochCommand) -> None:
        """Takes another command of the step that it is configured for."""

    def _obey(self, message: FromController) -> None:
        if isinstance(message, Configure):
            self._configure(message)
        elif isinstance(message, EpochCommand) and self._command is not None and message.epoch == self._epoch:
            self._heed(message)

    def _configure(self, command: Configure) -> None:
        if command.epoch < self._epoch:
            return
        if self._command is None or command.epoch > self._epoch:
            self._end()
            self._epoch, self._command, self._report = command.epoch, None, None
            try:
                self._prepare(command)
            except (HydraError, OSError, ValueError) as e:
                self._complain(str(e))
                return
        self._command = command  # of the same epoch, another one differs by its probes only
        self._acknowledge(command)
        endpoint = self._endpoint()
        if endpoint is not None:
            self._control.send(Ready(ids=[self._id], seq=1, epoch=self._epoch, endpoint=endpoint))

    def _acknowledge(self, command: EpochCommand) -> None:
        self._control.acknowledge(command.epoch, name_of(command))

    def _complain(self, why: str) -> None:
        self._control.send(Error(ids=[self._id], seq=1, epoch=self._epoch, message=why[:4000]))

    def _say_report(self, publisher: PublisherReport | None = None, subscriber: SubscriberReport | None = None) -> None:
        self._report = Report(ids=[self._id], seq=1, epoch=self._epoch, publisher=publisher, subscriber=subscriber)
        self._control.send(self._report)


class PublisherLoop(StepLoop):
    """A step of a publisher begins by itself when its time has come, and is reported when it is stopped."""

    @abstractmethod
    def _start(self, configured: Configure, command: Start) -> None:
        """Takes the window of the step; a repeated start changes nothing."""

    @abstractmethod
    def _stop(self, command: Stop) -> PublisherReport | None:
        """The step ends: its account, None if it has not been started."""

    def _heed(self, command: EpochCommand) -> None:
        if isinstance(command, Start) and self._command is not None:
            self._start(self._command, command)
            self._acknowledge(command)
        elif isinstance(command, Stop):
            if self._report is not None:
                self._control.send(self._report)
            elif (report := self._stop(command)) is not None:
                self._say_report(publisher=report)


class SubscriberStep(Protocol):
    """One step of a subscriber."""

    def start(self, command: Start) -> None:
        """Takes the window of the step; a repeated start changes nothing."""

    def stop(self, stop_at_ns: int) -> None:
        """The window ends, perhaps before its time."""

    def finish(self, command: Finish) -> None:
        """Learns what to expect.

        Raises:
            ValueError: the system's part of the command is none; it is not obeyed.
        """


S = TypeVar("S", bound=SubscriberStep)


class SubscriberLoop(StepLoop, Generic[S]):
    """A step of a subscriber goes on behind its window, until all is read that it was told to expect."""

    def __init__(self, client: int, control: ControlClient) -> None:
        super().__init__(client, control)
        self._step: S | None = None  # what it is configured for

    def _heed(self, command: EpochCommand) -> None:
        step = self._step
        if step is None:
            return
        match command:
            case Start():
                step.start(command)
                self._acknowledge(command)
            case Stop():
                step.stop(command.stop_at_ns)
                self._acknowledge(command)
            case Finish() if self._report is not None:
                self._control.send(self._report)
            case Finish():
                try:
                    step.finish(command)
                except ValueError as e:
                    self._complain(str(e))
            case _:
                pass
