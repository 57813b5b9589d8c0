"""The program of a server's group: mosquitto on an agent (see ``hydra/client/server_group.py``)."""

from __future__ import annotations

import sys

from hydra.client.server_group import main
from hydra.mqtttest.program import MosquittoProgram

if __name__ == "__main__":
    sys.exit(main(MosquittoProgram()))
