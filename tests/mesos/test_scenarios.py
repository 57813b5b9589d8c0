"""Whole commands over the test master, and what a cluster does to a run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from hydra.config.file_locations import conf_dir
from hydra.events.group_events import GroupExit, Launched
from hydra.store.database import RunStore
from tests.integration.command import (
    Background,
    all_ended,
    answer_of,
    assert_all_arrived,
    assert_clocks_known,
    await_window,
    background,
    events,
    hydra,
    steps,
    table,
)
from tests.mesos.cluster import Cluster, running
from tests.mesos.namespaces import hosts
from tests.suite.native_client import needs_native
from tests.suite.waiting import LONG_S, SOON_S, wait_until

pytestmark = [pytest.mark.tier("all"), pytest.mark.usefixtures("cache_home")]
pytest.importorskip("pymesos", reason="pip install ./shims/http-parser '.[mesos]'")

FOUR_AGENTS = (
    ("agent-pub", "group:cpu4-mem16", "cpus:4;mem:15000"),
    *((f"agent-sub-{n}", "group:cpu16-mem60", "cpus:16;mem:60000") for n in (1, 2, 3)),
)
FIXED = ("zmqfixed", "--rate", 200, "--set", f"ready_timeout_s={LONG_S}", "--set", "warmup_s=0")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The run's folder."""
    return tmp_path / "run"


def measure(cluster: Cluster, run: Path, *words: object, expect: int = 0) -> str:
    """Runs a scenario to its end; gives its output."""
    return hydra(*FIXED, *words, "--master", cluster.address, "--out", run, expect=expect).stderr


@contextmanager
def measuring(cluster: Cluster, run: Path, *words: object) -> Iterator[Background]:
    arguments = (*FIXED, *words, "--master", cluster.address, "--out", run)
    with background(*arguments, log=run.with_name("log")) as command:
        yield command


def no_task_runs(cluster: Cluster) -> bool:
    return "TASK_RUNNING" not in cluster.states().values()


def assert_measured(run: Path) -> None:
    """What the scenario of two rows gives, whatever engine runs it."""
    two, four = table(run)
    assert (two["clients"], four["clients"]) == ("2", "4")
    for row in (two, four):
        assert row["failed_clients"] == "0"
        assert_all_arrived(row, 200)
    placed = events(run, Launched)
    assert sum("publisher" in e and "agent-pub" in e for e in placed) == 1
    assert all("agent-sub" in e for e in placed if "subscriber" in e)


def test_a_scenario_gives_the_same_table_on_this_machine(run: Path) -> None:
    hydra(*FIXED, "--clients", "2,4", "--duration", 1, "--master", "local", "--out", run)
    assert_measured(run)


@pytest.mark.tier("test")
def test_a_scenario_runs_on_a_cluster_and_nothing_stays_or_is_told_there(run: Path, cluster: Cluster) -> None:
    measure(cluster, run, "--clients", "2,4", "--duration", 1)
    assert_measured(run)
    assert cluster.ask(lambda: cluster.master.frameworks) == {}
    assert set(cluster.states().values()) <= {"TASK_FINISHED", "TASK_KILLED"}
    infos = cluster.ask(lambda: [task.info for task in cluster.master.tasks()])
    for info in infos:
        variables = {v["name"]: v["value"] for v in info["command"]["environment"]["variables"]}
        secret = variables["HYDRA_CONTROL_CLIENT_SECRET"]
        assert not any(secret in word for word in info["command"]["arguments"])
        assert info["command"]["shell"] is False
    # One download for each agent, however many groups it ran.
    fetched = [uri for agent in cluster.agents for uri in agent.fetched]
    assert len(fetched) == len({info["agent_id"]["value"] for info in infos})


def test_a_workload_is_judged_on_mesos_as_well(tmp_path: Path, run: Path, cluster: Cluster) -> None:
    """A ramp with subscribers disconnected in its middle: each second is known, and so is the time to recover."""
    scenario = tmp_path / "ramp.toml"
    scenario.write_text(
        'system = "zmq"\nclient = "pyzmq"\ntable = "fixed"\n[settings]\nrate = 200.0\n'
        "[sweep]\nclients = [4]\nduration_s = 4.0\n[load]\nshape = 'ramp'\nlow = 0.5\n"
        "[[events]]\nat_s = 1.0\nkind = 'gone'\nfor_s = 1.0\nfraction = 0.25\n"
    )
    requests = ("--max", "10s", "--loss", 0, "--set", f"ready_timeout_s={LONG_S}")
    answer = answer_of(scenario, *requests, "--master", cluster.address, out=run)
    assert answer["complete"]
    with RunStore.open(run) as store:
        (epoch,) = store.time_series_epochs()
        found = store.course(epoch)
    assert found is not None
    seconds = [interval for interval in found[2] if interval.begin_s < 4]
    assert [interval.begin_s for interval in seconds] == [0, 1, 2, 3]
    assert 300 < sum(interval.sent for interval in seconds) <= 600
    assert any("agent-" in event for event in events(run, Launched))


