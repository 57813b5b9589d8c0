"""What ssh and the hosts report, as a reason and a remedy; and all hosts in one line."""

from __future__ import annotations

import pytest

from hydra.model import Resources
from hydra.ssh.facts import HostFacts, advice, agent_of, data_address, here, host_facts, unusable
from hydra.ssh.failures import HostFailure, failure, refusal
from hydra.ssh.hosts import HostEntry

BANNER = "*** Permission is granted to those who may ***\n"
CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("text", "why", "remedy"),
    [
        ("ssh: connect to host b port 22: Connection refused", "not reachable (Connection refused)", "ssh HOST true"),
        ("ssh: connect to host b port 22: No route to host\r\n", "not reachable (No route to host)", "ssh HOST true"),
        ("Connection timed out during banner exchange", "not reachable (Connection timed out during", ""),
        ("kex_exchange_identification: read: Connection reset by peer", "not reachable (read: Connection reset", ""),
        ("Connection closed by 10.0.0.2 port 22", "not reachable (Connection closed by 10.0.0.2", ""),
        ("ssh: Could not resolve hostname b: Name or service not known", "be resolved (Name or", "address"),
        (BANNER + "root@b: Permission denied (publickey).", "refuses your keys", "ssh-copy-id"),
        ("root@b: Permission denied (publickey,password).", "asks for a password", "ssh-copy-id"),
        ("root@b: Permission denied (publickey,keyboard-interactive).", "asks for a password", "ssh-add"),
        ("Received disconnect from 10.0.0.2 port 22:2: Too many authentication failures", "too many", "IdentitiesOnly"),
        (CHANGED, "its host key has changed", "ssh-keygen -R HOST"),
        ("No host key is known for b.\nHost key verification failed.", "not known here", "fingerprint"),
        ("Timeout, server 10.0.0.2 not responding.", "silent for 30 s", ""),
        ("client_loop: send disconnect: Broken pipe\r\n", "broke (client_loop: send disconnect: Broken pipe)", ""),
        ("Connection to b closed by remote host.", "broke (Connection to b closed by remote host)", "network"),
        ("Error: remote port forwarding failed for listen port 0", "allows no forwarded port", "AllowTcpForwarding"),
        ("config: line 3: Bad configuration option: hostnam", "configuration (hostnam)", "~/.ssh/config"),
        ("mktemp: failed to create directory: No space left on device", "disk is full", "TMPDIR"),
        ("srun: Job step aborted\nsrun: error: n2: task 0: Killed\n", "Slurm ended its step there (Killed)", "squeue"),
        ("srun: error: Unable to create step for job 7: Invalid job id", "Unable to create step", "salloc"),
        ("This account is currently not available.", "status 1: This account is currently not available.", ""),
    ],
)  # fmt: skip
def test_what_ssh_says_is_a_reason_and_a_remedy(text: str, why: str, remedy: str) -> None:
    found = failure(text, 1)
    assert why in found.why
    assert remedy in found.remedy


def test_a_connection_that_says_nothing_has_its_status() -> None:
    assert failure("", 137).why == "the connection ended with status 137"
    assert failure("").why == "the connection ended"


def test_one_line_names_every_host_that_failed() -> None:
    absent = HostFailure("it is not reachable (Connection refused)", "try ssh HOST true")
    error = refusal({"b": absent, "d": HostFailure("its disk is full"), "c": absent}, 6)
    assert str(error) == (
        "3 of 6 hosts cannot be used: b, c: it is not reachable (Connection refused); "
        "d: its disk is full; try ssh b true"
    )


# --- what hosts report -----------------------------------------------------------------------------------------------

GOOD = HostFacts(
    "x86_64", 4, 8000, 5000, "/tmp", 1024, "/usr/bin/python3.11", ("10.0.0.2", "127.0.0.1"), ("10.0.0.9", "10.0.0.2")
)


def facts(**changed: object) -> HostFacts:
    return HostFacts(**{**{f: getattr(GOOD, f) for f in GOOD.__slots__}, **changed})


