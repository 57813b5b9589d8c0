"""The record of a machine from the texts of the kernel's files, its facts as texts, and which of them differ. Pure.

:mod:`hydra.client.kernel_files` reads the files of :data:`RECORD_FILES`, and then those that :func:`group_files` adds;
on another host, a relay reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final

from hydra.model import FactChange, InterfaceRecord, MachineRecord, format_cpus, parse_cpus

Texts = Mapping[str, str]
"""Texts of files by their path."""

CPUS: Final = "/sys/devices/system/cpu"
POLICIES: Final = f"{CPUS}/cpufreq/policy*"
"""The folder of the CPUs, and the folders with the frequency of each core."""
_CGROUPS: Final = "/sys/fs/cgroup"
_CLOCK: Final = "/sys/devices/system/clocksource/clocksource0"
_NET: Final = "/sys/class/net"

FILE_BYTES: Final = 4096
"""The most bytes of each file: of /proc/cpuinfo, the first CPU."""
MEMORY_FILE: Final = "/proc/meminfo"
"""The file with the memory and the use of the swap space."""
RECORD_FILES: Final = (
    *("/proc/cpuinfo", "/proc/cmdline", MEMORY_FILE, "/proc/self/status", "/proc/self/cgroup"),
    *("/proc/sys/kernel/osrelease", "/proc/sys/vm/nr_hugepages", "/proc/sys/net/ipv4/tcp_congestion_control"),
    *("/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"),
    *("/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"),
    *(f"{CPUS}/online", f"{CPUS}/isolated", f"{CPUS}/cpu[0-9]*/topology/thread_siblings_list"),
    *(f"{POLICIES}/scaling_driver", f"{POLICIES}/scaling_governor", f"{POLICIES}/energy_performance_preference"),
    *(f"{POLICIES}/scaling_min_freq", f"{POLICIES}/scaling_max_freq"),
    *(f"{CPUS}/cpufreq/boost", f"{CPUS}/intel_pstate/no_turbo", f"{CPUS}/vulnerabilities/*"),
    *("/sys/devices/system/node/node[0-9]*/cpulist", "/sys/kernel/mm/transparent_hugepage/enabled"),
    *(f"{_CLOCK}/current_clocksource", f"{_CLOCK}/available_clocksource"),
    *("/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"),
    *(f"{_NET}/*/speed", f"{_NET}/*/queues/rx-*/rps_cpus", f"{_NET}/*/queues/tx-*/tx_timeout"),
    *(f"{_NET}/*/bridge/root_id", f"{_NET}/*/brport/state", f"{_NET}/*/device/uevent"),
)
"""The files of the record of a machine."""
_VIRTUAL: Final = ("lo", "veth", "br-", "cali", "cni", "flannel", "lxc", "ifb", "tap", "tun", "dummy")
"""The beginnings of the names of interfaces that exist for single containers, or have no link."""


def group_files(texts: Texts) -> tuple[str, ...]:
    """The files of the control groups that the read ``/proc/self/cgroup`` names, and of their parents.

    A container may show its own control group as the root, whatever that file contains; so the root is read, too.
    """
    found: dict[str, None] = {}
    for line in texts.get("/proc/self/cgroup", "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for folder in _with_parents(path):
            if not controllers:
                names = ("cpu.max", "cpu.stat", "cpuset.cpus.effective")
                found |= dict.fromkeys(f"{_CGROUPS}{folder}/{name}" for name in names)
            if "cpu" in controllers.split(","):
                names = ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat")
                found |= dict.fromkeys(f"{_CGROUPS}/cpu{folder}/{name}" for name in names)
            if "cpuset" in controllers.split(","):
                found[f"{_CGROUPS}/cpuset{folder}/cpuset.effective_cpus"] = None
    return tuple(found)


def _with_parents(path: str) -> list[str]:
    """A control group's path and those of its parents, the deepest first; the root is ""."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts:
        return [""]  # the group lies outside of what this process sees
    return ["".join(f"/{part}" for part in parts[:depth]) for depth in range(len(parts), -1, -1)]


