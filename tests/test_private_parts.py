"""Parts of client libraries that have no public counterpart: where Hydra uses them, and that the libraries have them.

`tox run -e newest` runs these tests, and those of the clients, with versions that pyproject.toml does not allow yet.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest

TREE: Final = Path(__file__).resolve().parents[1]
_OF_TUPLES_AND_OS: Final = {"_exit", "_replace"}


@dataclass(frozen=True)
class Part:
    """A part of a class or module of a library, and the file of ``hydra`` that uses it."""

    library: str
    owner: str
    name: str
    file: str


def parts(library: str, owner: str, file: str, *names: str) -> list[Part]:
    return [Part(library, owner, name, file) for name in names]


_NATS: Final = ("nats-py", "nats.aio.client:Client")
_KAFKA: Final = "kafka-python"
PARTS: Final = (
    *parts(*_NATS, "natstest/checked_client.py", "_connect_command", "_process_connect_init", "_process_err"),
    *parts(*_NATS, "natstest/checked_client.py", "_process_op_err", "_send_ping", "_server_info"),
    *parts(*_NATS, "natstest/connection.py", "_public_nkey", "_server_info", "_transport"),
    *parts("nats-py", "nats.aio.transport:TcpTransport", "natstest/connection.py", "_io_writer"),
    *parts("nats-py", "nats.aio.subscription:Subscription", "natstest/nats_subscriber.py", "_id", "_pending_queue"),
    *parts("nats-py", "nats.aio.subscription:Subscription", "natstest/nats_subscriber.py", "_pending_size"),
    *parts("nats-py", "nats.js.client:JetStreamContext.PullSubscription", "natstest/nats_subscriber.py", "_consumer"),
    *parts("nats-py", "nats.js.client:JetStreamContext.PushSubscription", "natstest/nats_subscriber.py", "_consumer"),
    *parts(_KAFKA, "kafka.consumer.group:KafkaConsumer", "kafkatest/kafka_python.py", "_client"),
    *parts(_KAFKA, "kafka.producer.kafka:KafkaProducer", "kafkatest/kafka_python.py", "_sender"),
    *parts(_KAFKA, "kafka.net.compat:KafkaNetClient", "kafkatest/kafka_python.py", "_manager"),
    *parts(_KAFKA, "kafka.producer.sender:Sender", "kafkatest/kafka_python.py", "_client", "_handle_produce_response"),
    *parts(_KAFKA, "kafka.producer.sender:Sender", "kafkatest/kafka_python.py", "_sensors", "force_close"),
    *parts(_KAFKA, "kafka.net.manager:KafkaConnectionManager", "kafkatest/connection_losses.py", "_conns"),
    *parts(_KAFKA, "kafka.net.manager:KafkaConnectionManager", "kafkatest/connection_losses.py", "get_connection"),
    *parts(_KAFKA, "kafka.net.connection:KafkaConnection", "kafkatest/connection_losses.py", "connection_lost"),
    *parts(_KAFKA, "kafka.net.connection:KafkaConnection", "kafkatest/connection_losses.py", "in_flight_requests"),
    *parts(_KAFKA, "kafka.net.transport:KafkaTCPTransport", "kafkatest/connection_losses.py", "last_activity"),
    *parts("kubernetes", "kubernetes.config.kube_config", "kubernetes/api_client.py", "_cleanup_temp_files"),
    *parts("paho-mqtt", "paho.mqtt.client:Client", "mqtttest/connection.py", "_ping_t"),
    *parts("pymesos", "pymesos.scheduler:MesosSchedulerDriver", "mesos/driver.py", "_get_version"),
)


def has(part: Part) -> bool:
    """Whether the installed library's class, or module, defines or assigns this name; nothing of it is imported."""
    module, _, owner = part.owner.partition(":")
    file = Path(str(metadata.distribution(part.library).locate_file(module.replace(".", "/")))).with_suffix(".py")
    if not file.is_file():
        return False
    text = file.read_text()
    for name in filter(None, owner.split(".")):
        found = re.search(rf"^( *)class {name}\b.*\n((?:\1 +.*\n|\n)*)", text, re.M)
        text = found[2] if found else ""
    return bool(re.search(rf"\bdef {part.name}\(|\bself\.{part.name}(: [^=\n]+)? = ", text))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.library}-{part.owner.rpartition('.')[2]}-{part.name}")
def test_the_installed_library_has_each_part(part: Part) -> None:
    try:
        version = metadata.version(part.library)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{part.library} is not installed")
    assert has(part), f"{part.library} {version} has no {part.owner}.{part.name}, which hydra/{part.file} uses"


@pytest.mark.parametrize("library", sorted({part.library for part in PARTS}))
def test_a_library_with_such_parts_has_an_upper_bound(library: str) -> None:
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    extras = (each for extra in project["optional-dependencies"].values() for each in extra)
    (required,) = [each for each in (*project["dependencies"], *extras) if re.match(rf"{library}\W", each)]
    assert re.search(r"<\d+(\.\d+)?$|==", required), f"{required}: later versions may lack what Hydra uses"


@pytest.mark.tier("test")  # it parses 100 files
def test_each_use_of_a_private_part_is_listed() -> None:
    """Of the packages of systems and engines, which alone use client libraries."""
    folders = [*(TREE / "hydra").glob("*test"), TREE / "hydra" / "kubernetes", TREE / "hydra" / "mesos"]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))]
    used = {
        (str(file.relative_to(TREE / "hydra")), name)
        for file in files
        for name in private_names(file)
        if name not in _OF_TUPLES_AND_OS
    }
    assert used == {(part.file, part.name) for part in PARTS if part.name.startswith("_")}


@cache
def bound_names() -> dict[Path, frozenset[str]]:
    """The private functions, methods and attributes that each file of ``hydra`` defines."""
    pattern = re.compile(r"\bdef (_\w+)|\b(?:self|cls)\.(_\w+)(?=[^=\n(]*=(?!=))|^    (_\w+)\b.* = ", re.M)
    return {
        file: frozenset(filter(None, (name for found in pattern.findall(file.read_text()) for name in found)))
        for file in (TREE / "hydra").rglob("*.py")
    }


def private_names(file: Path) -> Iterator[str]:
    """The private names that a file uses of objects of other packages."""
    everywhere = frozenset().union(*bound_names().values())
    elsewhere = frozenset().union(*(names for other, names in bound_names().items() if other != file))
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) if name in everywhere:
                continue
            case ast.Attribute(value=ast.Attribute(attr="_system") | ast.Name(id="system")):
                continue  # the servers of a system read its private parts
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name) if name in elsewhere:
                continue
            case (
                ast.Attribute(attr=name)
                | ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_])
            ):
                if re.match(r"_[a-z]", name):
                    yield name
