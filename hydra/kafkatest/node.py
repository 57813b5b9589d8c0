"""The program of a broker's group: Kafka on an agent (see ``hydra/servers/node.py``)."""

from __future__ import annotations

import sys

from hydra.kafkatest.program import KafkaProgram
from hydra.servers.node import main

if __name__ == "__main__":
    sys.exit(main(KafkaProgram()))
