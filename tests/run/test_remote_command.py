"""A command that is carried out elsewhere is the one that was asked for here, with the files that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.cli.experiment_execution import ExperimentRun
from hydra.config import plugins
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import experiments, scenarios
from hydra.config.resolved_scenario import ResolvedCommand, ResolvedScenario
from hydra.config.scenario import resolve
from hydra.engine.specification import Relocation, Shipment
from hydra.experiments.experiment import find
from hydra.experiments.runner import scenario_of
from hydra.kubernetes.settings import KubernetesSettings
from hydra.options.engine_choice import SelectedEngine
from hydra.run.remote_command import received, run_elsewhere
from hydra.system.experiment import ExperimentOptions

FLAGS = {
    "fail_if": ["loss_pct > 0.5"],
    "as_json": False,
    "quiet": True,
    "plain": False,
    "prometheus": None,
    "otlp": None,
}
SETTINGS = KubernetesSettings(
    namespace="lab",
    in_cluster=True,
    tolerations=({"key": "x", "tolerationSeconds": 30},),
    pod={"empty": {}, "on": True},
)
CLUSTER = load_cluster()


def shipped(command: ResolvedCommand) -> Shipment:
    """What the engine of a command is given."""
    given: list[Shipment] = []

    def relocate(requests: Relocation) -> int:
        given.append(requests.shipment("k8s://there", "/files"))
        return 0

    spec = replace(plugins.engines()["kubernetes"], relocate=relocate)
    with pytest.raises(SystemExit):
        run_elsewhere(command, SelectedEngine("k8s://here", spec, SETTINGS), CLUSTER, Path("runs/first"), resumed=False)
    return given[0]


def run(scenario: ResolvedScenario, replaced: Mapping[str, object] | None = None) -> ResolvedCommand:
    return ResolvedCommand("run", {"": scenario}, replaced or {}, FLAGS)


@pytest.mark.parametrize("name", scenarios())
def test_every_scenario_arrives_as_it_is(name: str) -> None:
    command = run(resolve(name, {"sweep.repeat": 3}), {"sweep.repeat": 3, "sweep.held": None, "sweep.search": None})
    present, engine, cluster = received(shipped(command).order)
    assert present == command
    assert (engine.master, engine.settings, cluster) == ("k8s://there", SETTINGS, CLUSTER)


def test_each_side_of_a_comparison_arrives_by_its_name() -> None:
    sides = {name: resolve("zmqfixed", {"client": name}) for name in ("pyzmq", "native")}
    own = {name: {"scenario": "zmqfixed", "replaced": {"client": name}, "command": ""} for name in sides}
    command = ResolvedCommand("comparison", sides, {}, {**FLAGS, "interleave": None}, sides=own)
    present, _, _ = received(shipped(command).order)
    assert list(present.scenarios) == ["pyzmq", "native"]
    assert present == command


def test_files_are_those_of_fields_and_what_was_read_stays(tmp_path: Path) -> None:
    password, trace = tmp_path / "pw 1.txt", tmp_path / "trace.csv"
    password.write_text("geheim\n")
    trace.write_text("0,100\n1,200\n")
    replaced = {
        "mqtt.broker": "broker:1883",
        "mqtt.username": "me",
        "mqtt.password_file": str(password),
        "load": {"shape": "recorded", "file": str(trace)},
        "settings": {"payload": "lines", "message_size": 99, "payload_file": str(trace)},
    }
    command = run(resolve("mqtt-fixed", replaced), replaced)
    order, files = shipped(command)
    assert files == {str(password): "/files/0/pw_1.txt"}
    present, _, _ = received(order)
    scenario, here = present.first.scenario, command.first.scenario
    assert scenario.tables["mqtt"] == replace(here.tables["mqtt"], password_file="/files/0/pw_1.txt")
    assert (scenario.load, scenario.settings) == (here.load, here.settings)
    assert list(scenario.load.points) == [(0, 100), (1, 200)]
    assert present.replaced == replaced


def test_the_later_parts_of_an_experiment_find_files_under_their_keys(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("0,100\n1,200\n")
    replaced = {"load.file": str(trace), "load.shape": "recorded", "warmup_s": 0}
    command = ResolvedCommand(
        "experiment", {"first": resolve("nats-fixed", replaced)}, replaced, FLAGS, "any", ExperimentOptions(1)
    )
    order, files = shipped(command)
    present, _, _ = received(order)
    assert files == {str(trace): "/files/0/trace.csv"}
    assert present.replaced == {**replaced, "load.file": "/files/0/trace.csv"}


def test_an_experiment_arrives_with_what_was_asked_for() -> None:
    name = next(iter(experiments()))
    experiment = find("", name)
    order = ExperimentOptions(0.5, {"batches": [1, 10]}, 3)
    part = experiment.next_part(order, ())
    assert part is not None
    first = {part.name: scenario_of(experiment, part, {})}
    flags = {**FLAGS, "fail_if": []}
    present, _, _ = received(shipped(ResolvedCommand("experiment", first, {}, flags, name, order)).order)
    assert (present.first, present.experiment, present.order) == (first[part.name], name, order)
    ExperimentRun(present)


def test_a_file_that_is_not_here_is_left_to_who_reads_it() -> None:
    fixed = resolve("nats-fixed", {"load.shape": "steps", "load.file": "no.csv"}, alone=False)
    command = ResolvedCommand("experiment", {"first": fixed}, {}, FLAGS, "any", ExperimentOptions(1))
    assert shipped(command).files == {}


def test_a_comparison_of_long_loads_fits_into_what_a_cluster_takes(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("".join(f"{at / 7},{at % 97 / 3}\n" for at in range(8192)))
    load = {"load": {"shape": "recorded", "file": str(trace)}}
    sides = {f"pyzmq-{n}": resolve("zmqfixed", load) for n in range(5)}
    assert len(shipped(ResolvedCommand("comparison", sides, load, FLAGS)).order) < 500_000
