"""Whole commands over a real sshd, and what a host may do to a run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from hydra.cli.machine_check import MachineCheck
from hydra.cli.main import cli
from hydra.engine.interface import Engine
from hydra.engine.specification import Opening
from hydra.events.group_events import GroupExit, Launched
from hydra.measure.machine_facts import facts_of
from hydra.model import Constraint, Demand, Group, GroupEvent
from hydra.ssh.engine import opened
from hydra.ssh.hosts import SshSettings, named_hosts
from hydra.store.database import RunStore
from hydra.system import Program
from tests.integration.command import (
    Background,
    assert_all_arrived,
    assert_clocks_known,
    await_clients,
    await_window,
    background,
    events,
    hydra,
    refusal,
    table,
)
from tests.mesos.namespaces import Hosts
from tests.mesos.namespaces import hosts as network_hosts
from tests.ssh.daemons import Daemons, closed_port, keygen
from tests.suite.native_client import needs_native
from tests.suite.waiting import LONG_S, SOON_S, wait_until

pytestmark = pytest.mark.tier("test")

ANYWHERE = ("--set", "publisher.constraints=[]", "--set", "subscriber.constraints=[]")
SPREAD = (
    *("--set", 'publisher.constraints=[["hostname", "CLUSTER", "a"]]'),
    *("--set", 'subscriber.constraints=[["hostname", "UNLIKE", "a"]]'),
)
"""Publishers on a, subscribers on the others."""
FIXED = ("zmqfixed", "--implementation", "native", "--rate", 200, "--set", "warmup_s=0")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The run's name is its own on this machine, as commands find its processes by it."""
    return tmp_path / f"run-{os.getpid()}-{tmp_path.name}"


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive of the native client is made once for all tests of this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def output_of(*words: object) -> str:
    """What a command prints, run in this process."""
    done = CliRunner().invoke(cli, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@contextlib.contextmanager
def measuring(run: Path, *words: object) -> Iterator[Background]:
    with background(*FIXED, *words, "--out", run, log=run.with_name("log")) as command:
        yield command


def nothing_is_left(daemons: Daemons, within_s: float = SOON_S) -> None:
    wait_until(lambda: not daemons.left(), "nothing that is left", within_s, saw=daemons.left)


def inventory(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"[[hosts]]\n{row}\n" for row in rows))
    return path


@needs_native
def test_a_run_is_measured_on_two_hosts_and_leaves_the_programs_only(two_hosts: Daemons, run: Path) -> None:
    done = hydra(*FIXED, *SPREAD, "--clients", "2,4", "--duration", 0.5, "--hosts", "a,b", "--out", run)
    assert "copying the programs" in done.stderr
    two, four = table(run)
    for row in (two, four):
        assert row["failed_clients"] == "0"
        assert_all_arrived(row, 100)
    assert [("publisher" in text, "on a" in text) for text in events(run, Launched)] == [
        (True, True),
        (False, False),
        (False, False),
    ]
    with RunStore.open(run) as store:
        assert store.meta("master", "") == "ssh://a,b"
    nothing_is_left(two_hosts)
    for host in two_hosts.hosts.values():
        assert host.accepted() == 1
        assert [path.name for path in host.tmp.iterdir()] == [f"hydra-{os.getuid()}"]
        (program,) = (path for path in host.tmp.glob("*/*") if path.is_dir())
        assert {path.name for path in program.iterdir()} == {"bin", "complete", "hydra-run", "probe"}


@needs_native
def test_what_is_left_when_all_of_hydra_is_dead_is_listed_and_ended(two_hosts: Daemons, run: Path) -> None:
    """A killed controller ends the run; what does not end is what an administrator finds by the run's name."""
    with measuring(run, *SPREAD, "--clients", 2, "--duration", 600, "--hosts", "a,b") as command:
        await_window(run)
        (row,) = listed(run)
        assert (row["hosts"], row["folders"]) == ("a,b", 2)
        assert "no host has anything of a run 'another'" in refusal("kill", "another", "--hosts", "a,b")
        ended = output_of("kill", run.name, "--hosts", "a,b").splitlines()
        # Both hosts are this machine, so the command on one of them may end the processes of both.
        assert {line.rpartition(" on ")[2] for line in ended} in ({"a", "b"}, {"a"}, {"b"})
        assert command.wait() == 1
    assert "all hosts are lost (a, b)" in command.output()
    nothing_is_left(two_hosts)
    assert listed(run) == []


