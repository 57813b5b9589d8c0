"""The specification of raw ZMQ PUB/SUB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from hydra.measure.column import ReportColumn, SystemColumns, wire_bytes
from hydra.model import Figure, Scenario, Settings, SetupPart
from hydra.system import (
    DeliveryRules,
    Footprint,
    Identity,
    Implementation,
    OwnSettings,
    Published,
    QueueCapacity,
    Reference,
    Refusal,
    ScenarioResources,
    System,
    SystemSpec,
    setup_part,
)
from hydra.zmqtest.settings import ZMTP, ZmqNative, ZmqSettings

_PYTHON: Final = Reference("hydra_zmq_python.csv", "zmqrate")
_NATIVE: Final = Reference("hydra_zmq_cpp.csv", "zmqrate")
_KERNEL_BYTES: Final = {"sndbuf": 4 * 1024 * 1024, "rcvbuf": 6 * 1024 * 1024}
"""The default maximum sizes of a TCP connection's buffers in Linux (tcp_wmem, tcp_rmem).

With marks of 1,000, 93,000 messages of 24 bytes waited for a subscriber on the same machine that did not read, before
one was lost: more than the marks, and a quarter of what these buffers could hold in addition.
"""
_FRAME_BYTES: Final = 2
"""Flags and length of a short message (ZMTP 3.0, RFC 23)."""
_FIXED: Final = Reference("hydra_kafka_fixed_rate.csv", "kafka-fixed")
"""Figures at a fixed rate were published for Kafka only; ZMQ at the same rate is compared with them on purpose."""
_OTHER: Final = "or use client native"


_SHOWN: Final[Mapping[str, tuple[str, Mapping[Figure, str]]]] = {
    "sndhwm": ("sndhwm {}", {}),
    "rcvhwm": ("rcvhwm {}", {}),
    "nodrop": ("{}", {True: "XPUB_NODROP", False: "drops"}),
    "subscriptions": ("{}", {"one": "one publisher to a subscriber", "all": "all publishers to a subscriber"}),
}
"""The settings that are named unless they have their usual value in all rows, with their texts."""
_SHOWN_NATIVE: Final = {
    "transport": "{}",
    "secure": "CURVE",
    "io_threads": "{} I/O threads",
    "sndbuf": "sndbuf {} B",
    "rcvbuf": "rcvbuf {} B",
}
_LISTENER_BYTES: Final = 30_000
"""A publisher's memory for each connected subscriber: 25 kB in libzmq, and half of the kernel's 10 kB for both ends of
a connection (docs/limits.md)."""
_IMPLEMENTATIONS: Final[Mapping[str, Implementation]] = {
    "pyzmq": Implementation(Footprint(threads=3, files=18, memory_bytes=8_000_000), cpus=0.002),
    "native": Implementation(Footprint(3, 14, 700_000, further=Footprint(0, 2, 100_000)), program="native", cpus=0.002),
    # A subscriber has one connection; of the 20,000 files that a process may open, it needs some itself.
    ZMTP: Implementation(
        Footprint(3, 14, 700_000, further=Footprint(0, 1, 20_000)),
        program="native",
        packed=19_900,
        cpus=0.0002,
        ports=4096,
    ),
}
"""Counted in /proc on one machine (method: docs/limits.md), and rounded up."""
_COLUMNS: Final = (
    wire_bytes("the 2 or 9 bytes of its ZMTP frame, once for all subscribers. Empty with `secure`"),
    ReportColumn(
        "lost_connections",
        "connections",
        "connections of `zmtp` subscribers that were lost in the step and made again. Empty if no connection was lost",
        role="subscriber",
        key="lost_connections",
    ),
    ReportColumn(
        "refused_connections",
        "connections",
        "lost connections that the subscriber ended, because it received something that is not ZMTP",
        role="subscriber",
        key="refused_connections",
    ),
)


def _make(scenario: Scenario, deploy: bool, is_local: bool) -> System:  # noqa: ARG001  # there are no servers
    """See :class:`hydra.zmqtest.system.ZmqSystem`."""
    from hydra.zmqtest.system import ZmqSystem

    return ZmqSystem(scenario)


def _check(scenario: Scenario) -> Iterator[Refusal]:
    """Checks for options that the scenario's clients do not have."""
    if scenario.client == ZMTP:
        yield from _of_zmtp(scenario)
    if ZmqNative.of(scenario.native).publisher == "pyzmq":
        yield from _of_pyzmq(scenario)


def _connections(scenario: Scenario) -> int:
    """The number of publishers to which a subscriber connects."""
    return scenario.publishers if "all" in scenario.values_of("subscriptions") else 1


