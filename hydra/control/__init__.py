"""The control channel: the controller, the connections of clients and relays, keys, and clocks of other hosts."""

from typing import Final

LIBRARIES: Final = ("msgspec", "numpy", "psutil", "pyzmq")
"""The distributions that every Python client imports, for the channel, its counts, and the samples of its host."""
