"""Which package of hydra may import which, read from the imports themselves; see docs/architecture.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.import_graph import PACKAGE, Sources, imports, sources, third_parties

PLUGGED = [".".join(spec.parent.relative_to(PACKAGE.parent).parts) for spec in sorted(PACKAGE.rglob("spec.py"))]
"""Packages of systems and engines: entry points name them, and no module outside."""

LAYERS = [
    # A package uses packages of lower layers, and none of its own layer.
    "model",
    "wire",
    "control events native",
    "client measure",
    "analysis sweep system",
    "engine",
    "config local",
    "options",
    "kafkatest mesos mqtttest natstest ssh store zmqtest",
    "kubernetes monitor report",
    "jupyter run",
    "experiments serve",
    "cli",
]
"""Lowest first. ``hydra/amounts.py``, ``hydra/errors.py`` and ``hydra/__init__.py`` belong to the model."""


def of(package: str, names: str) -> list[str]:
    """Modules of a package."""
    return [f"{package}.{name}" for name in names.split()]


PURE = [
    *of("hydra", "amounts errors model events measure analysis sweep wire"),
    *of("hydra.engine", "placement group_sizing resources pinning"),
    *of("hydra.kubernetes", "affinity node_inventory keeper_job object_names nodes pods api_errors settings"),
    *of("hydra.kubernetes", "settings run_health state pod_status"),
    *of("hydra.kubernetes.in_cluster", "job_state job_objects"),
    *of("hydra.experiments", "columns expression measured_rows operations partition_formula parts tables"),
    *of("hydra.mesos", "translate offers state settings"),
    *of("hydra.ssh", "facts failures hosts state"),
    *of("hydra.monitor", "run_snapshot metric_families"),
    *of("hydra.control", "clock_offset watch_assignment epoch_replies"),
    *of("hydra.client", "subscriber_state time_series pacing ledger sequence_set message_topics ack_ledger"),
    *of("hydra.client", "relayed_replies relay_state"),
]
"""Without clock, socket, file and process."""

NAMES = {
    package.removeprefix("hydra."): package
    for package in PLUGGED
    if not package.endswith("test") and package != "hydra.local"  # that is a word of every day
}
"""What is named in one package only, in code and in comments."""

_SYSTEMS = [package.removeprefix("hydra.").removesuffix("test") for package in PLUGGED if package.endswith("test")]
SYSTEMS = re.compile("|".join([*_SYSTEMS, "bootstrap"]), re.IGNORECASE)
"""Words of systems, which stand in no package but theirs: neither in code nor in comments."""

CHANNEL = {
    # The control channel is made of ZeroMQ sockets, whatever is measured.
    **dict.fromkeys(["hydra.control", "hydra.client.relay", "hydra.client.transport", "hydra.native.build"], "zmq"),
    # The scenario that `hydra check` takes unless another is named, and that examples are of.
    "hydra.cli": "zmq-?rate",
}
"""The words that a package may use nevertheless."""

ONLY = {"hydra.jupyter": of("hydra", "jupyter model errors store report measure sweep events analysis")}
"""All that a room may use of hydra."""

LIBRARIES = {
    # Library → the rooms that may import it.
    # The relay waits for both of its sockets and its pipes together.
    "zmq": ["hydra.control", "hydra.zmqtest", "hydra.client.relay"],
    "cryptography": ["hydra.system.run_certificates", "hydra.natstest.nkey"],
    "kubernetes": ["hydra.kubernetes.api_client", "hydra.kubernetes.api_streams"],
    "websocket": ["hydra.kubernetes.api_streams"],  # the Kubernetes client's own
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
"""What pure modules do without."""

IMPURE_ON_PURPOSE = {
    ("hydra.wire.clock", "time"),  # the one place that reads the clock that both ends share
    ("hydra.wire.clock", "pathlib"),
    ("hydra.events.group_events", "signal"),  # the names of signals
    ("hydra.ssh.state", "signal"),
}


def within(module: str, package: str) -> bool:
    # The package `hydra` itself is a package too, but not everything in it is that package.
    return module == package or (package != "hydra" and module.startswith(f"{package}."))


def package_of(module: str) -> str:
    """The package right under hydra; of ``hydra/amounts.py``, ``hydra/errors.py`` and of hydra itself, the model."""
    name = module.split(".")[1] if "." in module else ""
    return "model" if name in {"", "amounts", "errors"} else name


@cache
def layer(module: str) -> int:
    """The layer of a module's package, 0 the lowest; -1 if it is in no table."""
    return next((n for n, names in enumerate(LAYERS) if package_of(module) in names.split()), -1)


def breaches(known: Sources) -> list[str]:
    """One line for each import that breaks a rule."""
    return [
        line
        for module, text in known.items()
        for number, used in imports(module, text, known)
        for line in judge(f"{module}:{number} imports {used}", module, used)
    ] + [f"{m} has no place in LAYERS: decide on which layer its package is" for m in known if layer(m) < 0]


