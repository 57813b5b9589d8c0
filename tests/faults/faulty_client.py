"""The Python ZMQ client with planted faults, which FAULTY has as ``{"client": [how each of its processes begins]}``.

``stop``: it stops itself before it dials in; ``strand``: it exits with 4; ``ok``, and whatever follows the list: it is
the real client. On SIGUSR1 every client exits with 4. The folder FAULTY_LOG counts a client's processes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final

from hydra.client import process_group
from hydra.client.process_group import client_main
from hydra.control.control_client import ClientIdentity
from hydra.wire import EXIT_STRANDED
from hydra.zmqtest import pyzmq

_FAULTS: Final[dict[str, list[str]]] = json.loads(os.environ.get("FAULTY", "{}"))


def _begin(kind: Any, relay: str, identity: ClientIdentity, *rest: Any) -> int:
    (client,) = identity.ids
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(EXIT_STRANDED))
    log = Path(os.environ["FAULTY_LOG"]) / str(client)
    with log.open("a") as file:
        file.write(f"{os.getpid()}\n")
    begun = len(log.read_text().splitlines())
    fault = dict(enumerate(_FAULTS.get(str(client), []), 1)).get(begun, "ok")
    if fault == "strand":
        return EXIT_STRANDED
    if fault == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    return client_main(kind, relay, identity, *rest)


if __name__ == "__main__":
    process_group.client_main = _begin  # type: ignore[assignment]  # its other arguments are passed on
    sys.exit(process_group.main(pyzmq.kinds()))
