"""The control channel: the controller, the connection of a client or relay, keys, clocks of other hosts."""

from typing import Final

LIBRARIES: Final = ("msgspec", "numpy", "psutil", "pyzmq")
"""The distributions that every Python client imports: for the channel, what it counts, and what its host does."""
