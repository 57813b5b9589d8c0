"""Nothing that is asked of Kafka keeps the controller from its clients."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from hydra.control import curve
from hydra.control.client import ControlClient, Here, Identity
from hydra.control.controller import Controller
from hydra.errors import ServerError
from hydra.kafkatest import topics as module
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.topics import Topics
from hydra.servers.background import Background
from hydra.system import wait_alone
from hydra.wire.messages import Welcome

LONGEST_GAP_S: Final = 1.0


class Watched(Controller):
    """A controller that notes the longest time for which nobody served it."""

    longest_s = 0.0
    served = 0.0

    def poll(self, timeout_s: float) -> None:
        if self.served:
            self.longest_s = max(self.longest_s, time.monotonic() - self.served)
        super().poll(timeout_s)
        self.served = time.monotonic()


@pytest.fixture
def controller() -> Iterator[Watched]:
    made = Watched("run")
    yield made
    made.close()


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.processes
def test_clients_are_served_while_a_mute_broker_is_asked(
    controller: Watched, mute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUESTION_TIMEOUT_S", 1.5 * LONGEST_GAP_S)
    topics = Topics(mute, {}, "run", controller.wait_until)
    controller.roster.expect("g", [1])
    identity = Identity([1], "subscriber", "g", incarnation=0, implementation="", versions={}, here=Here.read())
    welcomed: list[object] = []

    def dial() -> None:
        client = ControlClient(curve.credentials({**os.environ, **controller.environment}), identity)
        welcomed.append(client.receive(1.2))
        client.close()

    dialling = threading.Thread(target=dial)
    dialling.start()
    with pytest.raises(ServerError, match="does not"):
        topics.end_offsets("t")
    dialling.join()
    topics.close()
    assert isinstance(welcomed[0], Welcome)
    assert controller.longest_s < LONGEST_GAP_S


@pytest.mark.processes
@pytest.mark.usefixtures("needs_kafka")
def test_clients_are_served_while_a_broker_comes_up_and_goes(controller: Watched, tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "b", wait=controller.wait_until)
    try:
        broker.start()
        # Its first topic takes longest.
        topics = Topics(broker.bootstrap, {}, "run", controller.wait_until)
        topics.create("data")
        topics.close()
    finally:
        broker.stop()
    assert 0 < controller.longest_s < LONGEST_GAP_S


def test_answers_and_errors_come_back_in_order() -> None:
    background = Background()
    assert [background.ask(partial(pow, n, 2), 1.0) for n in range(4)] == [0, 1, 4, 9]
    with pytest.raises(ZeroDivisionError):
        background.ask(lambda: 1 // 0, 1.0)
    assert background.ask(lambda: "still there", 1.0) == "still there"
    background.close()
    background.close()


def test_whoever_is_interrupted_takes_the_call_back_unless_it_has_begun() -> None:
    """A topic whose creation has not begun must not come into being behind the back of its deletion."""
    let_go, made = threading.Event(), list[str]()

    def interrupted(condition: Callable[[], bool], timeout_s: float) -> bool:
        raise KeyboardInterrupt

    background = Background(interrupted)
    background.submit(let_go.wait)
    with pytest.raises(KeyboardInterrupt):
        background.ask(lambda: made.append("topic"), 1.0)
    let_go.set()
    last = background.submit(lambda: made.append("last"))
    assert wait_alone(last.done, 10)
    assert made == ["last"]


def test_a_question_is_asked_again_until_it_is_answered_with_yes() -> None:
    answers = [False, False, True]
    background = Background()
    assert wait_alone(background.repeated(lambda: answers.pop(0)), 10)
    assert answers == []
