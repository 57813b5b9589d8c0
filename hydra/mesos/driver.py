"""The process that runs pymesos: it turns the engine's messages into calls and a master's events into messages.

pymesos uses select(2), installs a SIGINT handler on import, loses its thread when a callback raises, and may wait 10 s
for an answer: none of that may happen in the process that serves the control channel. The engine starts this process
as ``python -m hydra.mesos.driver FD``; FD is its end of a socket pair.

The process sends, by ``kind``: ``registered`` (framework, again, master), ``agents`` (count), ``offers``, ``rescinded``
(offer), ``update`` (status), ``agent_lost`` (agent), ``disconnected``, ``failed`` (call, message, sure, tasks),
``sandbox`` (task, text), ``error`` and ``aborted`` (message), ``stopped`` (torn_down).
The engine sends, by ``call``: ``open`` (the first), ``accept``, ``decline``, ``revive``, ``suppress``, ``kill``,
``acknowledge``, ``reconcile``, ``sandbox``, ``stop`` (which precedes all calls that wait).
"""

from __future__ import annotations

import http.client
import logging
import os
import queue
import re
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pymesos

from hydra.engine.driver_pipe import DriverPipe, Message, Outbox
from hydra.errors import ClusterError
from hydra.mesos.master import OperatorApi

_TICK_S: Final = 0.5
_RECONNECT_S: Final = 0.5
"""The pause between two attempts to subscribe: pymesos itself waits only if the connection is refused."""
_JOIN_S: Final = 10.0
_VERSION: Final = re.compile(r"\d+(?:\.\d+)*")


class _Driver(pymesos.MesosSchedulerDriver):  # type: ignore[misc]  # pymesos has no types
    """pymesos' driver with three corrections."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.closing = threading.Event()
        super().__init__(*arguments, **named)

    @property
    def framework(self) -> dict[str, Any]:
        """The framework's description, without the capability for GPUs, which Hydra does not handle."""
        info: dict[str, Any] = super().framework
        info["capabilities"] = [c for c in info.get("capabilities", ()) if c["type"] != "GPU_RESOURCES"]
        return info

    def _get_version(self, master: str | None) -> str | None:
        """The numbers of a version such as 1.12.0-rc1, whose suffix pymesos cannot parse."""
        numbers = _VERSION.match(super()._get_version(master) or "")
        return numbers[0] if numbers else None

    def on_close(self) -> None:
        """Notifies the scheduler, and waits before the next attempt at a master that hangs up at once (503)."""
        super().on_close()
        self.closing.wait(_RECONNECT_S)


class _LastError(logging.Handler):
    """Keeps the last error that pymesos logged, which is the reason if its thread ends."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        # A RuntimeError is pymesos' own: a call that the master has rejected.
        kind = "" if error is None or isinstance(error, RuntimeError) else f"{type(error).__name__}: "
        self.text = f"{kind}{error}" if error else record.getMessage()


class _Scheduler(pymesos.Scheduler):  # type: ignore[misc]
    """The callbacks; each puts one message into the outbox and returns."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._subscribed = False

    def _send(self, kind: str, **fields: Any) -> None:
        self._outbox.put({"kind": kind, **fields})

    def registered(self, _driver: Any, framework_id: Any, master_info: Any) -> None:
        self._subscribed = True
        self._send("registered", framework=framework_id["value"], again=False, master=_address(master_info))

    def reregistered(self, driver: Any, master_info: Any) -> None:
        self._subscribed = True
        self._send("registered", framework=driver.framework_id, again=True, master=_address(master_info))

    def disconnected(self, _driver: Any) -> None:
        # pymesos calls this after every failed attempt; one message is enough.
        if self._subscribed:
            self._subscribed = False
            self._send("disconnected")

    def resourceOffers(self, _driver: Any, offers: Any) -> None:  # noqa: N802  # pymesos' names
        self._send("offers", offers=offers)

    def offerRescinded(self, _driver: Any, offer_id: Any) -> None:  # noqa: N802
        self._send("rescinded", offer=offer_id["value"])

    def statusUpdate(self, _driver: Any, update: Any) -> None:  # noqa: N802
        self._send("update", status=update)

    def slaveLost(self, _driver: Any, agent_id: Any) -> None:  # noqa: N802
        self._send("agent_lost", agent=agent_id["value"])

    def executorLost(self, *_: Any) -> None:  # noqa: N802
        """Does nothing: the task's own update reports the same."""

    def error(self, _driver: Any, message: str) -> None:
        self._send("error", message=message)

    def processHeartBeat(self, *_: Any) -> None:  # noqa: N802
        """Does nothing: TCP detects a dead connection."""


def _address(master_info: Any) -> str:
    return f"{master_info['hostname']}:{master_info['port']}"


