"""The messages of tests/golden/control as objects, by file name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hydra import model
from hydra.wire import messages as wire

_TIME: Final = "time:[4026531834]"
_NETWORK: Final = "net:[4026531840]"
_BOOT: Final = "b25a1fd9-3bd7-4d0b-9b1d-2c5a9f5a3f60"
_START_NS: Final = 1_767_225_600_000_000_000
_STOP_NS: Final = _START_NS + 10_000_000_000
_LARGEST: Final = 2**63 - 1


def _hello(
    ids: list[int], group: str, pid: int, host: str = "node-a", by: str = "pyzmq", agent: str = "", **more: Any
) -> wire.Hello:
    """A subscriber's, unless it reports otherwise."""
    usual: dict[str, Any] = {"role": "subscriber", "incarnation": 0, "versions": {"libzmq": "4.3.5"}}
    place = {"boot_id": _BOOT, "time_namespace": _TIME, "network_namespace": _NETWORK}
    return wire.Hello(
        ids=ids,
        seq=1,
        v=wire.VERSION,
        group=group,
        pid=pid,
        host=host,
        implementation=by,
        agent=agent,
        **usual | place | more,
    )


_SENT_ZMQ: Final = model.PublisherReport(
    *(100000, 100000, 0, _START_NS + 1000, _STOP_NS - 1000, 2400000),
    model.Histogram([0, 99990, 5, 9, 2047, 1], 0, 2047),
    model.ProcessUsage(cpu_user_s=1.5, cpu_system_s=0.25, max_rss_bytes=41943040),
    blocked_ns=5000,
)
_SENT_KAFKA: Final = model.PublisherReport(
    *(1000, 990, 4, _START_NS, _STOP_NS, 100000),
    model.Histogram(),
    model.ProcessUsage(cpu_user_s=0.5, cpu_system_s=0.0, max_rss_bytes=1),
    unacknowledged=[(100, 103), (994, 999)],
    stopped_early="the process passed its memory limit of 2 GB",
    unacknowledged_joined=True,
    system={"batch_bytes": 16384},
    ack_latency=model.Histogram([2048, 990, 3072, 4], 2048, 4095),
)
RECEIVED: Final = model.SubscriberReport(
    [
        model.LedgerCounts(
            *(0, 99985, 99900, 15), [(10, 19), (500, 503), (99999, 99999)], duplicates=3, reordered=2, extra=1
        ),
        model.LedgerCounts(publisher=1, received=0, in_window=0, missing=0),
    ],
    *(1200, 40, _START_NS + 5000, _STOP_NS + 5000, 2399640, 7),
    model.Histogram([150, 90000, 2048, 9000, 3072, 984, 23220, 4], 150, 3600000000),
    model.ProcessUsage(cpu_user_s=2.0, cpu_system_s=0.75, max_rss_bytes=31457280),
    undrained=12,
    absent=[(_START_NS + 500000000, _START_NS + 600000000)],
    reconnects=1,
    felt=True,
    drain="quiet",
    lag_bins_us=[150, None, 3600000000, 0, *([None] * 15), 2500],
)
COUNTERS: Final = model.HostCounters(
    cores=[model.CoreTimes(12345.5, 0.25, 100000.75), model.CoreTimes(0.5, 0.0, 100000.5)],
    pressure_us={"cpu": 1234567, "io": 0, "memory": _LARGEST},
    memory_total=16777216000,
    memory_available=8388608000,
    interfaces={
        "eth0": model.InterfaceCounts(123456789012, 9876543210, 0, 17, 10000),
        "wlan0": model.InterfaceCounts(0, 1, 2, 3, None),
    },
    tcp=model.TcpCounts(1000000, 12),
    context_switches=987654321,
)

