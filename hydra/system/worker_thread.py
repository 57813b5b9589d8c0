"""Calls that wait for somebody else, made on a thread of their own while their caller goes on serving."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from hydra.system import Waiting, wait_alone

THREAD: Final = "hydra-background"
"""What its thread is called."""
_MARGIN_S: Final = 2.0
"""What a call may take beyond its own timeout: threads get their turn late on a busy machine."""

_T = TypeVar("_T")


class WorkerThread:
    """One thread that makes the calls handed to it, one after the other.

    It is a daemon: a call that still waits for somebody does not keep this process from ending.

    Arguments:
        wait: how the caller waits for an answer.
    """

    def __init__(self, wait: Waiting = wait_alone) -> None:
        self._wait = wait
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, call: Callable[[], _T], within_s: float) -> _T:
        """What the call returns, or raises.

        Whoever leaves this by an exception, Ctrl-C for instance, takes the call back if it has not begun.

        Args:
            call: ends by itself within about ``within_s``.
            within_s: how long it is waited for; calls before it that were given up count, too.

        Raises:
            TimeoutError: it has not ended by then.
        """
        future = self.submit(call)
        try:
            if not self._wait(future.done, within_s + _MARGIN_S):
                raise TimeoutError
            return future.result()
        finally:
            future.cancel()

    def submit(self, call: Callable[[], _T]) -> Future[_T]:
        """Hands over a call and waits for nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)
            self._thread.start()
        future: Future[_T] = Future()
        self._calls.put((future, call))
        return future

    def repeated(self, question: Callable[[], bool]) -> Callable[[], bool]:
        """A condition for a :data:`Waiting`: whether the question, asked again and again, was answered with yes."""
        answer = self.submit(question)

        def condition() -> bool:
            nonlocal answer
            if answer.done() and not answer.result():
                answer = self.submit(question)
            return answer.done() and answer.result()

        return condition

    def close(self) -> None:
        """Ends the thread after the calls that it has; may be called twice."""
        if self._thread is not None:
            self._thread = None
            self._calls.put(None)

    def _run(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as e:  # noqa: BLE001  # it belongs to whoever asked
                future.set_exception(e)
            # Nothing of the last call is kept while there is no next one.
            del item, future, call