def listed(run: Path) -> list[dict[str, Any]]:
    """What ``hydra ps`` lists of a run on the hosts a and b; other tests may have runs on this machine."""
    return [row for row in json.loads(output_of("ps", "--hosts", "a,b", "--json")) if row["run"] == run.name]


@needs_native
@pytest.mark.tier("all")
def test_two_runs_on_the_same_hosts_do_not_see_each_other(two_hosts: Daemons, run: Path) -> None:
    """One is ended in the window of the other, which loses nothing."""
    other = run.with_name(f"{run.name}-other")
    flags = (*SPREAD, "--hosts", "a,b")
    with measuring(run, *flags, "--clients", 2, "--duration", 600) as ended:
        await_window(run)
        with background(*FIXED, *flags, "--clients", 4, "--duration", 12, "--out", other) as command:
            await_window(other)
            assert [row["folders"] for row in listed(other)] == [2]
            output_of("kill", run.name, "--hosts", "a,b")
            assert ended.wait() == 1
            assert [row["folders"] for row in listed(other)] in ([2], [])  # none if it is over
            assert command.wait() == 0, command.output()
    (row,) = table(other)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 2400)
    nothing_is_left(two_hosts)


@pytest.mark.tier("all")
def test_servers_and_python_clients_run_on_hosts(two_hosts: Daemons, run: Path) -> None:
    step = ("--clients", 2, "--duration", 0.5, "--rate", 200, "--set", "warmup_s=0", "--set", "server.constraints=[]")
    hydra("mqtt-fixed", "--client", "paho-mqtt", "--qos", 1, *step, *SPREAD, "--hosts", "a,b", "--out", run)
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 100)
    assert ["servers-1: a server on " in text for text in events(run, Launched)] == [True, False, False]
    nothing_is_left(two_hosts)


def test_every_host_that_cannot_be_used_is_in_one_line(two_hosts: Daemons, tmp_path: Path) -> None:
    two_hosts.configure("closed", "127.0.0.1", closed_port())
    keygen(tmp_path / "other")
    two_hosts.configure("locked", "127.0.0.1", int(port_of(two_hosts, "a")), key=tmp_path / "other")
    two_hosts.add("asks", password=True).sshd.name()
    (two_hosts.folder / "asks" / "authorized_keys").write_text("")
    two_hosts.add("unknown", known=False)
    changed = two_hosts.add("changed", known=False)
    other_key = (tmp_path / "other.pub").read_text()
    two_hosts.trust(changed.name, "127.0.0.1", int(port_of(two_hosts, "changed")), other_key)
    two_hosts.add("careless", known=False, options="StrictHostKeyChecking no")
    two_hosts.trust("careless", "127.0.0.1", int(port_of(two_hosts, "careless")), other_key)
    names = "a,closed,locked,asks,unknown,changed,careless,b,no.such.host.invalid"
    line = refusal(*FIXED, "--hosts", names, "--out", tmp_path / "run")
    assert line.startswith("7 of 9 hosts cannot be used: ")
    for reason in (
        "closed: it is not reachable (Connection refused)",
        "locked: it refuses your keys",
        "asks: it refuses your keys and asks for a password",
        "unknown: its host key is not known here",
        "changed, careless: its host key has changed",
        "no.such.host.invalid: its name cannot be resolved (",
    ):
        assert reason in line
    nothing_is_left(two_hosts)


