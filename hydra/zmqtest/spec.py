"""What generic code knows of raw ZMQ PUB/SUB."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from hydra.measure.column import ReportColumn, wire_bytes
from hydra.model import Scenario
from hydra.system import Held, Reference, System, SystemSpec
from hydra.zmqtest.costs import COSTS
from hydra.zmqtest.footprints import IMPLEMENTATIONS, LISTENER_BYTES, NATIVES, ZMTP
from hydra.zmqtest.refusals import refusals
from hydra.zmqtest.settings import ZmqNative, ZmqSettings

_PYTHON: Final = Reference("hydra_zmq_python.csv", "zmqrate")
_NATIVE: Final = Reference("hydra_zmq_cpp.csv", "zmqrate")
_KERNEL_BYTES: Final = {"sndbuf": 4 * 1024 * 1024, "rcvbuf": 6 * 1024 * 1024}
"""What Linux lets the buffers of a TCP connection grow to unless somebody sets them (tcp_wmem, tcp_rmem).

A subscriber on the same machine that did not read at all had 93,000 messages of 24 bytes waiting for it before one was
lost, with marks of 1,000: more than the marks, and a quarter of what these buffers could take beside them.
"""
_FRAME_BYTES: Final = 2
"""Of ZMTP before a short message."""
_FIXED: Final = Reference("hydra_kafka_fixed_rate.csv", "kafka-fixed")
"""A fixed rate was published for Kafka only; ZMQ at the same rate is laid beside it on purpose."""


def _make(scenario: Scenario, deploy: bool, is_local: bool) -> System:  # noqa: ARG001  # there are no servers
    from hydra.zmqtest.system import ZmqSystem

    return ZmqSystem(scenario)


def _reference(scenario: Scenario) -> Reference | None:
    if scenario.client == ZMTP:
        return None  # nobody has published any, and others' measure other subscribers
    if scenario.table == "rates":
        return _NATIVE if scenario.client == "native" else _PYTHON
    return _FIXED if scenario.table == "fixed" else None


def _connections_of(scenario: Scenario) -> int:
    """A subscriber dials its publishers itself."""
    return scenario.publishers if "all" in scenario.values_of("subscriptions") else 1


def _held(scenario: Scenario) -> Held:
    """Queues at both ends, and the kernel's buffers between them."""
    own, native = {**asdict(ZmqSettings()), **scenario.settings.system}, scenario.native.system
    marks = [int(own[name]) for name in ("sndhwm", "rcvhwm")]
    if not all(marks):
        return Held(None, "--sndhwm and --rcvhwm above 0")
    buffers = [int(str(native.get(name) or 0)) or usual for name, usual in _KERNEL_BYTES.items()]
    return Held(sum(marks), "sndhwm and rcvhwm", sum(buffers) / (scenario.settings.message_size + _FRAME_BYTES))


SPEC: Final = SystemSpec(
    name="zmq",
    title="raw ZMQ PUB/SUB",
    queue="high-water mark",
    settings=ZmqSettings,
    native=ZmqNative,
    natives=NATIVES,
    listener_bytes=LISTENER_BYTES,
    implementations=IMPLEMENTATIONS,
    costs=COSTS,
    aliases={"settings.msg_batch": "settings.burst"},
    table_words={"zmqrate": "rates"},
    columns=(
        wire_bytes("the 2 or 9 bytes of its ZMTP frame, once for all subscribers. Empty with `secure`"),
        ReportColumn(
            "lost_connections",
            "connections",
            "connections of `zmtp` subscribers that were lost in the step and made anew. Empty where none was",
            role="subscriber",
            key="lost_connections",
        ),
        ReportColumn(
            "refused_connections",
            "connections",
            "those among them that the subscriber ended, because what came was no ZMTP",
            role="subscriber",
            key="refused_connections",
        ),
    ),
    differs=("sndhwm", "rcvhwm", "nodrop", "subscriptions"),
    check=refusals,
    connections_of=_connections_of,
    one_publisher=lambda settings: settings.system["subscriptions"] == "one",
    held=_held,
    reference=_reference,
    make=_make,
)
