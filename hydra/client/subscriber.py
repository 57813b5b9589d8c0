"""A subscriber: obeys the control channel, connects, and reports its steps."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Final, cast

from hydra.client.control_loop import SubscriberLoop
from hydra.client.subscriber_connection import ConnectPhases, SubscriberConnection
from hydra.client.subscriber_step import DRAIN_WAIT_S, WAIT_S, SubscriberStep
from hydra.client.transport import BackgroundTransport, ConnectingTransport, SubscriberTransport, Tending
from hydra.control.control_client import ControlClient
from hydra.errors import HydraError
from hydra.model import SubscriberReport
from hydra.model.system_reports import CONNECTION
from hydra.wire.messages import Configure, Connect, HostClock, Progress, Ready, TimeSeries
from hydra.wire.time_series import parts

_SOON_S: Final = 1e-6


class TransportSubscriber(SubscriberLoop[SubscriberStep]):
    """The loop of one subscriber; :meth:`run` returns when it is dismissed."""

    def __init__(self, client: int, control: ControlClient, transport: SubscriberTransport) -> None:
        super().__init__(client, control)
        self._transport = transport
        self._connection: SubscriberConnection | None = None  # only in a step that measures connecting
        self._tending = Tending(transport)
        self._connecting = cast(ConnectingTransport, transport) if hasattr(transport, "disconnections") else None
        self._background = cast(BackgroundTransport, transport) if hasattr(transport, "local_limit") else None

    def _tend(self) -> float:
        return self._tending.serve()

    def _work(self) -> float:
        step = self._step
        command = self._command
        if step is None or command is None or self._report is not None:
            return math.inf
        wait_s = 0.0 if self._connection is None else self._connect(self._connection, step, command)
        if not wait_s:
            wait_s = step.work()
        if step.newly_ready():
            self._control.send(Ready(ids=[self._id], seq=1, epoch=step.epoch, number=command.number))
        if step.progress_due():
            self._control.send(
                Progress(ids=[self._id], seq=1, epoch=step.epoch, messages=step.messages, time_ns=step.progress_ns)
            )
        if step.time_series_due():
            self._send_time_series(step)
        if step.drained():
            self._send_time_series(step)
            self._send_report(self._with_connection(step.report()))
            return math.inf
        return wait_s

    def _connect(self, connection: SubscriberConnection, step: SubscriberStep, command: Configure) -> float:
        """Connects if it is due; returns the seconds until there is more to do, 0 if the subscriber is connected."""
        now_ns = time.monotonic_ns()
        if connection.connected and self._connecting is not None and self._connecting.lost():
            connection.lose(now_ns)
        elif connection.connected:
            if step.heard_ns:
                connection.receive(step.heard_ns)
            return 0.0
        wait_s = WAIT_S if not step.draining else DRAIN_WAIT_S
        if connection.next_ns is None or step.draining:
            return wait_s
        if now_ns < connection.next_ns:
            return min(wait_s, max((connection.next_ns - now_ns) / 1e9, _SOON_S))
        limit_s = connection.begin(now_ns)
        try:
            phases = self._opened(command, limit_s)
        except (HydraError, OSError) as e:
            # The report counts the attempt.
            connection.fail(time.monotonic_ns(), e)
            self._transport.close()
        except ValueError as e:
            connection.next_ns = None
            self._complain(str(e))
        else:
            connection.succeed(time.monotonic_ns(), phases)
        return _SOON_S

    def _opened(self, command: Configure, limit_s: float) -> ConnectPhases:
        if self._connecting is not None:
            return self._connecting.connect(command, limit_s)
        self._transport.close()
        if self._background is not None:
            self._background.attempt_s = limit_s
        self._transport.configure(command)
        return ConnectPhases()

    def _with_connection(self, report: SubscriberReport) -> SubscriberReport:
        """The report with that of the connection, if the step measures connecting, or the library has lost it."""
        lost = [] if self._connecting is None else self._connecting.disconnections()
        if self._connection is None and not lost:
            return report
        # In a step that does not measure connecting, only the differences between these times mean something.
        connection = self._connection or SubscriberConnection(Connect(clock=HostClock(0, 0)), self._id)
        limit = "" if self._background is None else self._background.local_limit()
        return replace(report, system={**(report.system or {}), CONNECTION: connection.report(lost, limit)})

    def _send_time_series(self, step: SubscriberStep) -> None:
        for seconds in parts(step.time_series()):
            self._control.send(TimeSeries(ids=[self._id], seq=1, epoch=step.epoch, seconds=seconds))

    def _end(self) -> None:
        self._step = None

    def _prepare(self, command: Configure) -> None:
        self._connection = None
        self._tending.begin()
        if isinstance(command.connect, Connect):
            self._connection = SubscriberConnection(command.connect, self._id)
        if self._connection is None or self._connection.connected:
            self._transport.configure(command)
        else:
            self._transport.close()
        self._step = SubscriberStep(command, self._transport, self._id)

    def _endpoint(self) -> str | None:
        return "" if self._step is not None and self._step.proven else None
