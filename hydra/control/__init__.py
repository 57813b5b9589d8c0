"""The control channel between the controller and its clients: both ends, keys and sockets."""

from typing import Final

LIBRARIES: Final = ("msgspec", "numpy", "pyzmq")
"""The distributions that every Python client imports: for the channel, and for what it counts."""
