"""The messages of tests/golden/control as objects, by file name."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hydra.model import (
    ClientClock,
    Histogram,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    SharedSettings,
    SubscriberReport,
)
from hydra.wire.messages import (
    Ack,
    ChildExit,
    Configure,
    Error,
    Finish,
    FromClient,
    FromController,
    Hello,
    Join,
    Ping,
    Progress,
    PublisherEndpoint,
    Quit,
    Ready,
    Report,
    Reports,
    Sent,
    Start,
    Stop,
    Welcome,
)

_BOOT: Final = "b25a1fd9-3bd7-4d0b-9b1d-2c5a9f5a3f60"
_START_NS: Final = 1_767_225_600_000_000_000
_STOP_NS: Final = _START_NS + 10_000_000_000
_LARGEST: Final = 2**63 - 1

_SENT_ZMQ: Final = PublisherReport(
    sent=100000,
    acknowledged=100000,
    failed=0,
    first_ns=_START_NS + 1000,
    last_ns=_STOP_NS - 1000,
    bytes=2400000,
    lag=Histogram([0, 99990, 5, 9, 2047, 1], 0, 2047),
    usage=ProcessUsage(cpu_user_s=1.5, cpu_system_s=0.25, max_rss_bytes=41943040),
    blocked_ns=5000,
)
_SENT_KAFKA: Final = PublisherReport(
    sent=1000,
    acknowledged=990,
    failed=4,
    first_ns=_START_NS,
    last_ns=_STOP_NS,
    bytes=100000,
    lag=Histogram(),
    usage=ProcessUsage(cpu_user_s=0.5, cpu_system_s=0.0, max_rss_bytes=1),
    unacknowledged=[(100, 103), (994, 999)],
    stopped_early="the process passed its memory limit of 2 GB",
    unacknowledged_joined=True,
    system={"batch_bytes": 16384},
    clock=ClientClock(offset_ns=1767225500000000000, error_ns=750),
    ack_latency=Histogram([2048, 990, 3072, 4], 2048, 4095),
)
_RECEIVED: Final = SubscriberReport(
    ledgers=[
        LedgerCounts(
            publisher=0,
            received=99985,
            in_window=99900,
            missing=15,
            missing_ranges=[(10, 19), (500, 503), (99999, 99999)],
            truncated=False,
            duplicates=3,
            reordered=2,
            extra=1,
        ),
        LedgerCounts(publisher=1, received=0, in_window=0, missing=0),
    ],
    batches=1200,
    first_batch=40,
    first_ns=_START_NS + 5000,
    last_ns=_STOP_NS + 5000,
    bytes=2399640,
    stale=7,
    latency=Histogram([150, 90000, 2048, 9000, 3072, 984, 23220, 4], 150, 3600000000),
    usage=ProcessUsage(cpu_user_s=2.0, cpu_system_s=0.75, max_rss_bytes=31457280),
    undrained=12,
    absent=[(_START_NS + 500000000, _START_NS + 600000000)],
    reconnects=1,
    felt=True,
    drain="quiet",
    lag_bins_us=[150, None, 3600000000, 0, *([None] * 15), 2500],
)
_SILENT: Final = SubscriberReport(
    ledgers=[LedgerCounts(publisher=0, received=0, in_window=0, missing=600, missing_ranges=[(0, 599)])],
    batches=0,
    first_batch=0,
    first_ns=0,
    last_ns=0,
    bytes=0,
    stale=0,
    latency=Histogram(),
    usage=ProcessUsage(),
    felt=False,
    drain="deadline",
)
_MARKED: Final = SubscriberReport(
    ledgers=[LedgerCounts(publisher=0, received=7, in_window=7, missing=1, missing_ranges=[(7, 7)])],
    batches=1,
    first_batch=7,
    first_ns=_START_NS,
    last_ns=_START_NS,
    bytes=168,
    stale=0,
    latency=Histogram([9, 7], 9, 9),
    usage=ProcessUsage(),
    drain="marked",
    lag_bins_us=[0] + [None] * 19,
    clock=ClientClock(offset_ns=-5, error_ns=0),
)
_MEMBER: Final = replace(
    _SILENT,
    ledgers=[LedgerCounts(publisher=0, received=13, in_window=13, missing=0, received_bits="/3M=")],
    system={"reconnected": "twice", "slow": [1, 2]},
)

FROM_CLIENT: Final[dict[str, FromClient]] = {
    "hello-subscriber": Hello(
        ids=[17],
        seq=1,
        role="subscriber",
        group="sub-0",
        warden=False,
        incarnation=0,
        implementation="pyzmq",
        versions={"libzmq": "4.3.5", "python": "3.11.2", "pyzmq": "27.1.0"},
        agent="agent-sub-1",
        host="node-a",
        boot_id=_BOOT,
        pid=4711,
    ),
    "hello-publisher-replacement": Hello(
        ids=[0],
        seq=1,
        role="publisher",
        group="pub-0",
        warden=False,
        incarnation=2,
        implementation="native",
        versions={"libzmq": "4.3.5"},
        agent="agent-pub",
        host="größer",
        boot_id=_BOOT,
        pid=4712,
    ),
    "hello-warden": Hello(
        ids=[16, 17, 18],
        seq=1,
        role="subscriber",
        group="sub-0",
        warden=True,
        incarnation=0,
        implementation="pyzmq",
        versions={},
        agent="",
        host="node-a",
        boot_id=_BOOT,
        pid=4700,
    ),
    "hello-packed": Hello(
        ids=[4294967294, 4294967295],
        seq=1,
        role="subscriber",
        group="sub-1",
        warden=False,
        incarnation=0,
        implementation="native",
        versions={"libzmq": "4.3.5"},
        agent="agent-sub-2",
        host="node-b",
        boot_id=_BOOT,
        pid=9,
    ),
    "ready-publisher": Ready(ids=[0], seq=3, epoch=1, endpoint="tcp://10.0.0.5:31000"),
    "ready-subscriber": Ready(ids=[17], seq=4, epoch=4294967295),
    "ack-configure": Ack(ids=[17], seq=2, epoch=1, command="configure", time_ns=123456789),
    "ack-start-packed": Ack(ids=[4294967294, 4294967295], seq=9, epoch=1, command="start", time_ns=_LARGEST),
    "ack-ping": Ack(ids=[17], seq=_LARGEST, epoch=0, command="ping", time_ns=123456790, echo=98765432100),
    "progress": Progress(ids=[17], seq=12, epoch=1, messages=123456, time_ns=_START_NS + 1),
    "report-publisher-zmq": Report(ids=[0], seq=20, epoch=1, publisher=_SENT_ZMQ),
    "report-publisher-kafka": Report(ids=[0], seq=21, epoch=2, publisher=_SENT_KAFKA),
    "report-subscriber": Report(ids=[17], seq=22, epoch=1, subscriber=_RECEIVED),
    "report-subscriber-silent": Report(ids=[18], seq=5, epoch=1, subscriber=_SILENT),
    "report-subscriber-marked": Report(ids=[19], seq=6, epoch=1, subscriber=_MARKED),
    "report-subscriber-member": Report(ids=[20], seq=7, epoch=1, subscriber=_MEMBER),
    "reports-subscribers": Reports(ids=[18, 19, 20], seq=8, epoch=1, subscriber=[_SILENT, _MARKED, _MEMBER]),
    "reports-publishers": Reports(ids=[0, 4], seq=9, epoch=2, publisher=[_SENT_ZMQ, _SENT_KAFKA]),
    "error": Error(ids=[0], seq=6, epoch=1, message='cannot bind "tcp://10.0.0.5:31000": in use\n', fatal=False),
    "error-fatal": Error(ids=[0], seq=7, epoch=0, message="out of memory", fatal=True),
    "child-exit-killed": ChildExit(ids=[17], seq=2, incarnation=0, pid=4711, status=-9, replaced=True),
    "child-exit-code": ChildExit(ids=[16, 17, 18, 20], seq=3, incarnation=3, pid=4712, status=1, replaced=False),
}

FROM_CONTROLLER: Final[dict[str, FromController]] = {
    "welcome": Welcome(ids=[17], run="20260101-zmqrate", silence_s=30.0),
    "configure-publisher": Configure(
        epoch=1,
        settings=SharedSettings(
            rate=10000.0,
            burst=200,
            message_size=2500,
            message_size_min=2000,
            payload="json",
            payload_seed=9223372036854775807,
        ),
        publishers=[],
        probe=True,
        progress_s=1.5,
        payload_share=2704,
    ),
    "configure-subscribers": Configure(
        ids=[4294967294],
        epoch=2,
        settings=SharedSettings(rate="max", burst=100, receive_rate=2500.5, reconnect_rate=2.0),
        publishers=[
            PublisherEndpoint(0, "tcp://10.0.0.5:31000"),
            PublisherEndpoint(1, "tcp://10.0.0.5:31001"),
        ],
        probe=False,
        system={"nodrop": True, "rcvhwm": 0, "sndhwm": 1000},
    ),
    "configure-kafka": Configure(
        epoch=3,
        settings=SharedSettings(rate=30000.0, burst=100, message_size=100, payload="lines", payload_file="/data/é.txt"),
        publishers=[PublisherEndpoint(0)],
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
    "start": Start(
        epoch=1, start_at_ns=_START_NS, stop_at_ns=_STOP_NS, wall_offset_ns=1767225500000000000, boot_id=_BOOT
    ),
    "start-clock-before-1970": Start(
        epoch=2, start_at_ns=0, stop_at_ns=1, wall_offset_ns=-5, boot_id="", system={"window": 3}
    ),
    "stop": Stop(epoch=1, stop_at_ns=_STOP_NS),
    "finish-zmq": Finish(epoch=1, publishers=[Sent(publisher=0, sent=100000)], drain_max_s=15.0),
    "finish-kafka": Finish(
        epoch=3,
        publishers=[Sent(publisher=0, sent=1000, unacknowledged=[(100, 103), (994, 999)]), Sent(publisher=1, sent=0)],
        drain_max_s=15.0,
        quiet_s=0.25,
        system={"end_offsets": {"0": 400, "1": 12345679301, "2": 300}},
    ),
    "ping": Ping(time_ns=98765432100),
    "ping-reply": Ping(time_ns=98765432100, reply=True),
    "quit": Quit(),
    "quit-evict": Quit(ids=[17, 18]),
    "quit-incarnation": Quit(ids=[3, 17, 18, 19], incarnation=2),
}

FROM_SERVER: Final[dict[str, FromClient]] = {
    "hello": Hello(
        ids=[2147483649],
        seq=1,
        role="server",
        group="brokers-2",
        warden=False,
        incarnation=0,
        implementation="kafka",
        versions={"java": "17.0.15", "kafka": "4.3.1"},
        agent="agent-sub-2",
        host="node-c",
        boot_id=_BOOT,
        pid=4713,
    ),
    "ready": Ready(ids=[2147483649], seq=2, epoch=0, endpoint="10.0.0.7:31000,10.0.0.7:31001"),
}

TO_SERVER: Final[dict[str, FromController]] = {
    "join": Join(
        ids=[2147483649],
        system={
            "cluster": "Y2x1c3RlcklkMTIzNDU2Nw",
            "node": 2,
            "endpoints": ["10.0.0.6:31000,10.0.0.6:31001", "10.0.0.7:31000,10.0.0.7:31001"],
        },
    ),
}