@needs_native
@pytest.mark.tier("all")
def test_a_host_whose_address_no_server_can_bind_is_refused(daemons: Daemons, tmp_path: Path) -> None:
    """ssh reaches both over IPv6, and one has an address that no interface has."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as e:
        pytest.skip(f"no IPv6 here: {e}")
    daemons.add("six", "::1")
    daemons.configure("192.0.2.1", "::1", int(port_of(daemons, "six")))
    config = inventory(tmp_path / "c.toml", 'name = "six"', 'name = "translated"\naddress = "192.0.2.1"')
    line = refusal(*FIXED, "--master", "ssh", "--config", config, "--out", tmp_path / "run")
    assert line.startswith("2 of 2 hosts cannot be used: ")
    for name, address in (("six", "::1"), ("translated", "192.0.2.1")):
        assert f"{name}: no server or publisher could bind {address}, which is no IPv4 address of it (" in line
    nothing_is_left(daemons)


@needs_native
@pytest.mark.tier("all")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("size=64m", "its disk is full: 6"),
        ("size=300m,nr_inodes=1", "its disk is full; make room in TMPDIR there"),
        ("size=300m,nr_inodes=8", "its disk is full; make room in TMPDIR there"),
    ],
    ids=["too small", "no room for a folder", "no room for the programs"],
)
def test_a_host_with_a_full_disk_is_refused_and_nothing_is_left_on_it(
    daemons: Daemons, tmp_path: Path, options: str, reason: str
) -> None:
    tmp = str(daemons.folder / "full" / "tmp")
    mounted = in_mounts('mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"', options, tmp)
    daemons.add("a")
    full = daemons.add("full", within=mounted)
    line = refusal(*FIXED, "--hosts", "a,full", "--out", tmp_path / "run")
    assert line.startswith(f"1 of 2 hosts cannot be used: full: {reason}")
    if "size=64m" in options:  # its first facts show it
        daemons.configure("closed", "127.0.0.1", closed_port())
        line = refusal(*FIXED, "--hosts", "full,closed", "--out", tmp_path / "run")
        assert line.startswith(f"2 of 2 hosts cannot be used: full: {reason}")
        assert "; closed: it is not reachable (Connection refused); " in line
    path = Path(f"/proc/{full.sshd.pid}/root{full.tmp}")
    wait_until(lambda: not list(path.glob("hydra-run-*")), "no folder on the full disk")
    nothing_is_left(daemons)


@needs_native
@pytest.mark.tier("all")
@pytest.mark.parametrize(
    ("scenario", "lacks", "reason"),
    [
        (FIXED, "libzmq.so", "hydra-client: error while loading shared libraries: "),
        (("mqtt-fixed", "--client", "paho-mqtt"), "python3", f"it has no Python {sys.version_info[0]}."),
    ],
    ids=["library", "Python"],
)
def test_a_host_that_lacks_something_is_refused_with_its_name(
    daemons: Daemons, tmp_path: Path, scenario: tuple[object, ...], lacks: str, reason: str
) -> None:
    """Empty files, which are no programs, are in its place there."""
    (tmp_path / "empty").touch()
    python = str(Path(sys.executable).resolve().parent)  # of every host
    folders = (python, "/usr/local/bin", "/usr/bin", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib64")
    found = {str(path.resolve()) for folder in folders for path in Path(folder).glob(f"{lacks}*") if path.is_file()}
    hide = 'for each in $2; do mount --bind "$1" "$each" || exit; done; shift 2; exec "$@"'
    daemons.add("a")
    daemons.add("b", within=in_mounts(hide, str(tmp_path / "empty"), " ".join(found)))
    line = refusal(*scenario, "--hosts", "a,b", "--out", tmp_path / "run")
    assert line.startswith("1 of 2 hosts cannot be used: b: ")
    assert reason in line
    nothing_is_left(daemons)


def in_mounts(script: str, *words: str) -> list[str]:
    """The command that makes a mount namespace by a script, which executes the words that follow these."""
    if subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    return ["unshare", "--mount", "sh", "-c", script, "sh", *words]


def port_of(daemons: Daemons, name: str) -> str:
    return (daemons.folder / name / "sshd_config").read_text().split()[1]


def test_hosts_are_listed_with_their_resources_and_checked(two_hosts: Daemons, tmp_path: Path) -> None:
    config = inventory(
        tmp_path / "c.toml", 'name = "a"', 'name = "b"\nattributes = "group:big"\nresources = "cpus:64;mem:1000"'
    )
    a, b = json.loads(output_of("agents", "--master", "ssh", "--config", config, "--json"))
    assert a["resources"].startswith(f"cpus:{len(os.sched_getaffinity(0))};mem:")
    assert (b["attributes"], b["resources"]) == ("group:big", "cpus:64;mem:1000")
    flags = ("--clients", 4, "--master", "ssh", "--config", config, "--json")
    checked = json.loads(output_of("check", *FIXED[:1], *ANYWHERE, *flags))
    assert any("a, b: a process may open" in note for note in checked["notes"]) or hard_limit() >= 65_536
    # Both hosts are this machine.
    here = facts_of(MachineCheck().record)
    assert checked["machines"].keys() == {"a", "b"}
    for host in checked["machines"].values():
        assert {fact for fact in here if host["facts"][fact] != here[fact]} <= {"swap_used_bytes"}
        assert 0 <= host["others_pct"] <= 100


def hard_limit() -> int:
    return int(subprocess.run(["sh", "-c", "ulimit -Hn"], capture_output=True, text=True, check=True).stdout)


@needs_native
@pytest.mark.tier("all")
def test_servers_are_placed_where_their_program_is(daemons: Daemons, tmp_path: Path, run: Path) -> None:
    """Without flags, on hosts without attributes, of which one has no mosquitto."""
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed: apt install mosquitto")
    (tmp_path / "empty").touch()
    hidden = ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh"]
    hidden += [str(tmp_path / "empty"), program]
    if subprocess.run([*hidden, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    daemons.add("a", within=hidden)
    refused = refusal("mqtt-fixed", *FIXED[1:], "--clients", 2, "--hosts", "a", "--out", tmp_path / "none")
    assert "the host cannot take servers: a: the program mosquitto is not installed" in refused
    daemons.add("b")
    # The server is also killed and started again there.
    restart = ("--set", 'events=[{at_s=0.5,kind="restart_server",for_s=0.3}]')
    words = ("--clients", 2, "--duration", 4, *restart, "--hosts", "a,b", "--out", run)
    done = hydra("mqtt-fixed", *FIXED[1:], *words)
    assert "no servers start on a: the program mosquitto is not installed" in done.stderr
    assert "no agent has the attribute group" in done.stderr
    (row,) = table(run)
    # The server keeps nothing: what the publisher sends before a subscriber is back is lost to that subscriber.
    assert (row["failed_dead"], row["failed_silent"]) == ("0", "0")
    assert (int(row["disconnections"]), int(row["never_back"])) == (2, 0)
    assert "servers-1: a server on b" in events(run, Launched)
    nothing_is_left(daemons)


# --- faults ----------------------------------------------------------------------------------------------------------


@needs_native
@pytest.mark.tier("all")
@pytest.mark.parametrize("killed", ["controller", "driver", "controller and driver", "ssh", "supervisor"])
def test_nothing_is_left_whatever_dies(two_hosts: Daemons, run: Path, killed: str) -> None:
    with measuring(
        run, *SPREAD, "--clients", 4, "--duration", 4 if killed in ("ssh", "supervisor") else 600, "--hosts", "a,b"
    ) as command:
        await_clients(run)
        driver = next(p for p in command.family() if "hydra.ssh.driver" in p.cmdline())
        victims = {
            "ssh": next(p for p in driver.children() if "b" in p.cmdline()),
            "supervisor": supervisor_of(two_hosts, "b"),
            "driver": driver,
            "controller": command.process,
        }
        await_window(run)
        for name in reversed(killed.split(" and ")):
            victims[name].kill()
        if killed in ("ssh", "supervisor"):
            assert command.wait() == 3, command.output()
        elif killed == "driver":
            assert command.wait() == 1, command.output()
        nothing_is_left(two_hosts)
    if killed in ("ssh", "supervisor"):
        (row,) = table(run)
        assert row["failed_dead"] == "4"
        how = {"ssh": "its host is lost", "supervisor": "subscribers-2 on b"}[killed]
        assert any(how in text for text in events(run, GroupExit))


def supervisor_of(daemons: Daemons, name: str) -> psutil.Process:
    """The supervisor's main process: the parent of all others there."""
    found = [p for each in daemons.hosts[name].connections() for p in each.children() if p.name() in ("sh", "dash")]
    return found[0]


