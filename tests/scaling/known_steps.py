"""Steps in which each message, each second of a client and each listener has its known price."""

from __future__ import annotations

from hydra.analysis.costs import StepUsage

MESSAGE_S, SECOND_S, LISTENER = 20e-6, 1e-3, 30_000.0
COUNTS = (10, 20, 40, 80, 160, 320, 640)


def step(clients: int, rate: float = 100.0, noise: float = 1.0) -> StepUsage:
    """Ten seconds of a system in which each message and each second of a client has its price."""
    received = clients * rate * 10
    cpu_s = (MESSAGE_S * received + SECOND_S * clients * 10) * noise
    return StepUsage(
        clients, publishers=1, servers=0, direct=True, seconds=10.0, rate=rate, held=True,
        throughput=received / 10, sent=rate * 10, received=received, received_bytes=24 * received,
        subscriber_cpu_s=cpu_s, publisher_cpu_s=2 * cpu_s, publisher_memory_bytes=5e6 + LISTENER * clients,
        server_cpu_s=None, network_bytes=None,
    )  # fmt: skip
