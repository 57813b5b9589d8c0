"""What limited a point, as a table."""

from __future__ import annotations

import pytest

from hydra.measure.verdict import Evidence, verdict

QUEUE = "high-water mark"


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(QUEUE, True, held=True, behind=False), "requested rate"),
        (Evidence("broker", False, held=True, behind=False, subscriber_host_pct=99), "requested rate"),
        (Evidence(QUEUE, True, held=True, behind=True), QUEUE),
        (Evidence(QUEUE, True, held=True, behind=True, subscriber_host_pct=99), "subscriber hosts"),
        (Evidence("broker", False, held=True, behind=True, subscriber_host_pct=50), "broker"),
        (Evidence("broker", False, held=True, behind=True, subscriber_host_pct=99), "subscriber hosts"),
        (Evidence(QUEUE, True, held=False, behind=False, publisher_cores=1.0), "publisher"),
        (Evidence(QUEUE, True, held=None, behind=False, publisher_cores=1.5, subscriber_host_pct=99), "publisher"),
        (
            Evidence(QUEUE, True, held=False, behind=False, publisher_cores=0.3, subscriber_host_pct=99),
            "subscriber hosts",
        ),
        (Evidence(QUEUE, True, held=False, behind=False, blocked_share=0.5), QUEUE),
        (
            Evidence(QUEUE, True, held=False, behind=False, blocked_share=0.5, subscriber_host_pct=99),
            "subscriber hosts",
        ),
        (Evidence("broker", False, held=False, behind=False, blocked_share=0.5), "broker"),
        (Evidence("broker", False, held=False, behind=True, network_share=0.95), "network"),
        (Evidence("broker", False, held=False, behind=True, network_share=0.85), "broker"),
        (Evidence(QUEUE, True, held=True, behind=True, segments_retransmitted=0.01), "network"),
        (Evidence(QUEUE, True, held=True, behind=True, segments_retransmitted=0.009, network_share=0.1), QUEUE),
        (
            Evidence(QUEUE, True, held=None, behind=True, segments_retransmitted=0.02, subscriber_host_pct=99),
            "network",
        ),
        (
            Evidence(QUEUE, True, held=True, behind=False, segments_retransmitted=0.5, network_share=1.0),
            "requested rate",
        ),
        (Evidence(QUEUE, True, held=None, behind=True), QUEUE),
    ],
)
def test_the_first_cause_that_the_evidence_supports(evidence: Evidence, expected: str) -> None:
    assert verdict(evidence) == expected
