"""The program of a server's group: mosquitto on an agent (see ``hydra/servers/node.py``)."""

from __future__ import annotations

import sys

from hydra.mqtttest.program import MosquittoProgram
from hydra.servers.node import main

if __name__ == "__main__":
    sys.exit(main(MosquittoProgram()))