FROM_CLIENT: Final[dict[str, wire.FromClient]] = {
    "hello-subscriber": _hello(
        *([17], "sub-0", 4711, "node-a", "pyzmq", "agent-sub-1"),
        versions={"libzmq": "4.3.5", "python": "3.11.2", "pyzmq": "27.1.0"},
    ),
    "hello-publisher-replacement": _hello(
        [0], "pub-0", 4712, "größer", "native", "agent-pub", role="publisher", incarnation=2
    ),
    "hello-relay": _hello([16, 17, 18], "sub-0", 4700, versions={}),
    "hello-packed": _hello(
        *([4294967294, 4294967295], "sub-1", 9, "node-b", "native", "agent-sub-2"),
        time_namespace="",
        network_namespace="",
    ),
    "joined": wire.Joined(ids=[16, 17, 20], seq=2, incarnations=[0, 3, 4294967295], pids=[4711, 4712, 4294967295]),
    "joined-one": wire.Joined(ids=[17], seq=3, incarnations=[4], pids=[1]),
    "ready-publisher": wire.Ready(ids=[0], seq=3, epoch=1, number=1, endpoint="tcp://10.0.0.5:31000"),
    "ready-subscriber": wire.Ready(ids=[17], seq=4, epoch=4294967295, number=4294967295),
    "ack-configure": wire.Ack(ids=[17], seq=2, epoch=1, number=1, command="configure", time_ns=123456789),
    "ack-start-packed": wire.Ack(
        ids=[4294967294, 4294967295], seq=9, epoch=1, number=3, command="start", time_ns=_LARGEST
    ),
    "ack-ping": wire.Ack(ids=[17], seq=_LARGEST, epoch=0, command="ping", time_ns=123456790, echo=98765432100),
    "progress": wire.Progress(ids=[17], seq=12, epoch=1, messages=123456, time_ns=_START_NS + 1),
    "course-publisher": wire.TimeSeries(
        ids=[0], seq=13, epoch=1, seconds=[wire.SecondCounts(0, 1000), wire.SecondCounts(3, 7)]
    ),
    "course-subscriber": wire.TimeSeries(
        ids=[17, 18, 19],
        seq=14,
        epoch=1,
        seconds=[wire.SecondCounts(3599, 5, model.Histogram([-3, 1, 40, 2, 2000, 2], -2, 1952))],
        cohort=[wire.SecondCounts(0, 1, model.Histogram([7, 1], 7, 7))],
    ),
    "report-publisher-zmq": wire.Report(ids=[0], seq=20, epoch=1, number=4, publisher=_SENT_ZMQ),
    "report-publisher-kafka": wire.Report(ids=[0], seq=21, epoch=2, number=4, publisher=_SENT_KAFKA),
    "ack-start-relay": wire.Ack(ids=[16, 17, 18, 20], seq=10, epoch=1, number=3, command="start", time_ns=123456791),
    "batch": wire.Batch(
        ids=[16, 17, 20], seq=12, epoch=1, columns=[("batches", 3), ("bits", 0), ("latency_counts", 46)]
    ),
    "batch-of-clients": wire.Batch(
        ids=[18, 19], seq=8, epoch=1, number=5, columns=[("batches", 2), ("latency_counts", 8)]
    ),
    "error": wire.Error(
        ids=[0], seq=6, epoch=1, number=1, message='cannot bind "tcp://10.0.0.5:31000": in use\n', fatal=False
    ),
    "error-relay": wire.Error(ids=[16, 17, 18], seq=13, epoch=1, number=1, message="an unknown field: rcvhmw"),
    "error-fatal": wire.Error(ids=[0], seq=7, epoch=0, message="out of memory", fatal=True),
    "texts": wire.KernelTexts(
        ids=[16, 17, 18], seq=12, number=7, time_ns=123456789, texts={"/proc/sys/kernel/osrelease": "6.1.0\n"}
    ),
    "texts-cut": wire.KernelTexts(
        ids=[0], seq=13, number=8, time_ns=123456790, texts={"/sys/class/net/eth0/speed": ""}, complete=False
    ),
    "child-exit-killed": wire.ChildExit(ids=[17], seq=2, incarnation=0, pid=4711, status=-9, replaced=True),
    "child-exit-dismissed": wire.ChildExit(ids=[18], seq=4, incarnation=0, pid=4713, status=0, replaced=False),
    "child-exit-code": wire.ChildExit(ids=[16, 17, 18, 20], seq=3, incarnation=3, pid=4712, status=1, replaced=False),
    "host": wire.HostReadings(
        ids=[16, 17, 18],
        seq=9,
        epoch=3,
        samples=[
            wire.Sample(123456789000, COUNTERS),
            wire.Sample(123706789000, replace(COUNTERS, cores=[], pressure_us={}, interfaces={}), []),
        ],
    ),
    "host-threads": wire.HostReadings(
        ids=[0],
        seq=10,
        epoch=3,
        samples=[
            wire.Sample(0),
            wire.Sample(
                _LARGEST,
                None,
                [
                    model.BusyThread(4711, "ZMQbg/IO/0", 99.5, 0.25, 4713, 12.5),
                    model.BusyThread(4712, 'größer "x"', 0.25),
                ],
            ),
            wire.Sample(1, None, [], model.TcpConnections(4, 1, 2, 1048576, _LARGEST)),
        ],
    ),
    "host-end": wire.HostReadings(ids=[16, 17, 18], seq=11, epoch=3, samples=[]),
}

