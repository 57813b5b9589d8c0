"""The program of a broker's group: Kafka on an agent (see ``hydra/servers/node.py``)."""

from __future__ import annotations

import os
import sys

from hydra.kafkatest.program import KafkaProgram
from hydra.servers.node import main

if __name__ == "__main__":
    # An agent that was asked for two ports has given none for metrics.
    sys.exit(main(KafkaProgram(metrics=os.environ.get("HYDRA_PORTS", "").count(",") != 1)))
