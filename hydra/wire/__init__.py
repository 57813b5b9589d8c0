"""What both ends of the control channel share: messages, reports as columns, histograms, the clock, exit codes."""

from __future__ import annotations

from typing import Final

from hydra.model import Role

EXIT_DISMISSED: Final = 0
EXIT_USAGE: Final = 2
EXIT_STRANDED: Final = 4
"""Exit code if the client could not reach the controller, or the controller has been silent for too long."""
EXIT_RELAY_DIED: Final = 5

RESEND_EVERY_S: Final = 2.0
"""Interval at which both ends of every channel resend a message that may have been lost, s."""
WELCOME_WITHIN_S: Final = 60.0
"""Longest time that a client resends ``hello`` before it gives up, unless the environment sets another, s."""
FLUSH_AT_MOST_S: Final = 10.0
"""Longest time that a publisher waits for outstanding acknowledgements after the end of the window, s."""
CPUS_VARIABLE: Final = "HYDRA_CPUS"
"""Environment variable with the list of CPUs to which a group's parent confines itself before it forks."""


def kind_of(system: str, role: Role) -> str:
    """A program's name for the clients of a system and role: the system's name and ``-pub`` or ``-sub``."""
    return f"{system}-{'pub' if role == 'publisher' else 'sub'}"