class _Process:
    """Moves messages between the channel and the driver until the engine stops this process or has ended."""

    def __init__(self, channel: DriverPipe) -> None:
        self._channel = channel
        self._outbox = Outbox()
        self._calls: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._errors = _LastError()
        self._aside = ThreadPoolExecutor(4, "aside")
        self._driver: _Driver | None = None
        self._ending = threading.Event()
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._channel.closed and not self._stopped.is_set():
            for message in self._channel.receive():
                match message["call"]:
                    case "open":
                        self._open(message)
                    case "stop":
                        self._end(message)
                    case _:
                        self._calls.put(message)
            self._forward()
            self._channel.wait(_TICK_S, self._outbox.bell)
        if self._driver is not None and not self._stopped.is_set():
            # The engine was killed: this process ends its framework.
            self._end({"call": "stop"})
            self._stopped.wait(_JOIN_S)
        self._forward()

    def _end(self, stop: Message) -> None:
        """Makes a stop overtake the calls that wait: to acknowledge many groups takes longer than a stop may take."""
        self._ending.set()
        self._calls.put(stop)

    def _forward(self) -> None:
        for message in self._outbox.take():
            self._channel.send(message)
            if message["kind"] == "registered":
                self._aside.submit(self._count_agents, message["master"])
        self._channel.flush()

    def _open(self, message: Message) -> None:
        logging.getLogger("pymesos").addHandler(self._errors)
        self._principal, self._secret = message["principal"], message["secret"]
        self._driver = _Driver(
            _Scheduler(self._outbox),
            message["framework"],
            message["master"],
            implicit_acknowledgements=False,
            principal=self._principal or None,
            secret=self._secret or None,
        )
        self._driver.start()
        threading.Thread(target=self._carry_out, args=(self._driver,), name="calls", daemon=True).start()

    def _count_agents(self, master: str) -> None:
        """Reports how many agents the master has, if the master answers."""
        try:
            count = len(OperatorApi(master, self._principal, self._secret).agents())
        except ClusterError as e:
            logging.getLogger("pymesos").warning("%s", e)
        else:
            self._outbox.put({"kind": "agents", "count": count})

    # --- calls, in a thread of their own as each may wait for its answer ----------------------------------------------

    def _carry_out(self, driver: _Driver) -> None:
        gave_up = False
        while True:
            try:
                message = self._calls.get(timeout=_TICK_S)
            except queue.Empty:
                if driver.aborted and not gave_up:
                    gave_up = True
                    self._outbox.put({"kind": "aborted", "message": self._errors.text or "pymesos gave up"})
                continue
            if self._ending.is_set():
                self._stop(driver)
                return
            match message["call"]:
                case "sandbox":
                    self._aside.submit(self._read_sandbox, message, driver.framework_id or "")
                case _:
                    self._call(driver, message)

    def _call(self, driver: _Driver, message: Message) -> None:
        failed = {"kind": "failed", "call": message["call"], "tasks": message.get("tasks", [])}
        if not driver.connected:
            self._outbox.put({**failed, "message": "no master is connected", "sure": True})
            return
        try:
            _do(driver, message)
        except (OSError, http.client.HTTPException) as e:
            # The call may have arrived all the same.
            self._outbox.put({**failed, "message": f"{type(e).__name__}: {e}", "sure": False})
        except RuntimeError as e:  # raised by pymesos if the master rejects the call
            # The further lines of the error repeat the call, which contains the run's key.
            self._outbox.put({**failed, "message": str(e).partition("\n")[0], "sure": True})

    def _stop(self, driver: _Driver) -> None:
        connected = driver.connected
        driver.closing.set()
        driver.stop()
        driver.join()
        self._outbox.put({"kind": "stopped", "torn_down": connected})
        self._stopped.set()

    def _read_sandbox(self, message: Message, framework: str) -> None:
        agent = OperatorApi(message["agent"], self._principal, self._secret)
        try:
            text = agent.sandbox_tail(framework, message["task"])
        except ClusterError as e:
            text = str(e)
        self._outbox.put({"kind": "sandbox", "task": message["task"], "text": text})


def _do(driver: _Driver, message: Message) -> None:
    """Makes one call; returns when the master has answered."""
    match message["call"]:
        case "accept":
            offers = [{"value": offer} for offer in message["offers"]]
            driver.acceptOffers(offers, message["operations"], {"refuse_seconds": message["refuse_s"]})
        case "decline":
            offers = [{"value": offer} for offer in message["offers"]]
            driver.declineOffer(offers, {"refuse_seconds": message["refuse_s"]})
        case "revive":
            driver.reviveOffers()
        case "suppress":
            driver.suppressOffers()
        case "kill":
            driver.killTask({"value": message["task"]})
        case "acknowledge":
            driver.acknowledgeStatusUpdate(message["status"])
        case "reconcile":
            driver.reconcileTasks([{"task_id": {"value": task}} for task in message["tasks"]])


def main() -> None:
    """Runs the process; its only argument is the number of its socket's file descriptor."""
    # The engine handles Ctrl-C, so this replaces the handler of pymesos.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Process(DriverPipe(socket.socket(fileno=int(sys.argv[1])))).run()
    sys.stdout.flush()
    # A call may still wait for a master that does not answer.
    os._exit(0)


if __name__ == "__main__":
    main()