def record_of(texts: Texts) -> MachineRecord:
    """The record of the machine whose files have these texts; a fact whose file is missing is None."""
    status = _fields(texts.get("/proc/self/status", ""))
    memory = _fields(texts.get(MEMORY_FILE, ""))
    return MachineRecord(
        kernel=_line(texts, "/proc/sys/kernel/osrelease"),
        cpu_model=_cpu_model(texts.get("/proc/cpuinfo", "")),
        cpus=_cpus(texts.get(f"{CPUS}/online")),
        allowed=_cpus(status.get("Cpus_allowed_list")),
        cpuset=_cpuset(texts),
        cores=_sets(texts, rf"{CPUS}/cpu\d+/topology/thread_siblings_list"),
        nodes=_sets(texts, r"/sys/devices/system/node/node\d+/cpulist"),
        isolated=_cpus(texts.get(f"{CPUS}/isolated")),
        quota_cpus=_quota_cpus(texts),
        driver=_common(texts, "scaling_driver"),
        governor=_common(texts, "scaling_governor"),
        preference=_common(texts, "energy_performance_preference"),
        boost=_boost(texts),
        frequency_mhz=_frequency_mhz(texts),
        hypervisor=_hypervisor(texts),
        mitigations=_mitigations(texts),
        clock_source=_line(texts, f"{_CLOCK}/current_clocksource"),
        memory_bytes=_kibibytes(memory.get("MemTotal")),
        swap_used_bytes=swap_used_bytes(texts),
        transparent_huge_pages=_selected(texts.get("/sys/kernel/mm/transparent_hugepage/enabled", "")),
        huge_pages=whole_number(texts.get("/proc/sys/vm/nr_hugepages")),
        rmem_max=whole_number(texts.get("/proc/sys/net/core/rmem_max")),
        wmem_max=whole_number(texts.get("/proc/sys/net/core/wmem_max")),
        tcp_rmem_max=_last_number(texts.get("/proc/sys/net/ipv4/tcp_rmem")),
        tcp_wmem_max=_last_number(texts.get("/proc/sys/net/ipv4/tcp_wmem")),
        congestion_control=_line(texts, "/proc/sys/net/ipv4/tcp_congestion_control"),
        interfaces=_interfaces(texts),
    )


def swap_used_bytes(texts: Texts) -> int | None:
    """The size in bytes of the used swap space; None: not known."""
    memory = _fields(texts.get(MEMORY_FILE, ""))
    whole, free = (_kibibytes(memory.get(name)) for name in ("SwapTotal", "SwapFree"))
    return None if whole is None or free is None else whole - free


# --- single facts -----------------------------------------------------------------------------------------------------


def _line(texts: Texts, path: str) -> str | None:
    return texts.get(path, "").strip() or None


def whole_number(text: str | None) -> int | None:
    """The number that a file contains; None: it contains none."""
    word = (text or "").strip()
    return int(word) if word.isascii() and word.isdigit() else None


def _last_number(text: str | None) -> int | None:
    return whole_number((text or "").split()[-1]) if (text or "").split() else None


def _fields(text: str) -> dict[str, str]:
    """The lines ``NAME: value`` of a text."""
    parts = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in parts if colon}


def _kibibytes(text: str | None) -> int | None:
    """A size such as ``1234 kB`` in bytes."""
    number = whole_number((text or "").removesuffix("kB"))
    return None if number is None else number * 1024