FROM_CONTROLLER: Final[dict[str, wire.FromController]] = {
    "welcome": wire.Welcome(v=wire.VERSION, ids=[17], run="20260101-zmqrate", silence_s=30.0),
    "welcome-connection": wire.Welcome(v=wire.VERSION, run="20260101-zmqrate", silence_s=0.0),
    "configure-publisher": wire.Configure(
        epoch=1,
        number=1,
        settings=model.SharedSettings(
            rate=10000.0, burst=200, message_size=2500, message_size_min=2000, payload="json", payload_seed=_LARGEST
        ),
        publishers=[],
        probe=True,
        progress_s=1.5,
        payload_share=2704,
        load=[(0.0, 100.5), (10.0, 100.5), (10.0, 0.0), (3600.0, 50000.0)],
        course_s=1.0,
    ),
    "configure-subscribers": wire.Configure(
        ids=[4294967294],
        epoch=2,
        number=2,
        settings=model.SharedSettings(rate="max", burst=100, receive_rate=2500.5, reconnect_rate=2.0),
        publishers=[wire.PublisherEndpoint(n, f"tcp://10.0.0.5:3100{n}") for n in (0, 1)],
        probe=False,
        cohort=True,
        spells=[wire.Impairment("slow", 10.0, 20.5, 2500.5), wire.Impairment("gone", 30.0, 31.0)],
        system={"nodrop": True, "rcvhwm": 0, "sndhwm": 1000},
    ),
    "configure-kafka": wire.Configure(
        epoch=3,
        number=1,
        settings=model.SharedSettings(
            rate=30000.0, burst=100, message_size=100, payload="lines", payload_file="/data/é.txt"
        ),
        publishers=[wire.PublisherEndpoint(0)],
        probe=True,
        group="readers",
        system={
            "acks": "all",
            "batch_bytes": 16384,
            "bootstrap": "10.0.0.9:9092,10.0.0.10:9092",
            "compression": "lz4",
            "linger_ms": 5.0,
            "msg_batch": 100,
            "offsets": {"0": 0, "1": 12345678901, "2": 7},
            "properties": {"sasl.password": 'é"\\ \t', "security.protocol": "SASL_SSL"},
            "topic": "hydra-run-data",
        },
    ),
    "configure-connect": wire.Configure(
        epoch=4,
        number=1,
        settings=model.SharedSettings(rate=1.0, burst=100),
        publishers=[wire.PublisherEndpoint(0)],
        probe=True,
        connect=wire.Connect(
            clock=wire.HostClock(at_ns=100_000_000_000, step_ns=_START_NS - 300_000_000),
            at_ns=_START_NS,
            first=1,
            rate=500.5,
            within_s=12.5,
            probe_s=0.25,
        ),
    ),
    "start": wire.Start(
        epoch=1,
        number=3,
        start_at_ns=_START_NS,
        stop_at_ns=_STOP_NS,
        clock=wire.HostClock(at_ns=100_000_000_000, step_ns=_START_NS - 300_000_000),
    ),
    "start-elsewhere": wire.Start(
        epoch=2,
        number=3,
        start_at_ns=0,
        stop_at_ns=1,
        clock=wire.HostClock(at_ns=_LARGEST, step_ns=_LARGEST, rate_ppb=-10_000_000),
        system={"window": 3},
    ),
    "stop": wire.Stop(epoch=1, number=4, stop_at_ns=_STOP_NS),
    "finish-zmq": wire.Finish(
        epoch=1, number=5, publishers=[wire.PublisherTotal(publisher=0, sent=100000)], drain_max_s=15.0
    ),
    "finish-kafka": wire.Finish(
        epoch=3,
        number=4294967295,
        publishers=[
            wire.PublisherTotal(publisher=0, sent=1000, unacknowledged=[(100, 103), (994, 999)]),
            wire.PublisherTotal(publisher=1, sent=0),
        ],
        drain_max_s=15.0,
        quiet_s=0.25,
        system={"end_offsets": {"0": 400, "1": 12345679301, "2": 300}},
    ),
    "ping": wire.Ping(time_ns=98765432100),
    "ping-reply": wire.Ping(time_ns=98765432100, reply=True),
    "watch": wire.Watch(epoch=3, every_s=0.25, host=True),
    "watch-end": wire.Watch(epoch=3, every_s=0.0, host=False),
    "look": wire.Look(number=7, patterns=["/proc/sys/kernel/osrelease", "/proc/[0-9]*/stat"], most_bytes=384),
    "quit": wire.Quit(),
    "quit-clients": wire.Quit(ids=[17, 18]),
    "evict": wire.Evict(ids=[17, 18]),
    "evict-incarnation": wire.Evict(ids=[3, 17, 18, 19], incarnation=2),
}

FROM_SERVER: Final[dict[str, wire.FromClient]] = {
    "hello": _hello(
        *([2147483649], "brokers-2", 4713, "node-c", "kafka", "agent-sub-2"),
        role="server",
        versions={"java": "17.0.15", "kafka": "4.3.1"},
    ),
    "ready": wire.Ready(ids=[2147483649], seq=2, epoch=0, endpoint="10.0.0.7:31000,10.0.0.7:31001"),
    "ack-halt": wire.Ack(ids=[2147483649], seq=3, epoch=5, number=1, command="halt", time_ns=98765432),
}

TO_SERVER: Final[dict[str, wire.FromController]] = {
    "join": wire.Join(
        ids=[2147483649],
        system={
            "cluster": "Y2x1c3RlcklkMTIzNDU2Nw",
            "node": 2,
            "endpoints": ["10.0.0.6:31000,10.0.0.6:31001", "10.0.0.7:31000,10.0.0.7:31001"],
        },
    ),
    "halt": wire.Halt(ids=[2147483649], epoch=5, number=1, start=1),
}
