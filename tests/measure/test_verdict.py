"""What limited a point, as a table; and the evidence of real rows whose limit was planted, once more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.measure.acceptance import Acceptance
from hydra.measure.stage_load import BusyWorker, TcpWaits
from hydra.measure.verdict import BottleneckEvidence, generator_limited, verdict

QUEUE = "high-water mark"
ZMQ = BottleneckEvidence(
    QUEUE, direct=True, held=True, behind=True, dropped=True, subscribers=BusyWorker("python", 20, 1)
)
KAFKA = replace(ZMQ, queue="server", direct=False)
MQTT = replace(ZMQ, queue="broker's queue", direct=False, server_idle=0.8)
RUNS, STARVED, IDLE = BusyWorker("main", 99, 0), BusyWorker("main", 19, 80), BusyWorker("main", 12, 5)

CROWDED = BusyWorker("mosquitto", 9, 90)
THROTTLED = BusyWorker("mosquitto", 20, 79, 78)

REFUSED = Acceptance(
    sent=100, accepted=50, failed=50, due=100.0, rate_sent=True, held=False, reason="message_too_large"
)

SLOW = replace(ZMQ, held=False, behind=False, publisher=STARVED, subscriber_host_pct=99)


def flow(*, reader: float = 0.0, network: float = 0.0) -> TcpWaits:
    return TcpWaits(4, reader, network, 1e6)


BEHIND_SERVER = replace(KAFKA, out_of_publishers=flow(reader=0.9))
TOO_SLOW = replace(ZMQ, held=False, behind=False)


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        # Whatever is busy: nothing was lost or late.
        (replace(ZMQ, behind=False, publisher=RUNS, subscribers=RUNS, subscriber_host_pct=99), "requested rate"),
        (replace(ZMQ, behind=False, network_share=1.0, segments_retransmitted=0.5), "requested rate"),
        # What was lost, within the target, shows who is at its limit; without a busy client it is no limit.
        (replace(ZMQ, behind=False, losing=True, subscribers=BusyWorker("python", 90, 0)), "subscriber hosts"),
        (replace(ZMQ, behind=False, losing=True, out_of_publishers=flow(reader=0.9)), "subscriber hosts"),
        (replace(KAFKA, behind=False, losing=True, server=RUNS), "server"),
        (replace(ZMQ, behind=False, losing=True, publisher=RUNS), "requested rate"),
        # Less was sent than asked for: the publisher's doing only if its own thread was at work all the time.
        (
            replace(ZMQ, held=False, behind=False, publisher=IDLE, blocked_share=0.049, subscribers=RUNS),
            "subscriber hosts",
        ),
        (
            replace(ZMQ, held=False, behind=False, publisher=RUNS, blocked_share=0.049, subscribers=RUNS),
            "undecided: publisher or subscriber hosts",
        ),
        (replace(KAFKA, held=False, behind=False, publisher=IDLE, blocked_share=0.04, server=RUNS), "server"),
        (replace(KAFKA, held=False, behind=False, publisher=IDLE, blocked_share=0.04, server_idle=0.05), "server"),
        (
            replace(KAFKA, held=False, behind=False, publisher=BusyWorker("main", 5, 0)),
            "undecided: publisher or server",
        ),
        (replace(MQTT, held=None, behind=False, publisher=BusyWorker("main", 5, 0)), "undecided: publisher or server"),
        (
            replace(ZMQ, held=False, behind=False, publisher=BusyWorker("main", 60, 29)),
            f"undecided: publisher or {QUEUE}",
        ),
        (replace(ZMQ, held=False, behind=False, publisher=None), f"undecided: publisher or {QUEUE}"),
        (replace(ZMQ, held=False, behind=False, publisher=BusyWorker("main", 60, 30)), "publisher"),
        (replace(ZMQ, held=False, publisher=BusyWorker("main", 2, 80)), QUEUE),  # starved, but not for 90 % of the time
        # Everything arrived, and less was sent: whatever the quota of the publisher.
        (replace(ZMQ, held=False, behind=False, publisher=RUNS), "publisher"),
        (replace(ZMQ, held=None, behind=False, publisher=RUNS, subscriber_host_pct=99), "publisher"),
        (SLOW, "publisher"),
        (replace(SLOW, subscribers_cpu=0.5), "subscriber hosts"),
        (replace(SLOW, subscribers_cpu=0.4), "publisher"),
        # A publisher that cannot keep its rate loses messages in the bursts that it makes up for it with.
        (replace(ZMQ, held=False, publisher=STARVED), "publisher"),
        (replace(ZMQ, held=True, publisher=RUNS), QUEUE),
        (replace(ZMQ, held=None, publisher=RUNS), QUEUE),  # at rate max its loop is never idle
        (replace(ZMQ, held=None, publisher=RUNS, library=RUNS), "publisher"),
        (replace(ZMQ, held=False, publisher=RUNS, blocked_share=0.5), QUEUE),
        # No client was busy.
        (ZMQ, QUEUE),
        (replace(ZMQ, subscriber_host_pct=99), QUEUE),
        (replace(ZMQ, behind=False, held=False, blocked_share=0.05), QUEUE),
        (replace(KAFKA, publisher=IDLE), "server"),
        (MQTT, "broker's queue"),
        # Subscribers.
        (replace(ZMQ, subscribers=RUNS), "subscriber hosts"),
        (replace(ZMQ, subscribers=STARVED), "subscriber hosts"),
        (replace(ZMQ, subscribers=BusyWorker("python", 1, 62)), "subscriber hosts"),
        (replace(ZMQ, subscribers=BusyWorker("python", 4, 79)), QUEUE),  # a host that others use as well
        (replace(ZMQ, subscribers=BusyWorker("python", 1, 59)), QUEUE),
        (replace(ZMQ, out_of_publishers=flow(reader=0.5)), "subscriber hosts"),
        (replace(ZMQ, out_of_publishers=flow(reader=0.5), library=RUNS), "subscriber hosts"),
        (replace(ZMQ, subscribers=None, subscriber_host_pct=99), "subscriber hosts"),
        (replace(KAFKA, subscribers=RUNS, server_idle=0.7), "subscriber hosts"),
        (replace(KAFKA, out_of_servers=flow(reader=0.9), server=RUNS), "subscriber hosts"),
        # The network: the figures of connections count before the host's resent segments.
        (replace(ZMQ, out_of_publishers=flow(network=0.6)), "network"),
        (replace(KAFKA, out_of_servers=flow(network=0.6)), "network"),
        (replace(ZMQ, network_share=0.95), "network"),
        # Segments are sent again on any link: alone they speak for it only where nothing speaks against it.
        (replace(ZMQ, segments_retransmitted=0.012), f"undecided: network or {QUEUE}"),
        (replace(ZMQ, segments_retransmitted=0.012, network_share=0.02), QUEUE),
        (replace(ZMQ, segments_retransmitted=0.012, out_of_publishers=flow(network=0.1)), QUEUE),
        (replace(ZMQ, segments_retransmitted=0.012, subscribers=RUNS), "subscriber hosts"),
        (replace(ZMQ, segments_retransmitted=0.009), QUEUE),
        (replace(ZMQ, network_share=1.0, segments_retransmitted=0.5, crossing=False), QUEUE),
        (replace(ZMQ, out_of_publishers=flow(reader=0.2, network=0.3), crossing=False), "subscriber hosts"),
        (replace(ZMQ, out_of_publishers=flow(reader=0.9), segments_retransmitted=0.02), "subscriber hosts"),
        # The server.
        (replace(KAFKA, out_of_publishers=flow(reader=0.9)), "server"),
        (replace(KAFKA, server_idle=0.1), "server"),
        (replace(MQTT, server=RUNS), "server"),
        # A server that waits for a core that clients or others use is no limit of its own; one that waits for its own
        # quota is.
        (replace(KAFKA, out_of_publishers=flow(reader=0.9), server=CROWDED), "host CPU"),
        (replace(KAFKA, server=CROWDED, server_idle=0.05), "host CPU"),
        (replace(KAFKA, held=False, behind=False, publisher=IDLE, server=CROWDED), "host CPU"),
        (replace(KAFKA, server=THROTTLED), "server"),
        (replace(KAFKA, server=BusyWorker("mosquitto", 20, 0, 79)), "server"),
        (replace(KAFKA, server=BusyWorker("mosquitto", 5, 95, 75), server_host_pct=12), "server"),
        (replace(KAFKA, server=THROTTLED, server_host_pct=99, server_others_pct=80), "host CPU"),
        (replace(KAFKA, server=BusyWorker("mosquitto", 95, 4), server_host_pct=99, server_others_pct=40), "server"),
        (replace(KAFKA, server=CROWDED, subscribers=RUNS), "undecided: host CPU or subscriber hosts"),
        (replace(KAFKA, server=BusyWorker("io", 75, 20), server_host_pct=99, server_host_non_server_pct=2), "server"),
        (
            replace(KAFKA, server=BusyWorker("io", 75, 20), server_host_pct=99, server_host_non_server_pct=40),
            "host CPU",
        ),
        # What the run itself did, and clients without a connection, come before any queue or stage.
        *(
            (replace(MQTT, planned=(planned,), server=server), cause)
            for planned, server, cause in (
                ("planned events", RUNS, "planned events"),
                ("receive_rate", RUNS, "receive_rate"),
                ("clients not let in", IDLE, "clients not let in"),
                ("lost connections", IDLE, "lost connections"),
                ("lost connections", RUNS, "undecided: lost connections or server"),
            )
        ),
        (replace(MQTT, planned=("receive_rate", "lost connections")), "undecided: receive_rate or lost connections"),
        (replace(MQTT, behind=False, planned=("planned events",)), "requested rate"),
        (replace(MQTT, behind=False, held=False, planned=("planned events",)), "planned events"),
        # A queue that is not known to have dropped anything is not named.
        (replace(MQTT, dropped=False), "undecided: no stage was busy"),
        (replace(ZMQ, dropped=False), "undecided: no stage was busy"),
        (replace(ZMQ, dropped=False, blocked_share=0.05), QUEUE),
        # What the evidence does not separate.
        (replace(ZMQ, out_of_publishers=flow(reader=0.3, network=0.4)), "undecided: subscriber hosts or network"),
        (replace(ZMQ, library=RUNS, subscribers=RUNS), "undecided: publisher or subscriber hosts"),
        (replace(ZMQ, library=RUNS, network_share=0.95), "undecided: publisher or network"),
        (replace(KAFKA, server=RUNS, subscribers=RUNS), "undecided: server or subscriber hosts"),
        (replace(ZMQ, subscribers=None), f"undecided: subscriber hosts or {QUEUE}"),
        (replace(MQTT, server_idle=None), "undecided: server or broker's queue"),
    ],
)
def test_the_cause_is_the_one_that_the_evidence_supports(evidence: BottleneckEvidence, cause: str) -> None:
    assert str(verdict(evidence).causes) == cause


@pytest.mark.parametrize(
    ("evidence", "local"),
    [
        (replace(ZMQ, behind=False), None),
        (replace(ZMQ, behind=False, publisher=RUNS), None),
        (replace(KAFKA, behind=False, server=CROWDED), "host CPU"),
        (replace(KAFKA, behind=False, subscribers=BusyWorker("python", 40, 30)), "host CPU"),
        (replace(KAFKA, server=CROWDED), "host CPU"),
        (replace(KAFKA, server=RUNS), None),
        (replace(KAFKA, server=THROTTLED), None),
        (replace(KAFKA, server=THROTTLED, subscribers=CROWDED), None),
        (replace(KAFKA, out_of_servers=flow(reader=0.9)), "subscriber hosts"),
        (replace(KAFKA, held=False, behind=False, publisher=RUNS), "publisher"),
        (replace(MQTT, planned=("planned events",), subscribers=CROWDED), None),
        (replace(MQTT, unaccepted=REFUSED, server=CROWDED), None),
    ],
)
def test_a_limit_at_the_hosts_of_the_run_is_known_unless_a_server_or_the_run_did_it(
    evidence: BottleneckEvidence, local: str | None
) -> None:
    assert verdict(evidence).local == local


def test_the_figures_for_the_cause_come_first_and_nothing_is_said_of_what_was_not_measured() -> None:
    reported = replace(ZMQ, held=False, publisher=STARVED, lag_p99_ms=170.04, subscriber_host_pct=40.6, steal_pct=3.2)
    reported = replace(reported, out_of_publishers=TcpWaits(2, 0.25, 0.0, 1_230_000))
    assert verdict(reported).evidence == (
        "subscribers lost messages or received them late; publishers: main ran 19 %, waited 80 % for CPU; "
        "schedule lag p99 170 ms; publishers' 2 connections waited 25 % for their reader, 0 % for the network, "
        "1.23 MB unsent; subscribers: python ran 20 %, waited 1 % for CPU; subscribers' hosts 41 % busy, 3 % stolen"
    )
    full = replace(KAFKA, behind=False, held=False, blocked_share=0.3, subscribers=None, server_idle=0.05, drops=1200)
    assert verdict(full).evidence == (
        "publishers were blocked 30 % of the time; servers' request threads idle 5 %; interfaces dropped 1,200 packets"
    )
    assert verdict(BottleneckEvidence(QUEUE, True, held=True, behind=False)).evidence == "the rate was held and passed"
    shared = BottleneckEvidence(
        QUEUE, True, held=True, behind=False, losing=True, subscriber_host_pct=77.0, others_pct=75.2
    )
    text = "the rate was held and passed, though messages were lost; subscribers' hosts 77 % busy"
    assert verdict(shared).evidence == f"{text}, about 75 % by other processes"
    assert verdict(replace(shared, others_pct=4.9)).evidence == text


@pytest.mark.parametrize(
    ("evidence", "used_up", "expected"),
    [
        # The loop of publishers, or the subscribers, ran or waited for CPU all the time.
        (replace(TOO_SLOW, publisher=RUNS), False, True),
        (replace(TOO_SLOW, publisher=STARVED), False, True),
        (replace(ZMQ, subscribers=RUNS), False, True),
        (replace(ZMQ, subscribers=STARVED), False, True),
        (replace(ZMQ, library=RUNS, held=False, publisher=RUNS, subscribers=IDLE), False, False),
        (replace(TOO_SLOW, direct=False, queue="server", publisher=RUNS, library=RUNS), False, True),
        # Without a server in between, the library of the clients is the measured system.
        (replace(ZMQ, held=None, publisher=RUNS, library=RUNS), False, False),
        (replace(ZMQ, subscribers=RUNS, subscribers_library=RUNS), False, False),
        (replace(KAFKA, subscribers=RUNS, subscribers_library=RUNS), False, True),
        # Something else limited the step: also if clients were busy.
        (replace(ZMQ, behind=False, publisher=RUNS, subscribers=RUNS), False, False),
        (ZMQ, False, False),
        (BEHIND_SERVER, False, False),
        (replace(KAFKA, server=RUNS), False, False),
        (replace(ZMQ, network_share=0.95), False, False),
        # The subscribers were slow, but not for want of CPU; or the cause is not decided.
        (replace(ZMQ, out_of_publishers=flow(reader=0.9)), False, None),
        (replace(ZMQ, subscribers=None, subscriber_host_pct=99), False, None),
        (replace(TOO_SLOW, publisher=IDLE), False, None),
        (replace(KAFKA, server=RUNS, subscribers=RUNS), False, None),
        (None, False, None),
        # Clients used up a host, which limits all but a rate that was held.
        (ZMQ, True, True),
        (replace(KAFKA, server=RUNS), True, True),
        (None, True, True),
        (replace(ZMQ, behind=False), True, False),
    ],
)
def test_clients_limited_the_step_if_their_cpu_did(
    evidence: BottleneckEvidence | None, used_up: bool, expected: bool | None
) -> None:
    assert generator_limited(evidence, used_up=used_up) is expected
