"""What the machine can do at all, by bare programs without any protocol of a system."""

from __future__ import annotations

from typing import Final

from bench import programs

SEND_BYTES: Final = 8192
"""What libzmq collects before it calls send()."""
_SECONDS: Final = 2.0


def tcp_fanout(subscribers: int, message_bytes: int, send_bytes: int) -> float:
    """Messages/s that forked processes receive together from one process over TCP.

    Args:
        subscribers: receiving processes, each with one socket.
        message_bytes: size of a message.
        send_bytes: bytes of each send(); at least one message.
    """
    program = programs.bare("tcp-fanout")
    return programs.numbers(program, subscribers, message_bytes, _SECONDS, send_bytes)[0]


def connected(library: str, processes: int) -> tuple[float, float]:
    """Forks processes that connect to one publisher and wait.

    Args:
        library: "tcp" for plain sockets, or "zmq".
        processes: how many.

    Returns:
        Seconds until each process has received its first message, and the mean PSS of a process (MB).
    """
    took_s, pss_bytes = programs.numbers(programs.bare("bare-connected"), library, processes)
    return took_s, pss_bytes / 1e6
