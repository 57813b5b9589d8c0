"""Which room of hydra may import which, read from the imports themselves; see docs/architecture.md.

A room is a module or a package; where both are in a table, the longer name counts.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[1] / "hydra"

ROOMS = [".".join(spec.parent.relative_to(HOUSE.parent).parts) for spec in sorted(HOUSE.rglob("spec.py"))]
"""Those of systems and engines: entry points name them. A newcomer needs no line in this file."""


def of(room: str, names: str) -> list[str]:
    """Modules of a room."""
    return [f"{room}.{name}" for name in names.split()]


CLUSTER = "hydra.engine"
TIERS = {
    # Lowest first. A room uses rooms of lower tiers and of its own.
    "nouns": ["hydra", "hydra.model", "hydra.errors"],
    "pure": [
        *of("hydra", "events columns compare sweep measure metrics scaling wire"),
        *of(CLUSTER, "constraints placement rehearsal resources splitting"),
        *of(f"{CLUSTER}.kubernetes", "affinity ending inventory keeper names nodes pods refusals scripts settings"),
        *of(f"{CLUSTER}.kubernetes", "standing state statuses waiting"),
        *of(f"{CLUSTER}.kubernetes.in_cluster", "cluster_file log objects podstate words"),
        *of(f"{CLUSTER}.mesos", "translate offered state settings"),
        *of("hydra.control", "bounded clocks hosts outstanding timekeeper"),
        *of("hydra.client", "arrivals course spells pacing ledger acks lag repeats gathering joining commands"),
        *of("hydra.client", "batching relaying"),
    ],
    "parts": [
        *of("hydra", "ceiling config control cluster results client system plugins options servers limits native"),
        *of("hydra.monitor", "prometheus otlp refusal"),
    ],
    "rooms": ROOMS,
    "runs": of("hydra", "run jupyter experiments planning serve shell"),
    "command": ["hydra.cli.main"],
}

NAMES = {
    room.removeprefix("hydra.engine."): room
    for room in ROOMS
    if room.startswith("hydra.engine.") and room != "hydra.local"  # that is a word of every day
}
"""What is named in one room only, in code and in comments."""

_SYSTEMS = [room.removeprefix("hydra.").removesuffix("test") for room in ROOMS if room.endswith("test")]
SYSTEMS = re.compile("|".join([*_SYSTEMS, "topic", "bootstrap"]), re.IGNORECASE)
"""Words of systems, which stand in no room but theirs: neither in code nor in comments."""

CHANNEL = {
    # The control channel is made of ZeroMQ sockets, whatever is measured.
    **dict.fromkeys(["hydra.control", "hydra.client.relay", "hydra.client.transport", "hydra.native.build"], "zmq"),
    # The scenario that `hydra check` takes unless another is named, and that examples are of.
    **dict.fromkeys(["hydra.cli.main", "hydra.cli"], "zmqrate"),
}
"""The words that a room may say nevertheless."""

ONLY = {"hydra.jupyter": of("hydra", "jupyter model errors results measure sweep columns events compare scaling")}
"""All that a room may use of hydra."""

LIBRARIES = {
    # Library → the rooms that may import it.
    # The relay waits for both of its sockets and its pipes together.
    "zmq": ["hydra.control", "hydra.zmqtest", "hydra.client.relay"],
    "kubernetes": ["hydra.kubernetes.api_client", "hydra.kubernetes.streams"],
    "websocket": ["hydra.kubernetes.streams"],  # the Kubernetes client's own
    "pymesos": ["hydra.mesos.driver"],
    "kafka": ["hydra.kafkatest"],
    "confluent_kafka": ["hydra.kafkatest"],
    "prometheus_client": ["hydra.monitor.prometheus"],
    "opentelemetry": ["hydra.monitor.otlp"],
}

IMPURE = [
    *("time", "datetime", "socket", "select", "selectors", "ssl", "os", "io", "pathlib", "shutil", "tempfile", "fcntl"),
    *("subprocess", "multiprocessing", "threading", "asyncio", "concurrent", "signal", "sqlite3", "urllib", "http"),
    *("zmq", "kafka", "confluent_kafka", "pymesos", "psutil"),
]
"""No clock, no socket, no file: what the two lowest tiers do without."""

IMPURE_ON_PURPOSE = {
    ("hydra.wire.clock", "time"),  # the one place that reads the clock that both ends share
    ("hydra.wire.clock", "pathlib"),
    ("hydra.events.clients", "signal"),  # the names of signals
}

Sources = Mapping[str, str]
"""Module name → its text."""


_IMPORT = re.compile(r"^[ \t]*((?:import|from\s+[\w.]+\s+import)\s+(?:\([^)]*\)|[^\n]*))", re.MULTILINE)
_parsed = cache(ast.parse)


@cache
def statements(text: str) -> list[tuple[int, ast.stmt]]:
    """Each import and its line. The formatter lets each begin a line: to parse all else would take seconds."""
    return [(text.count("\n", 0, found.start(1)) + 1, _parsed(found[1]).body[0]) for found in _IMPORT.finditer(text)]


@cache
def sources() -> Sources:
    found = {}
    for path in sorted(HOUSE.rglob("*.py")):
        parts = path.relative_to(HOUSE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


def imports(module: str, text: str, known: Sources) -> Iterator[tuple[int, str]]:
    """(line, module) of every import, wherever in the text it stands."""
    for line, node in statements(text):
        if isinstance(node, ast.Import):
            yield from ((line, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # The house is written with absolute imports; a relative one is resolved as if in a module, not a package.
            base = ".".join(module.split(".")[: -node.level]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield line, inner if inner in known else origin


def within(module: str, room: str) -> bool:
    # The package `hydra` itself is a room too, but not everything in it is that room.
    return module == room or (room != "hydra" and module.startswith(f"{room}."))


@cache
def place(module: str) -> tuple[int, str]:
    """The tier's number and the room of a module; (-1, "") if it is in no table."""
    rooms = [(len(room), tier, room) for tier, names in enumerate(TIERS.values()) for room in names]
    _, tier, room = max((r for r in rooms if within(module, r[2])), default=(0, -1, ""))
    return tier, room


