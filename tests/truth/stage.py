"""One publisher and some subscribers of an implementation, steered over a real control channel, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hydra.model import PublisherReport, SubscriberReport
from hydra.wire.messages import Ready, Report
from tests.conformance.bench import Bench, StepSettings, Window, with_values
from tests.conformance.peer import Account
from tests.suite.waiting import SOON_S

PUBLISHER = 100


@dataclass(frozen=True)
class Measured:
    """What a step's clients reported."""

    epoch: int
    window: Window
    publisher: PublisherReport
    subscribers: Mapping[int, SubscriberReport]


class Stage:
    """The clients of one test.

    Args:
        bench: where they dial in.
        command: the program, with words before it such as :func:`tests.truth.priority.first` puts there.
        subscribers: their ids, in a row.
        host: the address that the publisher binds.
        within: words before the subscribers' command only.
    """

    def __init__(
        self,
        bench: Bench,
        command: str,
        subscribers: Sequence[int] = (1,),
        *,
        host: str = "127.0.0.1",
        within: str = "",
    ) -> None:
        self.bench = bench
        self.subscribers = list(subscribers)
        self._epoch = 0
        bench.launch(command, "zmq-pub", first_id=PUBLISHER, group="p", env={"HYDRA_DATA_HOST": host})
        first, count = self.subscribers[0], len(self.subscribers)
        bench.launch(f"{within} {command}", "zmq-sub", first_id=first, count=count, group="s")

    def next(self, settings: StepSettings) -> Step:
        """Configures the publisher for a further step."""
        self._epoch += 1
        endpoint = self.bench.configure_publisher(PUBLISHER, self._epoch, settings)
        return Step(self.bench, self.subscribers, self._epoch, settings, endpoint)


@dataclass(frozen=True)
class Step:
    """A step whose publisher listens at ``endpoint``."""

    bench: Bench
    subscribers: Sequence[int]
    epoch: int
    settings: StepSettings
    endpoint: str

    def connect(self, elsewhere: Mapping[int, str] | None = None) -> None:
        """Proves every subscriber ready, those that ``elsewhere`` names at another endpoint."""
        for client in self.subscribers:
            publishers = {PUBLISHER: (elsewhere or {}).get(client, self.endpoint)}
            settings = with_values(self.settings, rcvhwm=0)
            self.bench.send_configure([client], self.epoch, settings, publishers=publishers)
        self.bench.peer.heard(Ready, self.subscribers, epoch=self.epoch)

    def run(
        self,
        duration_s: float,
        *,
        drain_max_s: float = 10.0,
        quiet_s: float = 0.5,
        begun: Callable[[Window], None] = lambda _: None,
    ) -> Measured:
        """Window, stop, drain, reports; ``begun`` is called with the window before it begins, and may wait in it."""
        window = self.bench.start([PUBLISHER, *self.subscribers], self.epoch, duration_s)
        begun(window)
        self.bench.await_end(window)
        self.bench.stop(self.subscribers, self.epoch, window)
        publisher = self.bench.publisher_report(PUBLISHER, self.epoch, window)
        reports = self.bench.subscriber_reports(
            self.subscribers,
            self.epoch,
            {PUBLISHER: publisher.sent},
            unacknowledged={PUBLISHER: publisher.unacknowledged},
            drain_max_s=drain_max_s,
            quiet_s=quiet_s,
            timeout_s=drain_max_s + SOON_S,
        )
        for kind, count in ((Report, 1), (Account, len(reports))):
            assert len(self.bench.peer.messages_of(kind, epoch=self.epoch)) == count, "somebody has reported twice"
        return Measured(self.epoch, window, publisher, reports)
