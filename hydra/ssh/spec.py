"""The specifications of the engine for hosts over ssh, and for the nodes of a Slurm allocation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import click

from hydra.engine.interface import Engine
from hydra.engine.specification import ClusterChecks, EngineFlags, EngineSettings, EngineSpec, Leftovers, Opening
from hydra.errors import UsageError
from hydra.model import Agent
from hydra.options.flag_types import WORD
from hydra.options.shared_flags import agents_flags
from hydra.ssh.hosts import HostEntry, SlurmSettings, SshSettings, declared_hosts, named_hosts

_Hosts = Callable[[str, Any], list[HostEntry]]


def _over_ssh(master: str, settings: SshSettings) -> list[HostEntry]:
    """The hosts of ``ssh://a,b``, or all that the cluster file declares."""
    declared = declared_hosts(settings.hosts)
    _, given, names = master.partition("://")
    if not given and not declared:
        raise UsageError(
            "the cluster file declares no hosts, on which --master ssh runs",
            "name hosts with --hosts, or write [[hosts]]",
        )
    try:
        return named_hosts(names, declared) if given else declared
    except ValueError as e:
        raise UsageError(f"--hosts {names}: {e}", "separate hosts by commas, such as --hosts a,b,c") from e


def _allocated(_master: str, _settings: SlurmSettings) -> list[HostEntry]:
    from hydra.ssh.queries import allocated_nodes

    return allocated_nodes(os.environ.get("SLURM_JOB_ID", ""))


def _opened(hosts: _Hosts, opening: Opening) -> AbstractContextManager[Engine]:
    entries = hosts(opening.master, opening.settings)

    from hydra.ssh.engine import opened

    return opened(opening, entries)


def _agents(hosts: _Hosts, master: str, _: Sequence[Agent], settings: Any) -> list[Agent]:
    entries = hosts(master, settings)

    from hydra.ssh.engine import PYTHON
    from hydra.ssh.facts import agent_of
    from hydra.ssh.queries import ask_facts

    facts = ask_facts(entries, PYTHON)
    return [agent_of(entry, facts[entry.name], 0) for entry in entries]


def _check(hosts: _Hosts, master: str, settings: Any) -> Iterator[str]:
    entries = hosts(master, settings)

    from hydra.ssh.engine import PYTHON
    from hydra.ssh.facts import advice
    from hydra.ssh.queries import ask_facts

    yield from advice(ask_facts(entries, PYTHON), PYTHON)


def _texts(
    hosts: _Hosts, master: str, settings: Any, readings: Sequence[Sequence[str]]
) -> Mapping[str, Sequence[Mapping[str, str]]]:
    entries = hosts(master, settings)

    from hydra.ssh.queries import ask_texts

    return ask_texts(entries, readings)


def _leftovers(hosts: _Hosts, master: str, settings: Any) -> list[dict[str, object]]:
    entries = hosts(master, settings)

    from hydra.ssh.queries import leftovers

    return leftovers(entries)


def _end_run(hosts: _Hosts, master: str, settings: Any, run: str) -> list[str]:
    entries = hosts(master, settings)

    from hydra.ssh.queries import end_run

    return end_run(entries, run, f"hydra ps --master {master}")


def _spec(
    name: str, masters: str, settings: EngineSettings, hosts: _Hosts, shorthand: click.Option | None = None
) -> EngineSpec:
    return EngineSpec(
        name=name,
        masters=masters,
        is_local=False,
        open=partial(_opened, hosts),
        agents=partial(_agents, hosts),
        settings=settings,
        flags=EngineFlags(groups=agents_flags[:1], shorthand=shorthand),
        leftovers=Leftovers(partial(_leftovers, hosts), partial(_end_run, hosts)),
        checks=ClusterChecks(partial(_check, hosts), partial(_texts, hosts)),
    )


SPEC: Final = _spec(
    "ssh",
    "ssh for the hosts of the cluster file",
    EngineSettings(SshSettings, arrays=("hosts",)),
    _over_ssh,
    click.Option(
        ["--hosts"], type=WORD, metavar="HOSTS", help="Hosts over ssh, in place of --master: a,user@b,c:2222."
    ),
)

SLURM: Final = _spec("slurm", "slurm for the nodes of its allocation", EngineSettings(SlurmSettings), _allocated)
