"""The record of a machine from its files, and the judgement of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydra.client.kernel_files import read_texts
from hydra.config.machine_judgement import judged, judged_others, lines_by_host
from hydra.config.scenario import resolve
from hydra.measure.machine_facts import UNKNOWN, changes, compared_facts, facts_of, group_files, record_of
from hydra.model import FactChange, InterfaceRecord, MachineRecord, format_cpus, parse_cpus
from tests.machine.trees import machine, texts_of, unpacked

FACTS = {
    "bare-metal-intel": {
        "cpu_model": "Intel(R) Xeon(R) E-2276G CPU @ 3.80GHz",
        "cpus": "0-7",
        "allowed": "0-2,4-6",
        "cpuset": UNKNOWN,
        "cores": "4, 4 of them with several CPUs",
        "nodes": "0-7",
        "isolated": "3,7",
        "quota_cpus": "none",
        "driver": "intel_pstate",
        "governor": "powersave",
        "preference": "balance_performance",
        "boost": "yes",
        "frequency_mhz": "800 to 4900",
        "hypervisor": "none",
        "mitigations": "1 in use, without one: mds, spectre_v2; mitigations=off",
        "swap_used_bytes": "537915392",
        "transparent_huge_pages": "always",
        "huge_pages": "512",
        "rmem_max": "212992",
        "congestion_control": "cubic",
        "interfaces": "eno1: 10000 Mbit/s, 4 receive and 4 send queues",
    },
    "bare-metal-amd": {
        "cpus": "0-7",
        "cores": "8, each with one CPU",
        "nodes": "0-3; 4-7",
        "isolated": "none",
        "quota_cpus": UNKNOWN,
        "driver": "amd-pstate-epp",
        "governor": "performance, powersave",
        "boost": "yes",
        "hypervisor": "none",
        "huge_pages": UNKNOWN,
        "tcp_rmem_max": "1048576",
        "interfaces": UNKNOWN,
    },
    "virtual-machine": {
        "cpu_model": "AMD EPYC",
        "cpus": "0-1",
        "cpuset": "0-1",
        "cores": "2, each with one CPU",
        "quota_cpus": "none",
        "governor": UNKNOWN,
        "boost": UNKNOWN,
        "frequency_mhz": UNKNOWN,
        "hypervisor": "KVM",
        "swap_used_bytes": "0",
        "interfaces": "eth0: speed not known, 1 receive and 1 send queues",
    },
    "container": {
        "cpus": "0-7",
        "allowed": "1-3,5-7",
        "cpuset": "1-3,5-7",
        "quota_cpus": "1.5",
        "hypervisor": "Amazon EC2",
        "mitigations": UNKNOWN,
        "clock_source": "kvm-clock",
        "interfaces": "eth0: 10000 Mbit/s, 1 receive and 1 send queues",
    },
}


@pytest.mark.parametrize("name", FACTS)
def test_the_record_of_a_machine(name: str, tmp_path: Path) -> None:
    facts = facts_of(machine(name, tmp_path))
    assert {fact: facts[fact] for fact in FACTS[name]} == FACTS[name]


@pytest.mark.parametrize(
    ("name", "judgements"),
    {
        "bare-metal-intel": {"governor", "boost", "cores", "isolated", "swap_used_bytes", "transparent_huge_pages"},
        "bare-metal-amd": {"governor", "boost", "nodes", "tcp_rmem_max"},
        "virtual-machine": {"hypervisor"},
        "container": {"quota_cpus", "cpuset", "cores", "hypervisor"},
    }.items(),
)
def test_what_is_judged_on_a_machine(name: str, judgements: set[str], tmp_path: Path) -> None:
    found = judged(machine(name, tmp_path))
    assert {judgement.fact for judgement in found} == judgements
    assert all(judgement.text and judgement.remedy for judgement in found)


def test_nothing_is_known_of_an_empty_folder_and_nothing_is_judged(tmp_path: Path) -> None:
    record = record_of(texts_of(tmp_path))
    assert record == MachineRecord()
    assert set(facts_of(record).values()) == {UNKNOWN}
    assert judged(record) == []


def test_other_processes_are_judged_from_5_percent_on() -> None:
    assert judged_others(5.0, {"make": 5.0}) == []
    (judgement,) = judged_others(5.1, {"make": 4.0, "sshd": 1.1})
    assert "make 4 %, sshd 1 %" in str(judgement)


@pytest.mark.parametrize(
    ("scenario", "set_", "judgements"),
    [
        ("zmqfixed", {"client": "native", "native.rcvbuf": 8_000_000}, {"rmem_max"}),
        ("zmqfixed", {"client": "native", "native.sndbuf": 212_992}, set()),
        ("kafka-fixed", {"kafka.properties": {"send.buffer.bytes": "1000000"}}, {"wmem_max"}),
        ("kafka-fixed", {"kafka.properties": {"socket.receive.buffer.bytes": "0"}}, set()),
        ("nats-fixed", {}, set()),
    ],
)
def test_a_socket_buffer_that_the_kernel_does_not_give_is_judged(
    scenario: str, set_: dict[str, object], judgements: set[str], tmp_path: Path
) -> None:
    resolved = resolve(scenario, set_)
    record = machine("bare-metal-intel", tmp_path)
    found = judged(record, resolved.system.resources.socket_buffers(resolved.scenario))
    assert {each.fact for each in found} - {each.fact for each in judged(record)} == judgements


def test_hosts_with_the_same_judgement_are_named_together() -> None:
    (busy,), (busier,) = judged_others(9.0, {"make": 9.0}), judged_others(20.0, {"make": 20.0})
    assert lines_by_host({"a": [busy], "b": [busier], "c": [busy]}) == [f"a, c: {busy}", f"b: {busier}"]


def test_control_groups_are_read_with_their_parents_and_none_outside() -> None:
    assert group_files({"/proc/self/cgroup": "0::/a/b\n"})[::3] == (
        *("/sys/fs/cgroup/a/b/cpu.max", "/sys/fs/cgroup/a/cpu.max", "/sys/fs/cgroup/cpu.max"),
    )
    assert group_files({"/proc/self/cgroup": "0::/../../etc\n"})[0] == "/sys/fs/cgroup/cpu.max"
    assert group_files({"/proc/self/cgroup": "4:cpu,cpuacct:/x\n3:cpuset:/\n"}) == (
        *(f"/sys/fs/cgroup/cpu/x/{name}" for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat")),
        *(f"/sys/fs/cgroup/cpu/{name}" for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat")),
        "/sys/fs/cgroup/cpuset/cpuset.effective_cpus",
    )
    assert group_files({}) == ()


def test_a_change_of_the_machine_is_found_but_none_of_what_changes_by_itself(tmp_path: Path) -> None:
    before = machine("bare-metal-intel", tmp_path)
    assert changes(before, replace(before, swap_used_bytes=0, allowed=(0,), memory_bytes=1, interfaces={})) == ()
    assert changes(before, replace(before, governor="performance", boost=None)) == (
        FactChange("governor", "powersave", "performance"),
        FactChange("boost", "yes", UNKNOWN),
    )
    slower = {"eno1": InterfaceRecord(1000, 4, 4), "tun7": InterfaceRecord(10, 1, 1)}
    assert changes(before, replace(before, huge_pages=0, interfaces=slower)) == (
        FactChange("huge_pages", "512", "0"),
        FactChange("interfaces.eno1", "10000 Mbit/s", "1000 Mbit/s"),
    )


def test_hosts_of_other_names_are_compared_by_all_values_of_a_fact(tmp_path: Path) -> None:
    one = machine("bare-metal-intel", tmp_path)
    several, alone = compared_facts([{"a": one, "b": replace(one, governor="performance"), "c": one}, {"d": one}])
    assert (several["governor"], several["driver"]) == ("performance / powersave", "intel_pstate")
    assert (alone["governor"], alone["memory_bytes"], alone["huge_pages"]) == ("powersave", "67108864000", "512")
    assert "swap_used_bytes" not in alone


def test_only_files_of_the_kernel_are_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("secret")
    root = unpacked("virtual-machine", tmp_path)
    assert read_texts(["/etc/passwd", "/proc/../etc/passwd", "etc/passwd", "/sys/*/../etc/passwd"], 10, root) == {}
    assert read_texts(["/proc/sys/kernel/os*"], 3, root) == {"/proc/sys/kernel/osrelease": "6.1"}
    assert read_texts(["/proc/cmdline", "/proc/none"], 3, root, skipped={"/proc/cmdline"}) == {}


@pytest.mark.parametrize(("text", "cpus"), [("", ()), ("3", (3,)), ("0-2,8", (0, 1, 2, 8)), (" 4-5,0 ", (0, 4, 5))])
def test_a_list_of_cpus(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus
    assert parse_cpus(format_cpus(cpus)) == cpus


@pytest.mark.parametrize("text", ["a", "1,,2", "3-1", "-1", "1-", "9999", "1;2"])
def test_a_text_that_is_no_list_of_cpus(text: str) -> None:
    with pytest.raises(ValueError, match="no list of CPUs"):
        parse_cpus(text)