def judge(fact: str, module: str, used: str) -> Iterator[str]:
    library = used.split(".")[0]
    if library == "hydra":
        if package_of(module) != package_of(used) and layer(used) >= layer(module) >= 0:
            yield f"{fact}: {package_of(module)!r} uses lower layers only, {package_of(used)!r} is on none of these"
        own, others = (next((package for package in PLUGGED if within(m, package)), "") for m in (module, used))
        if others and own != others:
            yield f"{fact}: only entry points name {others}"
        for limited, allowed in ONLY.items():
            if within(module, limited) and not any(within(used, a) for a in allowed):
                yield f"{fact}: {limited} uses only {', '.join(sorted(allowed))}"
        return
    packages = LIBRARIES.get(library)
    if packages is not None and not any(within(module, p) for p in packages):
        yield f"{fact}: only {', '.join(packages)} may import {library}"
    if is_pure(module) and library in IMPURE and (module, library) not in IMPURE_ON_PURPOSE:
        yield f"{fact}: it is pure, it has no clock, socket, file or process"


def is_pure(module: str) -> bool:
    return any(within(module, name) for name in PURE)


def test_every_import_follows_the_layers() -> None:
    assert breaches(sources()) == []


@pytest.mark.parametrize(("word", "package"), NAMES.items())
def test_only_its_own_package_names_an_engine(word: str, package: str) -> None:
    # No part of another word, such as LossHeatmap, and no command that a user may type.
    name = re.compile(rf"(?<![a-z]){word}(?! -)", re.IGNORECASE)
    assert [m for m, text in sources().items() if name.search(text) and not within(m, package)] == []


def test_only_their_own_packages_name_systems() -> None:
    """What is named elsewhere is what a newcomer would have to change as well."""
    named = {}
    for module, text in sources().items():
        output = {word.lower() for word in SYSTEMS.findall(text)}
        if any(within(module, package) for package in CHANNEL):
            may = "|".join(word for package, word in CHANNEL.items() if within(module, package))
            output = {word.lower() for word in SYSTEMS.findall(re.sub(may, "", text, flags=re.IGNORECASE))}
        if output and not any(within(module, package) for package in PLUGGED):
            named[module] = output
    assert named == {}


def test_no_file_of_tests_imports_from_another_one() -> None:
    """What several use stands in a module beside them."""
    tests = PACKAGE.with_name("tests")
    uses = re.compile(r"^\s*(?:from|import) tests\b.*\btest_", re.MULTILINE)
    assert [str(path.relative_to(tests)) for path in tests.rglob("*.py") if uses.search(path.read_text())] == []


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


def test_what_is_pure_opens_no_file() -> None:
    assert [m for m in sources() if is_pure(m) and re.search(r"(?<![\w.])open\(", sources()[m])] == []


def test_every_package_in_the_tables_is_spelt_as_it_is_in_the_house() -> None:
    named = {name for names in (PURE, *LIBRARIES.values(), *ONLY.values()) for name in names}
    named |= {f"hydra.{name}" for names in LAYERS for name in names.split()}
    assert named - sources().keys() == set()


@pytest.mark.parametrize(
    ("module", "text", "rule"),
    [
        ("hydra.model", "import hydra.sweep.grid", "'model' uses lower layers only"),
        ("hydra.sweep.grid", "from hydra.store import database", "'sweep' uses lower layers only"),
        ("hydra.client.pacing", "from hydra.measure import rates", "'measure' is on none of these"),
        ("hydra.sweep.grid", "def f():\n    import time", "hydra.sweep.grid:2 imports time: it is pure"),
        ("hydra.client.ledger", "import socket", "it is pure"),
        ("hydra.measure.rates", "import psutil", "it is pure"),
        ("hydra.client.process_group", "from hydra.run.runner import run", "'client' uses lower layers only"),
        ("hydra.wire.messages", "from ..control import controller", "'wire' uses lower layers only"),
        ("hydra.cli.main", "import hydra.mesos.state", "only entry points name hydra.mesos"),
        (
            "hydra.zmqtest.pyzmq",
            "from hydra.natstest.streams import JetStreams",
            "only entry points name hydra.natstest",
        ),
        ("hydra.store.database", "import zmq.utils", "only hydra.control, hydra.zmqtest, hydra.client.relay"),
        ("hydra.zmqtest.pyzmq", "from kafka import KafkaProducer", "only hydra.kafkatest may import kafka"),
        ("hydra.local.engine", "import pymesos", "only hydra.mesos.driver may import pymesos"),
        ("hydra.jupyter.report", "import hydra.config.layers", "hydra.jupyter uses only"),
        ("hydra.helpers", "", "has no place in LAYERS"),
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
    ],
)
def test_the_check_lets_pass(module: str, text: str) -> None:
    assert breaches({**dict.fromkeys(sources(), ""), module: text}) == []