@needs_native
@pytest.mark.tier("all")
def test_a_host_that_cannot_reach_this_machine_uses_the_connection(daemons: Daemons, run: Path) -> None:
    """b is in a network whose firewall lets nothing out but what ssh has opened; its clock is known all the same."""
    if shutil.which("iptables") is None:
        pytest.skip("iptables is not installed: apt install iptables")
    ahead_s = {"a": 0, "b": 1000, "c": 3}
    with in_networks(daemons, list(ahead_s), tuple(ahead_s.values())) as network:
        closed = ("-A", "OUTPUT", "-p", "tcp", "--syn", "-d", network.here, "-j", "REJECT")
        subprocess.run(["ip", "netns", "exec", network.names[1], "iptables", *closed], check=True, capture_output=True)
        done = hydra(*FIXED, *SPREAD, "--clients", 4, "--duration", 2, "--hosts", "a,b,c", "--out", run)
        assert re.findall(r"((?:\w+, )*\w+) cannot reach this machine at", done.stderr) == ["b"]
        (row,) = table(run)
        assert row["failed_clients"] == "0"
        assert_all_arrived(row, 400)
        assert_clocks_known(run, ahead_s)
        nothing_is_left(daemons)
        # The connection with the forwarded port replaces the first one.
        assert [host.accepted() for host in daemons.hosts.values()] == [1, 2, 1]


