"""The facts of a machine's record as texts, and which of them differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final

from hydra.model import FactChange, InterfaceRecord, MachineRecord, format_cpus

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