def breaches(known: Sources) -> list[str]:
    """One line for each import that breaks a rule."""
    return [
        line
        for module, text in known.items()
        for number, used in imports(module, text, known)
        for line in judge(f"{module}:{number} imports {used}", module, used)
    ] + [f"{m} has no place in TIERS: decide which tier it belongs to" for m in known if place(m)[0] < 0]


def judge(fact: str, module: str, used: str) -> Iterator[str]:
    names = list(TIERS)
    tier, _ = place(module)
    library = used.split(".")[0]
    if library == "hydra":
        used_tier, _ = place(used)
        if used_tier > tier >= 0:
            yield f"{fact}: {names[tier]!r} may not use {names[used_tier]!r}, which is above it"
        mine, theirs = (next((room for room in ROOMS if within(m, room)), "") for m in (module, used))
        if mine and theirs and mine != theirs:
            yield f"{fact}: {mine} and {theirs} never use each other"
        for limited, allowed in ONLY.items():
            if within(module, limited) and not any(within(used, a) for a in allowed):
                yield f"{fact}: {limited} uses only {', '.join(sorted(allowed))}"
        return
    rooms = LIBRARIES.get(library)
    if rooms is not None and not any(within(module, r) for r in rooms):
        yield f"{fact}: only {', '.join(rooms)} may import {library}"
    if 0 <= tier <= names.index("pure") and library in IMPURE and (module, library) not in IMPURE_ON_PURPOSE:
        yield f"{fact}: {names[tier]!r} is pure, it has no clock, socket, file or process"


def third_parties(known: Sources, module: str) -> set[str]:
    used = {name.split(".")[0] for _, name in imports(module, known[module], known)}
    return used - set(sys.stdlib_module_names) - {"hydra"}


def test_every_import_follows_the_layers() -> None:
    assert breaches(sources()) == []


