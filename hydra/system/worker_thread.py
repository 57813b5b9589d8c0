"""Makes calls that wait for other processes on a separate thread, while the caller continues to serve clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_all
from contextlib import ExitStack, closing
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from hydra.system import Waiting, wait_alone

THREAD: Final = "hydra-background"
"""The name of the thread."""
_MARGIN_S: Final = 2.0
"""Extra time for a call beyond its own timeout: on a busy machine threads run late."""

_T = TypeVar("_T")
_Item = TypeVar("_Item")


class WorkerThread:
    """A thread that makes the calls handed to it, one after another.

    The thread is a daemon: a call that is still waiting does not keep this process from ending.

    Arguments:
        wait: how the caller waits for a result.
        idle: what the thread does while there is no call, such as to keep a connection alive; it must not raise.
        every_s: how often, in seconds.
    """

    def __init__(
        self, wait: Waiting = wait_alone, *, idle: Callable[[], object] | None = None, every_s: float = 1.0
    ) -> None:
        self._wait = wait
        self._idle = idle
        self._every_s = None if idle is None else every_s
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(self, call: Callable[[], _T], within_s: float) -> _T:
        """Makes a call, and returns or raises what it does.

        If an exception such as Ctrl-C ends the wait, a call that has not begun is cancelled.

        Args:
            call: the call, which ends by itself within about ``within_s``.
            within_s: time limit in seconds; earlier calls that are still running count, too.

        Raises:
            TimeoutError: the call has not ended by then.
        """
        future = self.submit(call)
        try:
            if not self._wait(future.done, within_s + _MARGIN_S):
                raise TimeoutError
            return future.result()
        finally:
            future.cancel()

    def submit(self, call: Callable[[], _T]) -> Future[_T]:
        """Hands over a call without waiting."""
        self.start()
        future: Future[_T] = Future()
        self._calls.put((future, call))
        return future

    def start(self) -> None:
        """Starts the thread before the first call."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)
            self._thread.start()

    def repeated(self, question: Callable[[], bool]) -> Callable[[], bool]:
        """A condition for a :data:`Waiting` that repeats a call until it returns True."""
        answer = self.submit(question)

        def condition() -> bool:
            nonlocal answer
            if answer.done() and not answer.result():
                answer = self.submit(question)
            return answer.done() and answer.result()

        return condition

    def close(self) -> None:
        """Ends the thread after its pending calls; may be called twice."""
        if self._thread is not None:
            self._thread = None
            self._calls.put(None)

    def _run(self) -> None:
        while True:
            try:
                item = self._calls.get(timeout=self._every_s)
            except Empty:
                if self._idle is not None:
                    self._idle()
                continue
            if item is None:
                return
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as e:  # noqa: BLE001  # the caller gets the exception
                future.set_exception(e)
            # The last call's objects are released before the wait for the next call.
            del item, future, call


def at_once(call: Callable[[_Item], _T], items: Iterable[_Item]) -> list[_T]:
    """The results of a call for each item, all made at the same time.

    A call that hangs does not keep this process from ending.
    """
    with ExitStack() as stack:
        workers = ((stack.enter_context(closing(WorkerThread())), item) for item in items)
        results = [worker.submit(partial(call, item)) for worker, item in workers]
        return [result.result() for result in results]


def in_time(call: Callable[[_Item], _T], items: Iterable[_Item], within_s: float) -> list[_T | None]:
    """The results of a call for each item, all made at the same time; None for a call that has not ended in time."""
    with ExitStack() as stack:
        workers = ((stack.enter_context(closing(WorkerThread())), item) for item in items)
        results = [worker.submit(partial(call, item)) for worker, item in workers]
        wait_for_all(results, within_s)
        return [result.result() if result.done() else None for result in results]
