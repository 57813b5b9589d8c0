"""The ``hydra`` command with a control channel that loses whole messages in both directions.

Everything else is as a user has it. The channel is encrypted: so the forwarder cannot choose what is lost.
"""

from __future__ import annotations

import random
import re
import socket
import sys
import threading
from pathlib import Path
from unittest.mock import patch

from hydra.cli import main as cli
from hydra.control import curve_security
from hydra.control.controller import Controller
from hydra.run import runner
from tests.forwarder import Frame, FrameForwarder


class LossyForwarder(FrameForwarder):
    """Loses a message with this probability, on either way."""

    def __init__(self, server: str, probability: float, seed: int) -> None:
        self.passed = self.lost = 0
        self._probability = probability
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        super().__init__(server)

    def to_client(self, client: socket.socket, frame: Frame) -> None:
        """A message of the controller's."""
        if not self._loses(frame):
            client.sendall(frame.whole)

    def to_server(self, server: socket.socket, frame: Frame) -> None:
        """A message of a client's."""
        if not self._loses(frame):
            server.sendall(frame.whole)

    def _loses(self, frame: Frame) -> bool:
        if not frame.is_message:
            return False
        with self._lock:
            lost = self._random.random() < self._probability
            self.lost += lost
            self.passed += not lost
        return lost


def command(probability: float, seed: int) -> list[str]:
    """The words that start it; a user's arguments follow."""
    root = str(Path(__file__).parents[2])
    # Behind all else: the hydra that is installed is the one that is tested.
    program = f"import sys; sys.path.append({root!r}); from tests.integration import lossy; lossy.main()"
    return [sys.executable, "-c", program, str(probability), str(seed)]


def lost(output: str) -> int:
    """How many messages of its control channel a command lost, by the last line of its output."""
    text = re.findall(r"^lost (\d+) of \d+ messages$", output, re.MULTILINE)
    return int(text[-1])


def main() -> None:
    """Runs the command; what became of the messages is its last line on standard error."""
    probability, seed = float(sys.argv.pop(1)), int(sys.argv.pop(1))
    forwarders: list[LossyForwarder] = []

    class LossyController(Controller):
        def __init__(self, run: str, *, host: str = "127.0.0.1", silence_s: float = 30.0) -> None:
            super().__init__(run, host=host, silence_s=silence_s)
            forwarders.append(LossyForwarder(self.endpoint, probability, seed))
            self.environment[curve_security.ENDPOINT] = forwarders[0].endpoint

    try:
        with patch.object(runner, "Controller", LossyController):
            cli.main()
    finally:
        for forwarder in forwarders:
            forwarder.close()
            sys.stderr.write(f"lost {forwarder.lost} of {forwarder.lost + forwarder.passed} messages\n")