@pytest.mark.parametrize(("word", "room"), NAMES.items())
def test_only_its_own_room_names_an_engine(word: str, room: str) -> None:
    assert [m for m, text in sources().items() if word in text.lower() and not within(m, room)] == []


def test_only_their_own_rooms_name_systems() -> None:
    """What is named elsewhere is what a newcomer would have to change as well."""
    named = {}
    for module, text in sources().items():
        said = {word.lower() for word in SYSTEMS.findall(text)}
        if any(within(module, room) for room in CHANNEL):
            may = "|".join(word for room, word in CHANNEL.items() if within(module, room))
            said = {word.lower() for word in SYSTEMS.findall(re.sub(may, "", text, flags=re.IGNORECASE))}
        if said and not any(within(module, room) for room in ROOMS):
            named[module] = said
    assert named == {}


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    known = sources()
    graph = {m: {used for _, used in imports(m, text, known) if used in known} - {m} for m, text in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' → '.join(error.args[1])}")


@pytest.mark.parametrize("module", ["hydra.model", "hydra.errors"])
def test_the_nouns_need_the_standard_library_only(module: str) -> None:
    assert third_parties(sources(), module) == set()


def test_the_pure_rooms_open_no_file() -> None:
    pure = (m for m in sources() if 0 <= place(m)[0] <= 1)
    assert [m for m in pure if re.search(r"(?<![\w.])open\(", sources()[m])] == []


def test_every_room_in_the_tables_is_spelt_as_it_is_in_the_house() -> None:
    named = {room for rooms in (*TIERS.values(), *LIBRARIES.values()) for room in rooms}
    assert named - sources().keys() == set()


@pytest.mark.parametrize(
    ("module", "text", "rule"),
    [
        ("hydra.model", "import hydra.sweep.grid", "'nouns' may not use 'pure'"),
        ("hydra.sweep.grid", "from hydra.report import store", "'pure' may not use 'parts'"),
        ("hydra.sweep.grid", "def f():\n    import time", "hydra.sweep.grid:2 imports time: 'pure' is pure"),
        ("hydra.client.ledger", "import socket", "'pure' is pure"),
        ("hydra.measure.rates", "import psutil", "'pure' is pure"),
        ("hydra.client.process_group", "from hydra.run.runner import run", "'parts' may not use 'runs'"),
        ("hydra.wire.messages", "from hydra.control import controller", "'pure' may not use 'parts'"),
        ("hydra.wire.messages", "from ..control import controller", "'pure' may not use 'parts'"),
        ("hydra.local.engine", "import hydra.mesos.state", "never use each other"),
        ("hydra.zmqtest.system", "from hydra.kafkatest.topics import Topics", "never use each other"),
        ("hydra.kafkatest.system", "import hydra.zmqtest", "never use each other"),
        ("hydra.store.database", "import zmq.utils", "only hydra.control, hydra.zmqtest, hydra.client.relay"),
        ("hydra.zmqtest.pyzmq", "from kafka import KafkaProducer", "only hydra.kafkatest may import kafka"),
        ("hydra.local.engine", "import pymesos", "only hydra.mesos.driver may import pymesos"),
        ("hydra.jupyter.report", "import hydra.run.step", "hydra.jupyter uses only"),
        ("hydra.helpers", "", "has no place in TIERS"),
    ],
)
def test_the_check_notices(module: str, text: str, rule: str) -> None:
    known = {**dict.fromkeys(sources(), ""), module: text}
    (line,) = (b for b in breaches(known) if b.startswith(module) and rule in b)
    assert rule in line


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("hydra.store.database", "import sqlite3\nfrom hydra.measure.rates import jain"),
        ("hydra.client.relay", "import zmq"),
        ("hydra.run.runner", "import hydra.zmqtest.system\nimport hydra.kafkatest.system"),
    ],
)
def test_the_check_lets_pass(module: str, text: str) -> None:
    assert breaches({**dict.fromkeys(sources(), ""), module: text}) == []