def test_the_words_of_a_supervisor_are_facts() -> None:
    reported = {
        "machine": "x86_64", "cpus": "4", "mem": "8000", "disk": "5000", "folder": "/tmp", "nofile": "1024",
        "python": "/usr/bin/python3.11", "addresses": "10.0.0.2 127.0.0.1 ", "connection": "10.0.0.9 5555 10.0.0.2 22",
        "listening": "7918 0016 ", "archive": "kept",
    }  # fmt: skip
    assert host_facts(reported) == facts(listening=(22, 31000), archive=True)
    assert host_facts({"nofile": "unlimited", "cpus": ""}) == HostFacts(folder="")


@pytest.mark.parametrize(
    ("host", "changed", "why"),
    [
        (HostEntry("b"), {}, ""),
        (HostEntry("b", "10.0.0.2"), {"connection": ("", "")}, ""),
        (HostEntry("b"), {"machine": "aarch64"}, "machine type is aarch64"),
        (HostEntry("b"), {"disk": 12.0}, "disk is full: 12 MB are free in /tmp"),
        (HostEntry("b", "10.9.9.9"), {"connection": ("", "")}, "could bind 10.9.9.9"),
        (HostEntry("b"), {"connection": ("fe80::1", "fe80::2")}, "could bind fe80::2"),
    ],
)
def test_a_host_that_no_run_can_use_is_named_with_what_it_lacks(
    host: HostEntry, changed: dict[str, object], why: str
) -> None:
    found = unusable({"b": host}, {"b": facts(**changed)}, "x86_64")
    assert [why in each.why and bool(each.remedy) for each in found.values()] == [True] * bool(why)


def test_the_address_for_other_hosts_is_the_one_given_or_where_the_connection_arrived() -> None:
    assert data_address(HostEntry("b"), GOOD) == "10.0.0.2"
    assert data_address(HostEntry("b", "127.0.0.1"), GOOD) == "127.0.0.1"
    assert data_address(HostEntry("b", "gateway"), GOOD) == "10.0.0.2"


def test_a_host_behind_a_tunnel_is_alone_unless_all_are() -> None:
    hosts = {name: HostEntry(name) for name in "abc"}
    tunnel, full = facts(connection=("127.0.0.1", "127.0.0.1")), facts(disk=12.0)
    found = unusable(hosts, {"a": GOOD, "b": tunnel, "c": full}, "x86_64")
    assert {name: each.why[:15] for name, each in found.items()} == {"b": "other hosts can", "c": "its disk is ful"}
    assert list(unusable(hosts, {"a": tunnel, "b": tunnel, "c": full}, "x86_64")) == ["c"]


def test_this_machine_is_what_most_hosts_see() -> None:
    seen = [facts(connection=(each, "10.0.0.2")) for each in ("10.0.0.8", "10.0.0.9", "10.0.0.9", "fe80::1")]
    assert here(seen) == ["10.0.0.9", "10.0.0.8"]


def test_an_agent_has_what_its_host_has_or_what_the_file_says_without_ports_in_use() -> None:
    own = agent_of(HostEntry("b"), GOOD, 60)
    assert own.resources == Resources(4, 8000, 5000, ((20000, 20199),))
    assert agent_of(HostEntry("b"), GOOD, 61).resources.ports == ((20200, 20399),)
    given = HostEntry("b", attributes={"group": "big"}, resources=Resources(2, 100, ports=((31000, 31003),)))
    agent = agent_of(given, facts(listening=(31001,)), 7)
    assert (agent.attributes, agent.resources) == (
        {"group": "big"},
        Resources(2, 100, ports=((31000, 31000), (31002, 31003))),
    )


def test_a_check_names_hosts_that_limit_runs() -> None:
    lines = advice(
        {"a": facts(nofile=None), "b": facts(python=""), "c": facts(nofile=100_000, python="")}, "python3.11"
    )
    assert [line.partition(":")[0] for line in lines] == ["b, c", "b"]