@pytest.mark.tier("all")
def test_a_host_that_is_reached_again_is_used_again(two_hosts: Daemons, run: Path) -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    lines: list[str] = []
    programs = [Program((sleep,), {})]
    opening = Opening("ssh://a,b", (), SshSettings(), run.name, run, lambda: programs, lines.append)
    seen: list[GroupEvent] = []

    def start(engine: Engine, name: str) -> None:
        on_b = (Constraint("hostname", "LIKE", "b"),)
        engine.launch([Group(name, "subscriber", 0, 1, (sleep, "1000"), {}, Demand(), on_b)])
        await_state(engine, name, "running")

    def await_state(engine: Engine, name: str, state: str) -> None:
        def reached() -> bool:
            seen.extend(engine.events())
            return (name, state) in [(event.group, event.state) for event in seen]

        wait_until(reached, f"the group {name} that is {state}", LONG_S, saw=lambda: seen)

    with opened(opening, named_hosts("a,b", [])) as engine:
        start(engine, "before")
        for process in two_hosts.hosts["b"].connections():
            process.kill()
        await_state(engine, "before", "lost")
        assert [agent.id for agent in engine.agents()] == ["a"]
        wait_until(lambda: len(engine.agents()) == 2, "the return of b", LONG_S)
        start(engine, "after")
    # The same programs are there; others are copied.
    for more in ([], [Program(("/bin/true",), {})]):
        programs += more
        with opened(opening, named_hosts("b", [])):
            pass
    assert [re.sub(r"\d+", "N", line) for line in lines] == [
        f"copying the programs (N MB) to {to}" for to in ("a, b", "b")
    ]
    nothing_is_left(two_hosts)


@contextlib.contextmanager
def in_networks(daemons: Daemons, names: list[str], ahead_s: tuple[int, ...] = ()) -> Iterator[Hosts]:
    """Hosts with a network namespace each, and with a time namespace where one is asked for."""
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(network_hosts(len(names)))
        except (OSError, subprocess.CalledProcessError) as e:
            pytest.skip(f"no network namespaces here: {e}")
        for n, (name, address, netns) in enumerate(zip(names, network.addresses, network.names, strict=True)):
            ahead = ahead_s[n] if ahead_s else 0
            clock = (
                ["unshare", "--time", "--monotonic", str(ahead), "--boottime", str(ahead), "--fork"] if ahead else []
            )
            daemons.add(name, address, within=["nsenter", f"--net=/run/netns/{netns}", *clock])
        yield network


@needs_native
@pytest.mark.tier("all")
def test_a_host_that_vanishes_in_the_window_costs_its_clients_only(daemons: Daemons, run: Path) -> None:
    """The link is cut for good: the others are measured, and what was there ends by itself."""
    with in_networks(daemons, ["a", "b", "c"], (0, 0, 1000)) as network:
        with measuring(run, *SPREAD, "--clients", 4, "--duration", 3, "--hosts", "a,b,c") as command:
            await_window(run)
            subprocess.run(["ip", "link", "set", network.links[2], "down"], check=True)
            assert command.wait() == 3, command.output()
            (row,) = table(run)
            assert (row["clients"], row["failed_clients"]) == ("4", "2")
        nothing_is_left(daemons, 90)


@needs_native
@pytest.mark.tier("all")
def test_a_link_that_is_cut_for_a_moment_ends_nothing(daemons: Daemons, run: Path) -> None:
    with in_networks(daemons, ["a", "b"]) as network:
        with measuring(run, *SPREAD, "--clients", "2,3", "--duration", 5, "--hosts", "a,b") as command:
            await_window(run)
            subprocess.run(["ip", "link", "set", network.links[1], "down"], check=True)
            back = time.monotonic() + 2
            wait_until(lambda: time.monotonic() > back, "two seconds")
            subprocess.run(["ip", "link", "set", network.links[1], "up"], check=True)
            assert command.wait() in (0, 3), command.output()
        assert [row["failed_dead"] for row in table(run)] == ["0", "0"]
        nothing_is_left(daemons)
