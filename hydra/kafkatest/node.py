"""The program of a broker's group: dials into the control channel, and runs Kafka once it is told of the other nodes.

Java runs under the supervisor, so that neither it nor its data outlive this process, however that ends. This process
ends when it is told to, on SIGTERM, with its lifeline, when the controller has been silent for too long, and
when Kafka ends.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NoReturn

from hydra.client.group import from_environment, parse
from hydra.client.member import await_welcome
from hydra.client.processes import die_with_parent
from hydra.control import curve
from hydra.control.client import ControlClient, Identity
from hydra.control.outstanding import RESEND_EVERY_S
from hydra.errors import EXIT_FAILED, BrokerError, HydraError
from hydra.kafkatest.jars import Jars, Java, conf_folder, fetch, find_java
from hydra.kafkatest.nodes import Node, settings
from hydra.kafkatest.nodes import parse as parse_node
from hydra.kafkatest.template import DATA, Template, copy_storage, prepare, server_command
from hydra.servers.supervised import Supervised, tail
from hydra.wire.messages import Error, KafkaCluster, Quit, Ready
from hydra.wire.program import EXIT_DISMISSED, EXIT_STRANDED, EXIT_USAGE, WELCOME_WITHIN_S

KIND: Final = "kafka-broker"
LOG: Final = "broker.log"
FOLDER: Final = "broker"
_POLL_S: Final = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one broker until it is dismissed; returns the exit code, with one line on stderr unless that is 0."""
    options = parse(sys.argv[1:] if arguments is None else arguments, [KIND])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the controller's business
    signal.signal(signal.SIGTERM, _leave)
    try:
        credentials = curve.credentials(os.environ)
        lifeline = from_environment("HYDRA_LIFELINE", int)
        ports = [int(port) for port in os.environ.get("HYDRA_PORTS", "").split(",") if port] or [0, 0]
        welcome_within_s = from_environment("HYDRA_WELCOME_S", float) or WELCOME_WITHIN_S
    except ValueError as e:
        sys.stderr.write(f"hydra group {options.group}: {e}\n")
        return EXIT_USAGE
    if lifeline is not None:
        die_with_parent(os.getppid())
    try:
        with ExitStack() as stack:
            broker = _Broker(stack, options.first_id, options.group, ports, local=lifeline is not None)
            control = broker.dial(credentials)
            code = await_welcome(control, credentials.endpoint, welcome_within_s)
            return broker.serve(control, lifeline) if code is None else code
    except (HydraError, OSError) as e:
        sys.stderr.write(f"hydra group {options.group}: {e}\n")
        return EXIT_FAILED


def _leave(*_: object) -> NoReturn:
    """What is under way, a wait or another program, is left by the way of its own ends."""
    raise SystemExit(EXIT_DISMISSED)


class _Broker:
    """What one broker consists of; all of it ends with ``stack``.

    Raises:
        MissingDependencyError: there is no Java that is new enough.
        BrokerError: Kafka's storage could not be formatted.
        OSError: a port is taken.
    """

    def __init__(self, stack: ExitStack, client: int, group: str, ports: Sequence[int], *, local: bool) -> None:
        self._stack = stack
        self._id = client
        self._group = group
        self._conf = conf_folder()
        # Looked for before anything is promised to the controller.
        self._java: Java = find_java()
        self._jars: Jars = fetch()
        self._template: Template = prepare(self._java, self._jars, self._conf)
        # A remote agent whose address nobody told is known by its name.
        self._host = os.environ.get("HYDRA_DATA_HOST") or ("127.0.0.1" if local else socket.gethostname())
        # Nobody else is given the ports until Kafka binds them.
        self._kept = stack.enter_context(ExitStack())
        self._node = Node(self._host, *(self._keep(port) for port in ports[:2]))

    def _keep(self, port: int) -> int:
        kept = self._kept.enter_context(socket.socket())
        try:
            kept.bind((self._host, port))
        except OSError as e:
            raise OSError(
                f"cannot bind {self._host}:{port}: {e.strerror}; look at HYDRA_DATA_HOST and the ports"
            ) from None
        return int(kept.getsockname()[1])

    def dial(self, credentials: curve.Credentials) -> ControlClient:
        """Says hello to the controller."""
        identity = Identity(
            ids=[self._id],
            role="server",
            group=self._group,
            warden=False,
            incarnation=0,
            implementation="kafka",
            versions={"java": self._java.version, "kafka": self._jars.version},
            agent=os.environ.get("HYDRA_AGENT", ""),
        )
        control = ControlClient(credentials, identity)
        self._stack.callback(control.close)
        return control

    def serve(self, control: ControlClient, lifeline: int | None) -> int:
        """Tells where this node will listen and obeys from then on; returns the exit code.

        Raises:
            BrokerError: Kafka ended; the controller has been told.
        """
        kafka: Supervised | None = None
        ready_s = 0.0
        while not control.silent():
            if kafka is None and time.monotonic() >= ready_s:
                ready_s = time.monotonic() + RESEND_EVERY_S
                control.send(Ready(ids=[self._id], seq=1, epoch=0, endpoint=self._node.endpoint))
            message = control.receive(_POLL_S)
            if isinstance(message, Quit) or (lifeline is not None and _closed(lifeline)):
                return EXIT_DISMISSED
            if isinstance(message, KafkaCluster) and kafka is None:
                kafka = self._start(message)
            if kafka is not None and kafka.wait_for_end(0.0):
                what = f"Kafka ended with {kafka.status}: {tail(Path(LOG))}"
                control.send(Error(ids=[self._id], seq=1, epoch=0, message=what[:4000], fatal=True))
                raise BrokerError(what)
        sys.stderr.write(f"hydra group {self._group}: the controller has been silent for too long\n")
        return EXIT_STRANDED

    def _start(self, cluster: KafkaCluster) -> Supervised:
        folder = Path(FOLDER).absolute()
        # The supervisor does this as well, unless it was killed itself.
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.mkdir()
        copy_storage(self._template.storage, folder / DATA, cluster.cluster, cluster.node)
        nodes = [parse_node(endpoint) for endpoint in cluster.endpoints]
        values = settings(nodes, cluster.node)
        command = server_command(self._java, self._jars, self._conf, self._template, folder, values)
        self._kept.close()
        # No grace: the data goes with it, and a node that leaves politely waits for the others.
        kafka = Supervised(command, folder, Path(LOG).absolute(), grace_s=0.0)
        self._stack.callback(kafka.stop)
        return kafka


def _closed(lifeline: int) -> bool:
    readable, _, _ = select.select([lifeline], [], [], 0.0)
    return bool(readable)


if __name__ == "__main__":
    sys.exit(main())
