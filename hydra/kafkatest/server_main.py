"""The program of a broker's group: Kafka on an agent (see ``hydra/client/server_group.py``)."""

from __future__ import annotations

import os
import sys

from hydra.client.server_group import main
from hydra.kafkatest.program import KafkaProgram

if __name__ == "__main__":
    given = os.environ.get("HYDRA_PORTS", "")
    if given.count(",") == 1:
        # With two ports from the agent there is none for metrics: 0 takes any free port.
        os.environ["HYDRA_PORTS"] = f"{given},0"
    sys.exit(main(KafkaProgram()))