def test_four_hosts_with_addresses_and_clocks_of_their_own(tmp_path: Path, run: Path) -> None:
    """Loopback leads nowhere but to itself; the clocks' offsets are found within the bounds, and each host's load."""
    ahead_s = (1_000, 3, 5_000_000, 77)
    with ExitStack() as stack:
        try:
            subprocess.run(["unshare", "--time", "--monotonic", "1", "true"], check=True, capture_output=True)
            network = stack.enter_context(hosts(len(FOUR_AGENTS)))
        except (OSError, subprocess.CalledProcessError) as e:
            pytest.skip(f"no network or time namespaces here: {e}")
        cluster = stack.enter_context(running(tmp_path / "mesos", FOUR_AGENTS, ping_timeout_s=0.2, allocation_s=0.1))
        for agent, address, name, s in zip(cluster.agents, network.addresses, network.names, ahead_s, strict=True):
            agent.address, agent.namespace, agent.ahead_s = address, name, s
        measure(cluster, run, "--clients", 6, "--duration", 2, "--advertise", network.here)
        truth = {agent.id: agent.ahead_s for agent in cluster.agents}
    (row,) = table(run)
    assert_all_arrived(row, 400)
    assert_clocks_known(run, truth)
    with RunStore.open(run) as store:
        (step,) = store.results()
        where = Counter(client["agent"] for client in store.clients(step.epoch))
    publisher, *others = truth
    assert where == {publisher: 1, **dict.fromkeys(others, 2)}
    hydra("report", run)
    page = (run / "report.html").read_text()
    assert all(agent in page for agent in truth)
    assert "Clock of each agent" in page


def test_a_master_failover_in_mid_run_changes_no_row(cluster: Cluster, run: Path) -> None:
    with measuring(cluster, run, "--clients", "2,4", "--duration", 2) as command:
        await_window(run)
        known = cluster.ask(lambda: list(cluster.master.frameworks))
        cluster.fail_over()
        assert command.wait() == 0, command.output()
    assert [row["failed_clients"] for row in table(run)] == ["0", "0"]
    assert cluster.calls("RECONCILE")
    assert cluster.calls("TEARDOWN")
    assert cluster.ask(lambda: cluster.master.removed) == set(known)


def test_an_agent_lost_in_mid_run_fails_its_clients_and_they_are_elsewhere_in_the_next_step(
    cluster: Cluster, run: Path
) -> None:
    with measuring(cluster, run, "--clients", "4,5", "--duration", 3) as command:
        await_window(run)
        (lost,) = (agent for agent in cluster.agents if agent.hostname == "agent-sub-1")
        cluster.do(cluster.master.forget_agent(lost))
        assert command.wait() == 3, command.output()
    first, second = table(run)
    assert first["failed_dead"] == "2"
    assert (second["failed_clients"], float(second["client_loss_pct"])) == ("0", 0)
    assert any("TASK_UNREACHABLE" in text for text in events(run, GroupExit))
    assert "agent-sub-2" in events(run, Launched)[-1]


def without_python(cluster: Cluster, folder: Path) -> None:
    """The agents' PATH holds what every host has, and no Python."""
    folder.mkdir()
    tools = "sh sed uname dirname getconf sort head tar gzip id mkdir touch find rm chmod flock"
    for tool in tools.split():
        (folder / tool).symlink_to(next(p for p in (Path("/usr/bin") / tool, Path("/bin") / tool) if p.exists()))
    for agent in cluster.agents:
        agent.environment["PATH"] = str(folder)


@needs_native
def test_native_clients_need_no_python_on_the_agents(cluster: Cluster, tmp_path: Path, run: Path) -> None:
    without_python(cluster, tmp_path / "bin")
    measure(cluster, run, "--client", "native", "--clients", 4, "--duration", 1)
    (row,) = table(run)
    assert_all_arrived(row, 200)


