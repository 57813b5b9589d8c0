"""Which hosts a run has, and how ssh is called for each."""

from __future__ import annotations

import pytest

from hydra.model import Resources
from hydra.ssh.hosts import HostEntry, declared_hosts, named_hosts, slurm_nodes

DECLARED = HostEntry("b", "10.0.0.2", "bench", 2222, {"group": "big"}, Resources(cpus=4))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", [HostEntry("a")]),
        ("a, c.example.com", [HostEntry("a"), HostEntry("c.example.com")]),
        ("me@a:2200", [HostEntry("a", user="me", port=2200)]),
        ("a,b", [HostEntry("a"), DECLARED]),
        ("me@b", [HostEntry("b", user="me")]),
    ],
)
def test_hosts_are_named_by_flags_and_known_from_the_cluster_file(text: str, hosts: list[HostEntry]) -> None:
    assert named_hosts(text, [DECLARED]) == hosts


@pytest.mark.parametrize("text", ["", "a,", "-oProxyCommand=x", "a b", "a:99999", "a,a", "me@a,a"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host"):
        named_hosts(text, [])


def test_a_table_of_the_cluster_file_is_a_host() -> None:
    row = {
        "name": "b",
        "address": "10.0.0.2",
        "user": "bench",
        "port": 2222,
        "attributes": "group:big",
        "resources": "cpus:4",
    }
    assert declared_hosts([row, {"name": "c"}]) == [DECLARED, HostEntry("c")]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{}], r"hosts\.0\.name must have letters"),
        ([{"name": "a"}, {"name": "a"}], r"hosts\.1\.name is a, which another host has"),
        ([{"name": "a", "user": "-l"}], r"hosts\.0\.user must have letters"),
        ([{"name": "a", "port": "22"}], r"hosts\.0\.port must be a whole number"),
        ([{"name": "a", "port": 70000}], r"hosts\.0\.port must be 1 to 65535"),
        ([{"name": "a", "key": "x"}], r"hosts\.0\.key is no key of a host"),
        ([{"name": "a", "resources": "cpus"}], r"hosts\.0\.resources: 'cpus' is not a resource"),
    ],
)
def test_a_mistake_in_a_table_is_named_by_its_key(rows: list[dict[str, object]], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        declared_hosts(rows)


def test_ssh_is_asked_for_one_connection_of_its_own_that_asks_nothing() -> None:
    words = DECLARED.command(["/bin/sh", "-c", "echo it's"])
    assert words[:2] == ["ssh", "-T"]
    assert {"BatchMode=yes", "ControlPath=none", "ClearAllForwardings=yes"} <= set(words)
    assert words[words.index("-l") :] == [
        "-l",
        "bench",
        "-p",
        "2222",
        "--",
        "10.0.0.2",
        "exec /bin/sh -c 'echo it'\"'\"'s'",
    ]


def test_a_forwarded_port_leads_to_this_machine() -> None:
    words = HostEntry("a").command(["true"], forwarded_to=4711)
    assert words[words.index("-R") + 1] == "127.0.0.1:0:127.0.0.1:4711"
    assert "ClearAllForwardings=yes" not in words  # that would clear this one as well


def test_the_nodes_of_an_allocation_are_hosts_with_their_features() -> None:
    text = (
        "NodeName=n1 Arch=x86_64 CPUTot=4 ActiveFeatures=fast,ib NodeAddr=10.1.0.1 NodeHostName=n1 State=MIXED\n"
        "NodeName=n2 Arch=x86_64 CPUTot=4 ActiveFeatures=(null) NodeAddr=10.1.0.2 NodeHostName=n2 State=MIXED\n"
    )
    first, second = slurm_nodes(text)
    assert first == HostEntry("n1", "10.1.0.1", attributes={"fast": "yes", "ib": "yes"}, via="srun")
    assert second == HostEntry("n2", "10.1.0.2", via="srun")
    words = first.command(["/bin/sh"])
    assert (words[:2], words[-2:]) == (["srun", "--overlap"], ["--nodelist=n1", "/bin/sh"])
