"""The control channel between the controller and its clients: both ends, keys and sockets."""

from typing import Final

LIBRARIES: Final = ("msgspec", "numpy", "psutil", "pyzmq")
"""The distributions that every Python client imports: for the channel, for what it counts, and for what its host does."""
