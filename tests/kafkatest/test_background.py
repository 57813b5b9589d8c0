"""Nothing that is asked of Kafka keeps the controller from its clients."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from functools import partial

import pytest

from hydra.control import curve_security
from hydra.control.control_client import ClientIdentity, ControlClient, ProcessLocation
from hydra.control.controller import Controller
from hydra.errors import ServerError
from hydra.kafkatest import cluster_calls
from hydra.kafkatest import topics as module
from hydra.kafkatest.topics import Topics
from hydra.system.worker_thread import WorkerThread
from hydra.wire.messages import Welcome
from tests.suite.waiting import SOON_S, wait_until


@pytest.mark.tier("test")
def test_clients_are_served_while_a_mute_broker_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (module, cluster_calls):  # the thread must end before the test gives up
        monkeypatch.setattr(each, "QUESTION_TIMEOUT_S", SOON_S / 3)
    identity = ClientIdentity(
        [1], "subscriber", "g", incarnation=0, implementation="", versions={}, here=ProcessLocation.read()
    )
    welcomed: list[object] = []

    def dial() -> None:
        credentials = curve_security.credentials({**os.environ, **controller.environment})
        with contextlib.closing(ControlClient(credentials, identity)) as client:
            welcomed.append(client.receive(SOON_S))

    def wait(condition: Callable[[], bool], timeout_s: float) -> bool:
        """Has had enough as soon as a client was welcomed."""
        controller.wait_until(lambda: condition() or bool(welcomed), timeout_s)
        return condition()

    # It accepts connections and never sends a byte.
    with contextlib.closing(Controller("run")) as controller, socket.create_server(("127.0.0.1", 0)) as mute:
        controller.roster.expect("g", [1])
        topics = Topics(f"127.0.0.1:{mute.getsockname()[1]}", {}, "run", wait)
        dialling = threading.Thread(target=dial)
        dialling.start()
        with pytest.raises(ServerError, match="does not"):
            topics.end_offsets("t")
        assert welcomed, "the question was given up, or asked in the controller's own thread"
        assert isinstance(welcomed[0], Welcome)
        dialling.join()
        topics.close()


def test_answers_and_errors_come_back_in_order() -> None:
    with contextlib.closing(WorkerThread()) as background:
        assert [background.ask(partial(pow, n, 2), SOON_S) for n in range(4)] == [0, 1, 4, 9]
        with pytest.raises(ZeroDivisionError):
            background.ask(lambda: 1 // 0, SOON_S)
        assert background.ask(lambda: "still there", SOON_S) == "still there"
        background.close()


def test_whoever_is_interrupted_takes_the_call_back_unless_it_has_begun() -> None:
    """A topic whose creation has not begun must not come into being behind the back of its deletion."""
    let_go, made = threading.Event(), list[str]()

    def interrupted(condition: Callable[[], bool], timeout_s: float) -> bool:
        raise KeyboardInterrupt

    with contextlib.closing(WorkerThread(interrupted)) as background:
        background.submit(let_go.wait)
        with pytest.raises(KeyboardInterrupt):
            background.ask(lambda: made.append("topic"), SOON_S)
        let_go.set()
        wait_until(background.submit(lambda: made.append("last")).done, "the last call")
    assert made == ["last"]


def test_a_question_is_asked_again_until_it_is_answered_with_yes() -> None:
    answers = [False, False, True]
    with contextlib.closing(WorkerThread()) as background:
        wait_until(background.repeated(lambda: answers.pop(0)), "yes")
    assert answers == []
