"""The facts of a machine's record as texts, and which of them differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Final

from hydra.model import FactChange, InterfaceRecord, MachineRecord, format_cpus

UNKNOWN: Final = "not known here"
_CHANGING: Final = ("allowed", "swap_used_bytes", "huge_pages", "memory_bytes")
"""Facts that differ between two readings of one machine: Hydra may pin its own processes, and a hypervisor may lend a
virtual machine more memory."""


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
    facts["interfaces"] = "; ".join(f"{name}: {_interface(it)}" for name, it in record.interfaces.items()) or UNKNOWN
    return facts


def common_facts(records: Iterable[MachineRecord]) -> dict[str, str]:
    """The facts of a run's hosts, each with all values that its hosts have; for a comparison of two runs."""
    found: dict[str, list[str]] = {}
    for record in records:
        for name, text in facts_of(record).items():
            if name not in _CHANGING:
                found.setdefault(name, []).append(text)
    return {name: " / ".join(sorted(set(texts))) for name, texts in found.items()}


def changes(before: MachineRecord, after: MachineRecord) -> tuple[FactChange, ...]:
    """The facts that changed between two records of one machine, without those that change by themselves."""
    earlier, later = facts_of(before), facts_of(after)
    return tuple(
        FactChange(name, earlier[name], later[name])
        for name in earlier
        if name not in (*_CHANGING, "interfaces") and earlier[name] != later[name]
    )


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


def _interface(it: InterfaceRecord) -> str:
    speed = "speed not known" if it.speed_mbit is None else f"{it.speed_mbit} Mbit/s"
    return f"{speed}, {it.receive_queues} receive and {it.send_queues} send queues"