def _delivery(scenario: Scenario, settings: Settings) -> DeliveryRules:
    """What a publisher does at the high-water mark; ZeroMQ has no acknowledgements and no storage."""
    own = ZmqSettings.of(settings)
    full = "the publisher waits" if own.nodrop else "messages are dropped"
    return DeliveryRules(
        queue="high-water mark",
        guarantees=f"acknowledges nothing and keeps nothing; beyond the high-water mark {full}",
        traffic=("topics", "wildcard"),
        one_publisher=own.subscriptions == "one",
        capacity=_capacity(scenario, settings),
    )


def _capacity(scenario: Scenario, settings: Settings) -> QueueCapacity:
    """The queues at both ends, and the kernel's buffers between them."""
    own, native = ZmqSettings.of(settings), ZmqNative.of(scenario.native)
    marks = [own.sndhwm, own.rcvhwm]
    if not all(marks):
        return QueueCapacity(None, "--sndhwm and --rcvhwm above 0")
    buffers = [getattr(native, name) or usual for name, usual in _KERNEL_BYTES.items()]
    return QueueCapacity(sum(marks), "sndhwm and rcvhwm", sum(buffers) / (settings.mean_bytes + _FRAME_BYTES))


def _shown(scenario: Scenario) -> Sequence[SetupPart]:
    """The settings and options of the sockets that differ from the usual ones."""
    usual = asdict(ZmqSettings()) | asdict(ZmqNative())
    native = ZmqNative.of(scenario.native).values()
    parts = [
        *(setup_part(ZmqSettings, scenario, name, form, words) for name, (form, words) in _SHOWN.items()),
        *(SetupPart(name, (native[name],), form) for name, form in _SHOWN_NATIVE.items()),
    ]
    return [part for part in parts if part.values != (usual[part.name],)]


def _socket_buffers(scenario: Scenario) -> Mapping[str, int]:
    """``rcvbuf`` and ``sndbuf`` of native clients."""
    native = ZmqNative.of(scenario.native)
    return {"rmem_max": native.rcvbuf, "wmem_max": native.sndbuf}


def _reference(scenario: Scenario) -> Reference | None:
    """The published table for the implementation and the kind of table."""
    if scenario.client == ZMTP:
        return None  # there are no published figures for these subscribers
    if scenario.table == "rates":
        return _NATIVE if scenario.client == "native" else _PYTHON
    return _FIXED if scenario.table == "fixed" else None


def _of_pyzmq(scenario: Scenario) -> Iterator[Refusal]:
    """Options that publishers of pyzmq do not have."""
    usual, native = ZmqNative(), scenario.native
    own = ZmqNative.of(native)
    given = [n for n in ("io_threads", "transport", "sndbuf") if getattr(own, n) != getattr(usual, n)]
    for name in [*given, *(["pacing"] if native.pacing != "smooth" else [])]:
        what = "publishers of pyzmq have no such option"
        yield ("native", name), what, "leave out this option, or use native.publisher = native"


def _of_zmtp(scenario: Scenario) -> Iterator[Refusal]:
    """Settings that only libzmq's subscribers support."""
    if any(value is not None for value in scenario.values_of("receive_rate")):
        what = "client zmtp has no queue of its own, so it cannot be a slow reader"
        yield scenario.sweep.key_of("receive_rate"), what, f"leave it out, {_OTHER}"
    if ZmqNative.of(scenario.native).secure:
        what = "client zmtp speaks ZMTP with the mechanism NULL only, not CURVE"
        yield ("native", "secure"), what, f"leave it out, {_OTHER}"
    if any(event.kind == "slow" for event in scenario.events):
        what = "client zmtp has no queue of its own, so it cannot be a slow reader"
        yield ("events",), what, f"use kind = 'gone', {_OTHER}"
    if where := scenario.sweep.cohorts.get("slow"):
        what = "client zmtp has no queue of its own, so it cannot be a slow reader"
        yield where, what, f"leave out 'slow' (--no-flaky), {_OTHER}"


SPEC: Final = SystemSpec(
    identity=Identity("zmq", "raw ZMQ PUB/SUB", _IMPLEMENTATIONS, _make),
    settings=OwnSettings(step=ZmqSettings, native=ZmqNative, check=_check, shown=_shown),
    delivery=_delivery,
    resources=ScenarioResources(
        listener_bytes=_LISTENER_BYTES, connections=_connections, socket_buffers=_socket_buffers
    ),
    published=Published(
        reference=_reference,
        columns=SystemColumns(reported=_COLUMNS),
    ),
)
