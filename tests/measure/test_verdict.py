"""What limited a point, as a table."""

from __future__ import annotations

import pytest

from hydra.measure.verdict import Evidence, Verdict, verdict


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence("zmq", held=True, behind=False), "requested rate"),
        (Evidence("kafka", held=True, behind=False, subscriber_host_pct=99), "requested rate"),
        (Evidence("zmq", held=True, behind=True), "high-water mark"),
        (Evidence("zmq", held=True, behind=True, subscriber_host_pct=99), "subscriber hosts"),
        (Evidence("kafka", held=True, behind=True, subscriber_host_pct=50), "broker"),
        (Evidence("kafka", held=True, behind=True, subscriber_host_pct=99), "subscriber hosts"),
        (Evidence("zmq", held=False, behind=False, publisher_cores=1.0), "publisher"),
        (Evidence("zmq", held=None, behind=False, publisher_cores=1.5, subscriber_host_pct=99), "publisher"),
        (Evidence("zmq", held=False, behind=False, publisher_cores=0.3, subscriber_host_pct=99), "subscriber hosts"),
        (Evidence("zmq", held=False, behind=False, blocked_share=0.5), "high-water mark"),
        (Evidence("zmq", held=False, behind=False, blocked_share=0.5, subscriber_host_pct=99), "subscriber hosts"),
        (Evidence("kafka", held=False, behind=False, blocked_share=0.5), "broker"),
        (Evidence("kafka", held=False, behind=True, network_share=0.95), "network"),
        (Evidence("zmq", held=None, behind=True), "high-water mark"),
    ],
)
def test_the_first_cause_that_the_evidence_supports(evidence: Evidence, expected: Verdict) -> None:
    assert verdict(evidence) == expected
