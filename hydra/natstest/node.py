"""The program of a server's group: nats-server on an agent (see ``hydra/servers/node.py``)."""

from __future__ import annotations

import sys

from hydra.natstest.program import NatsProgram
from hydra.servers.node import main

if __name__ == "__main__":
    sys.exit(main(NatsProgram()))
