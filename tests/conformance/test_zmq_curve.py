"""CURVE on the data connections: exact for clients with the run's key, and silent for others."""

from __future__ import annotations

import zmq

from hydra.wire.messages import Ready
from hydra.zmqtest.settings import DATA_KEY, DATA_SECRET
from tests.conformance.bench import Bench, step_settings, with_values
from tests.conformance.conftest import PYTHON
from tests.conformance.zmq_ends import Listener

DEEP = step_settings(sndhwm=0, rcvhwm=0)
RIGHT, WRONG, STRANGER = 2, 3, 4


def test_only_subscribers_with_the_key_of_the_run_receive_messages(bench: Bench, zmq_client: str) -> None:
    arguments = [] if zmq_client.startswith(PYTHON) else ["--secure"]
    public, secret = (key.decode() for key in zmq.curve_keypair())
    other = zmq.curve_keypair()[0].decode()
    bench.launch(zmq_client, "zmq-pub", arguments=arguments, env={DATA_KEY: public, DATA_SECRET: secret})
    for client, key in ((RIGHT, public), (WRONG, other)):
        bench.launch(
            zmq_client, "zmq-sub", first_id=client, group=f"s{client}", arguments=arguments, env={DATA_KEY: key}
        )
    bench.launch(zmq_client, "zmq-sub", first_id=STRANGER, group="plain")
    endpoint = bench.configure_publisher(1, 1, with_values(DEEP, rate=1000.0))
    listener = Listener(bench.peer, endpoint)
    bench.configure_subscribers([RIGHT, WRONG, STRANGER], 1, DEEP, publishers={1: endpoint})
    bench.peer.heard(Ready, [RIGHT], epoch=1)
    window = bench.start([1, RIGHT], 1, 0.2)
    bench.await_end(window)
    report = bench.publisher_report(1, 1, window)
    assert report.sent > 0
    assert "wire_bytes" not in (report.system or {})
    (right,) = bench.subscriber_reports([RIGHT], 1, {1: report.sent}).values()
    assert (right.ledgers[0].received, right.drain) == (report.sent, "complete")
    assert not listener.arrivals
    assert not bench.peer.messages_of(Ready, WRONG)
    assert not bench.peer.messages_of(Ready, STRANGER)