def _cpus(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else parse_cpus(text)
    except ValueError:
        return None


def _sets(texts: Texts, path: str) -> tuple[tuple[int, ...], ...] | None:
    """The different sets of CPUs in the files of this kind, in ascending order."""
    found = {_cpus(text) for name, text in texts.items() if re.fullmatch(path, name)}
    return tuple(sorted(each for each in found if each)) or None


def _cpu_model(cpuinfo: str) -> str | None:
    # ARM's kernels show numbers in place of a name.
    known = _fields(cpuinfo)
    by = known.get("CPU implementer")
    arm = f"ARM implementer {by} part {known.get('CPU part', 'unknown')}" if by else None
    return known.get("model name") or known.get("cpu model") or arm


def _common(texts: Texts, name: str) -> str | None:
    """The value that the cores share in this file of their frequency policy, or all their values."""
    values = {text.strip() for path, text in texts.items() if re.fullmatch(rf"{CPUS}/cpufreq/policy\d+/{name}", path)}
    return ", ".join(sorted(values - {""})) or None


def _boost(texts: Texts) -> bool | None:
    no_turbo = whole_number(texts.get(f"{CPUS}/intel_pstate/no_turbo"))
    boost = whole_number(texts.get(f"{CPUS}/cpufreq/boost"))
    if no_turbo is not None:
        return no_turbo == 0
    return None if boost is None else boost != 0


def _frequency_mhz(texts: Texts) -> tuple[int, int] | None:
    low, high = (
        [khz for path, text in texts.items() if path.endswith(name) and (khz := whole_number(text)) is not None]
        for name in ("/scaling_min_freq", "/scaling_max_freq")
    )
    return (min(low) // 1000, max(high) // 1000) if low and high else None


def _groups(texts: Texts, name: str) -> Iterator[str]:
    """The texts of the control groups' files with this name, those of the deepest group first."""
    found = (path for path in texts if path.startswith(_CGROUPS) and path.endswith(f"/{name}"))
    yield from (texts[path] for path in sorted(found, key=lambda path: -path.count("/")))


def _cpuset(texts: Texts) -> tuple[int, ...] | None:
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus"):
        for text in _groups(texts, name):
            if found := _cpus(text):
                return found
    return None


def _quota_cpus(texts: Texts) -> float | None:
    """The smallest quota of all control groups; 0: there is none; None: no control group shows one."""
    quotas = []
    for text in _groups(texts, "cpu.max"):
        quota, period = [*text.split(), "", ""][:2]
        quotas.append(int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else 0.0)
    periods = _groups(texts, "cpu.cfs_period_us")
    for text, period_text in zip(_groups(texts, "cpu.cfs_quota_us"), periods, strict=False):
        quota_us, period_us = whole_number(text), whole_number(period_text)
        quotas.append(quota_us / period_us if quota_us and period_us else 0.0)
    return min((quota for quota in quotas if quota), default=0.0) if quotas else None


_BY_CLOCK: Final = {"kvm": "KVM", "hyperv": "Hyper-V", "xen": "Xen"}
_BY_VENDOR: Final = {
    "QEMU": "KVM",
    "VMware": "VMware",
    "innotek": "VirtualBox",
    "Amazon EC2": "Amazon EC2",
    "Google": "Google Compute Engine",
    "Microsoft": "Hyper-V",
    "Xen": "Xen",
    "Parallels": "Parallels",
    "OpenStack": "OpenStack",
    "DigitalOcean": "DigitalOcean",
}


def _hypervisor(texts: Texts) -> str | None:
    """The hypervisor: "" on bare metal; None if the CPU's flags are not known."""
    cpuinfo = _fields(texts.get("/proc/cpuinfo", ""))
    flags = cpuinfo.get("flags", "").split()
    vendor = " ".join(filter(None, (_line(texts, f"/sys/class/dmi/id/{n}") for n in ("sys_vendor", "product_name"))))
    if flags and "hypervisor" not in flags:
        return ""
    clocks = texts.get(f"{_CLOCK}/available_clocksource", "")
    named = next((name for word, name in _BY_VENDOR.items() if word in vendor), "")
    named = named or next((name for word, name in _BY_CLOCK.items() if word in clocks), "")
    named = named or (_line(texts, "/sys/hypervisor/type") or "").capitalize()
    if flags:
        return named or "unknown"
    # ARM's flags do not show a hypervisor.
    return named or None


def _mitigations(texts: Texts) -> str | None:
    options = [word for word in texts.get("/proc/cmdline", "").split() if word.startswith("mitigations=")]
    folder = f"{CPUS}/vulnerabilities/"
    found = {path.removeprefix(folder): text.strip() for path, text in texts.items() if path.startswith(folder)}
    if not found:
        return options[-1] if options else None
    open_ = sorted(name for name, text in found.items() if text.startswith("Vulnerable"))
    mitigated = sum(text.startswith("Mitigation") for text in found.values())
    without = f", without one: {', '.join(open_)}" if open_ else ""
    return "; ".join([f"{mitigated} in use{without}", *options[-1:]])


def _selected(text: str) -> str | None:
    """The word in brackets, which is the selected one."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None


def _interfaces(texts: Texts) -> dict[str, InterfaceRecord]:
    names = {path.removeprefix(f"{_NET}/").split("/")[0] for path in texts if path.startswith(f"{_NET}/")}
    return {
        name: InterfaceRecord(
            # A driver that does not know the speed of a link shows -1.
            whole_number(texts.get(f"{_NET}/{name}/speed")) or None,
            *(sum(path.startswith(f"{_NET}/{name}/queues/{way}-") for path in texts) for way in ("rx", "tx")),
        )
        for name in sorted(names)
        if not name.startswith(_VIRTUAL) and not _of_a_bridge(texts, f"{_NET}/{name}")
    }


def _of_a_bridge(texts: Texts, folder: str) -> bool:
    """Whether an interface is a bridge, or a port of a bridge but no device: both come and go with containers."""
    return f"{folder}/bridge/root_id" in texts or (
        f"{folder}/brport/state" in texts and f"{folder}/device/uevent" not in texts
    )


UNKNOWN: Final = "not known here"
_OF_A_MOMENT: Final = ("allowed", "swap_used_bytes")
"""Facts of one reading, not of the machine: Hydra may pin its own processes, and swap space is in use or not."""
_VARYING: Final = (*_OF_A_MOMENT, "memory_bytes", "interfaces")
"""Facts that change by themselves: a hypervisor lends a virtual machine more memory, and containers get interfaces."""


def facts_of(record: MachineRecord) -> dict[str, str]:
    """The facts of a machine as texts, by the name of the field; interfaces are one text."""
    facts = {each.name: _text(getattr(record, each.name)) for each in fields(record)}
    if record.frequency_mhz is not None:
        facts["frequency_mhz"] = f"{record.frequency_mhz[0]} to {record.frequency_mhz[1]}"
    facts["cores"] = UNKNOWN if record.cores is None else _cores(record.cores)
    if record.quota_cpus == 0:
        facts["quota_cpus"] = "none"
    if record.hypervisor == "":
        facts["hypervisor"] = "none"
    facts["interfaces"] = (
        "; ".join(f"{name}: {_interface(interface)}" for name, interface in record.interfaces.items()) or UNKNOWN
    )
    return facts


def compared_facts(runs: Sequence[Mapping[str, MachineRecord]]) -> list[Mapping[str, object]]:
    """The facts of the machines of several runs, for a comparison of the runs.

    If all runs have the same hosts, and several, each run has the facts of each host by its name. Otherwise each fact
    has all values that the hosts of the run have.

    Args:
        runs: the record of each host, by its name, of each run.
    """
    compared = [{host: _facts_to_compare(record) for host, record in run.items()} for run in runs]
    if len(compared[0]) > 1 and all(run.keys() == compared[0].keys() for run in compared):
        return list(compared)
    return [_joined(run.values()) for run in compared]


def _facts_to_compare(record: MachineRecord) -> dict[str, str]:
    return {name: text for name, text in facts_of(record).items() if name not in _OF_A_MOMENT}


def _joined(hosts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for facts in hosts:
        for name, text in facts.items():
            found.setdefault(name, set()).add(text)
    return {name: " / ".join(sorted(texts)) for name, texts in found.items()}


def changes(before: MachineRecord, after: MachineRecord) -> tuple[FactChange, ...]:
    """The facts that changed between two records of one machine, without those that change by themselves.

    Of its interfaces, only the speeds of those that both records have are compared.
    """
    earlier, later = facts_of(before), facts_of(after)
    found = [
        FactChange(name, earlier[name], later[name])
        for name in earlier
        if name not in _VARYING and earlier[name] != later[name]
    ]
    return (*found, *_speed_changes(before.interfaces, after.interfaces))


def _speed_changes(before: Mapping[str, InterfaceRecord], after: Mapping[str, InterfaceRecord]) -> Iterator[FactChange]:
    for name in sorted(before.keys() & after.keys()):
        earlier, later = _speed(before[name]), _speed(after[name])
        if earlier != later:
            yield FactChange(f"interfaces.{name}", earlier, later)


def _text(value: object) -> str:
    match value:
        case None:
            return UNKNOWN
        case bool():
            return "yes" if value else "no"
        case tuple() if value and isinstance(value[0], tuple):
            return "; ".join(format_cpus(each) for each in value)
        case tuple():
            return format_cpus(value) or "none"
        case float():
            return f"{value:g}"
    return str(value)


def _cores(cores: Sequence[Sequence[int]]) -> str:
    """The number of cores, and how many CPUs each has."""
    shared = sum(len(core) > 1 for core in cores)
    return f"{len(cores)}, {shared} of them with several CPUs" if shared else f"{len(cores)}, each with one CPU"


def _interface(interface: InterfaceRecord) -> str:
    return f"{_speed(interface)}, {interface.receive_queues} receive and {interface.send_queues} send queues"


def _speed(interface: InterfaceRecord) -> str:
    return "speed not known" if interface.speed_mbit is None else f"{interface.speed_mbit} Mbit/s"
