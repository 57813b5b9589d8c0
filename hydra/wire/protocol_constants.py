"""What a client's program and its controller agree upon beside the messages: exit codes and the longest waits."""

from __future__ import annotations

from typing import Final

from hydra.model import Role

EXIT_DISMISSED: Final = 0
EXIT_USAGE: Final = 2
EXIT_STRANDED: Final = 4
"""The controller could not be reached, or has been silent for too long."""
EXIT_RELAY_DIED: Final = 5

RESEND_EVERY_S: Final = 2.0
"""How often a message that may have been lost is sent again, by both ends of every channel."""
WELCOME_WITHIN_S: Final = 60.0
"""How long a client says hello before it gives up, unless the environment says otherwise."""
FLUSH_AT_MOST_S: Final = 10.0
"""How long a publisher waits for outstanding acknowledgements after the end of the window."""


def kind_of(system: str, role: Role) -> str:
    """What a program calls the clients of a system and role: its name, and ``-pub`` or ``-sub``."""
    return f"{system}-{'pub' if role == 'publisher' else 'sub'}"
