"""The control channel between the controller and its clients: both ends, keys and sockets."""

from typing import Final

LIBRARIES: Final = ("msgspec", "numpy", "psutil", "pyzmq")
"""The distributions that every Python client imports: for the channel, what it counts, and what its host does."""
