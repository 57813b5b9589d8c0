"""How clients are told: the control channel's messages, keys and sockets."""

from typing import Final

LIBRARIES: Final = ("msgspec", "numpy", "pyzmq")
"""The distributions that every Python client imports: for the channel, and for what it counts."""
