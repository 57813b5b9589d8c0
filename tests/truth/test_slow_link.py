"""A subscriber behind a slow link gets what the link carries; all the rest is accounted for as late or missing."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack

import pytest

from tests.conformance.bench import Bench, step_settings
from tests.truth.scale import cases
from tests.truth.slow_link import slow_host
from tests.truth.stage import Stage

pytestmark = pytest.mark.tier("all")

RATE, SECONDS = 1000.0, 2.0
SETTINGS = step_settings(rate=RATE, message_size=1000, sndhwm=50)
ON_THE_WIRE = 1000 + 9
"""Bytes of a message with ZMTP's frame around it."""
BURST, QUEUE = 16_000, 64_000
OVERHEAD = 1.25
"""Of Ethernet, IP and TCP (66 bytes a packet), of what TCP sends again, at the very most."""
CONTROL_BYTES = 40_000
"""What the control channel sends the subscriber meanwhile, at the very most."""


@pytest.mark.parametrize("bits_s", cases([2_000_000], [1_000_000, 4_000_000]))
def test_it_gets_what_the_link_carries_and_the_rest_is_accounted_for(zmq_command: str, bits_s: int) -> None:
    with ExitStack() as stack:
        try:
            host = stack.enter_context(slow_host(bits_s, BURST, QUEUE))
        except (OSError, subprocess.CalledProcessError) as e:
            why = f"{e} {getattr(e, 'stderr', '')}".strip()
            pytest.skip(f"no network namespace with a token bucket here (it takes root, ip and tc): {why}")
        bench = Bench(host=host.here)
        stack.callback(bench.close)
        stage = Stage(bench, zmq_command, host=host.here, within=host.within)
        step = stage.next(SETTINGS)
        step.connect()
        before = host.bytes_in()
        # What the bucket drops TCP sends again, after a pause that may be long.
        measured = step.run(SECONDS, drain_max_s=20, quiet_s=1)
        arrived = host.bytes_in() - before

    sent, report = measured.publisher.sent, measured.subscribers[1]
    (ledger,) = report.ledgers
    assert sent >= 0.9 * RATE * SECONDS
    # Every message is received or missing, and every missing one is in a range.
    assert ledger.received + ledger.missing == sent
    listed = sum(last - first + 1 for first, last in ledger.missing_ranges)
    assert listed < ledger.missing if ledger.truncated else listed == ledger.missing
    assert (ledger.duplicates, ledger.reordered, ledger.extra) == (0, 0, 0)

    # In the window the link was busy, and carried no more than it can.
    most = bits_s / 8 * SECONDS + BURST
    # TCP pauses after what the bucket dropped, for up to a fifth of a second at first and for longer each time.
    assert 0.5 * most <= ledger.in_window * ON_THE_WIRE <= most
    # It was overloaded: something came late, out of the queues on the way, and something never came.
    late = ledger.received - ledger.in_window
    assert late > 0
    assert ledger.missing > 0
    # The interface saw what the subscriber reports.
    assert ledger.received * ON_THE_WIRE <= arrived <= ledger.received * ON_THE_WIRE * OVERHEAD + CONTROL_BYTES