@pytest.mark.parametrize(
    "client",
    [
        pytest.param("native", marks=needs_native),
        # A Python of its own for every group costs it 0.25 s of CPU.
        pytest.param("pyzmq", marks=pytest.mark.skipif("HYDRA_SOAK_SEEDS" not in os.environ, reason="make soak")),
    ],
)
def test_a_thousand_clients_in_a_hundred_groups(tmp_path: Path, run: Path, client: str) -> None:
    config = tmp_path / "hydra.toml"
    config.write_text((conf_dir() / "hydra.toml").read_text().replace("max_group = 1000", "max_group = 10"))
    with running(tmp_path / "mesos", FOUR_AGENTS, allocation_s=0.5) as cluster:
        patient = ("--set", f"drain_max_s={LONG_S}")  # a machine that others use too is late, and loses nothing
        measure(cluster, run, "--client", client, "--clients", 1000, "--duration", 1, "--config", config, *patient)
        assert len(cluster.states()) > 100
    (row,) = table(run)
    assert {row[name] for name in row if name.startswith("failed_")} == {"0"}, row


@pytest.mark.tier("test")
def test_an_agent_without_our_python_says_so(cluster: Cluster, tmp_path: Path, run: Path) -> None:
    without_python(cluster, tmp_path / "bin")
    text = measure(cluster, run, "--clients", 2, "--duration", 1, expect=1)
    assert "this agent has no Python 3." in text
    assert "python3 here: none" in text


def test_no_matching_agent_is_explained_before_anything_is_launched(cluster: Cluster, run: Path) -> None:
    constraint = 'subscriber.constraints=[["group", "CLUSTER", "huge"]]'
    text = measure(cluster, run, "--set", constraint, expect=2)
    assert "0 of 3 agents match group CLUSTER huge; seen: cpu16-mem60 x2, cpu4-mem16 x1" in text
    assert cluster.states() == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_interrupted_or_killed_leaves_nothing_on_the_cluster(
    cluster: Cluster, run: Path, number: signal.Signals
) -> None:
    with measuring(cluster, run, "--clients", "2,3", "--duration", 1) as command:
        wait_until(lambda: steps(run), "the first row", LONG_S)
        family = command.family()
        command.process.send_signal(number)
        wait_until(lambda: cluster.ask(lambda: not cluster.master.frameworks), "the teardown")
        wait_until(lambda: no_task_runs(cluster), "the end of the tasks", saw=cluster.states)
        wait_until(lambda: all_ended(family), "the end of the driver's process", saw=command.family)
    assert steps(run)[0][1] == "ok"


def test_what_is_left_when_all_of_hydra_is_gone_is_seen_and_ended(cluster: Cluster, run: Path) -> None:
    with measuring(cluster, run, "--clients", 2, "--duration", 600) as command:
        await_window(run)
        for process in command.family():
            with suppress(psutil.NoSuchProcess):  # the last of them may end with the first
                process.kill()  # the driver's process first: then none is left that could tear the framework down
        command.process.kill()
        command.process.wait(SOON_S)
    listed = hydra("ps", "--master", cluster.address).stdout
    assert listed.splitlines()[2].split()[0] == "run"
    assert hydra("kill", "run", "--master", cluster.address).stdout.startswith("ended ")
    wait_until(lambda: no_task_runs(cluster), "the end of the tasks", saw=cluster.states)
    hydra("kill", "run", "--master", cluster.address, expect=2)


@pytest.mark.parametrize(
    ("scenario", "roles"),
    [
        ("zmqfixed", {"publisher": [True, False, False], "subscriber": [False, True, True]}),
        ("kafka-fixed", {"server": [False, True, True]}),
    ],
)
def test_agents_are_listed_with_the_roles_that_could_run_there(
    cluster: Cluster, scenario: str, roles: dict[str, list[bool]]
) -> None:
    rows = hydra("agents", "--master", cluster.address, "--for", scenario).stdout.splitlines()[2:]
    assert {role: [role in row for row in rows] for role in roles} == roles
    assert "rack:12;slots:[1-3]" in rows[1]


def test_check_places_every_row_on_the_agents(cluster: Cluster) -> None:
    done = hydra("check", "zmqfixed", "--clients", "2,100000", "--master", cluster.address, expect=3).stdout
    first = [line.split() for line in done.splitlines() if line.split()[1:2] == ["1"]]
    assert [(words[0], words[-1]) for words in first] == [("2", "yes"), ("100000", "no")]
    assert "subscriber clients do not fit: the " in done


def test_a_master_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = hydra("agents", "--master", "127.0.0.1:1", expect=2)
    assert "no answer from 127.0.0.1:1" in done.stderr
