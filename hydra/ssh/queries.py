"""Queries of all hosts at once: one program on each, which prints replies and ends."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from hydra.errors import ClusterError, MissingDependencyError, UsageError
from hydra.ssh import host_scripts
from hydra.ssh.facts import HostFacts, host_facts
from hydra.ssh.failures import CHANGED, HostFailure, failure, refusal
from hydra.ssh.hosts import HostEntry, slurm_nodes

ANSWERS_WITHIN_S: Final = 30.0
_PACKAGES: Final = {"ssh": "openssh-client", "srun": "slurm-client", "scontrol": "slurm-client"}

Replies = list[dict[str, Any]]


def missing_program(program: str) -> MissingDependencyError:
    """The error about a program that is not on this machine."""
    return MissingDependencyError(f"{program} is not on PATH", f"apt install {_PACKAGES[program]}")


def ask(hosts: Sequence[HostEntry], script: str) -> tuple[dict[str, Replies], dict[str, HostFailure]]:
    """The replies of each host, and why the others did not reply.

    Raises:
        MissingDependencyError: this machine has no ssh, or no srun.
    """

    def answer_of(host: HostEntry) -> Replies | HostFailure:
        try:
            done = subprocess.run(
                host.command(host_scripts.started(script)),
                input=script.encode(),
                capture_output=True,
                timeout=ANSWERS_WITHIN_S,
                check=False,
            )
        except FileNotFoundError:
            raise missing_program(host.via) from None
        except subprocess.TimeoutExpired:
            return HostFailure(f"it did not answer within {ANSWERS_WITHIN_S:g} s", "try ssh HOST true")
        stderr = done.stderr.decode(errors="replace")
        lines = done.stdout.decode(errors="replace").splitlines()
        replies = [found for found in map(host_scripts.reply, lines) if found is not None]
        if CHANGED in stderr or not any(found["kind"] == "hello" for found in replies):
            return failure(stderr, done.returncode)
        return replies

    with ThreadPoolExecutor(len(hosts)) as pool:
        answers = dict(zip([host.name for host in hosts], pool.map(answer_of, hosts), strict=True))
    return (
        {name: answer for name, answer in answers.items() if not isinstance(answer, HostFailure)},
        {name: answer for name, answer in answers.items() if isinstance(answer, HostFailure)},
    )


def facts_of(replies: Replies) -> HostFacts:
    """The facts in a host's replies."""
    return host_facts({found["name"]: found["value"] for found in replies if found["kind"] == "fact"})


def ask_facts(hosts: Sequence[HostEntry], python: str) -> dict[str, HostFacts]:
    """The facts of every host.

    Raises:
        UsageError: some hosts did not reply; the text names all of them.
    """
    replies, failures = ask(hosts, host_scripts.filled(host_scripts.FACTS, digest="none", python=python))
    if failures:
        raise refusal(failures, len(hosts))
    return {name: facts_of(found) for name, found in replies.items()}


def ask_texts(hosts: Sequence[HostEntry], readings: Sequence[Sequence[str]]) -> dict[str, list[dict[str, str]]]:
    """The texts of files of the kernel on every host, by path, for each reading.

    Args:
        hosts: the hosts.
        readings: the files of each reading, as the patterns of a shell; the readings are half a second apart.

    Raises:
        UsageError: some hosts did not reply; the text names all of them.
    """
    replies, failures = ask(hosts, host_scripts.reading(readings))
    if failures:
        raise refusal(failures, len(hosts))
    return {name: [_texts(found, str(number)) for number in range(len(readings))] for name, found in replies.items()}


def _texts(replies: Replies, reading: str) -> dict[str, str]:
    """The texts of the files of one reading."""
    found: dict[str, list[str]] = {}
    for each in replies:
        if each["kind"] == "text" and each["reading"] == reading:
            found.setdefault(each["path"], []).append(each["line"])
    return {path: "\n".join(lines) for path, lines in found.items()}


def leftovers(hosts: Sequence[HostEntry]) -> list[dict[str, object]]:
    """A row for each run that has processes or folders of this user on the hosts; runs of one name have their digits.

    Raises:
        UsageError: some hosts did not reply; the text names all of them.
    """
    replies, failures = ask(hosts, host_scripts.LISTED)
    if failures:
        raise refusal(failures, len(hosts))
    runs = sorted({found["run"] for each in replies.values() for found in _left(each)})
    names = Counter(map(_name, runs))
    rows: list[dict[str, object]] = []
    for run in runs:
        by_host = {name: _counts(each, run) for name, each in replies.items()}
        on = [name for name, counts in by_host.items() if any(counts)]
        processes, folders = (sum(counts) for counts in zip(*by_host.values(), strict=True))
        shown = run if names[_name(run)] > 1 else _name(run)
        rows.append({"run": shown, "hosts": ",".join(on), "processes": processes, "folders": folders})
    return rows


def end_run(hosts: Sequence[HostEntry], run: str, listed_by: str) -> list[str]:
    """Ends what a run of this user has on the hosts; returns a line for each host.

    Args:
        hosts: the hosts.
        run: the run's name, which may be that of several; with the digits, it is one.
        listed_by: the command that lists runs, for the error.

    Raises:
        UsageError: no host has anything of such a run.
        ClusterError: some hosts did not reply; the text names all of them. The run was ended on the others.
    """
    replies, failures = ask(hosts, host_scripts.filled(host_scripts.KILLED, run=run))
    counts = {name: _counts(each, run) for name, each in replies.items()}
    lines = [
        f"{processes} processes and {folders} folders on {name}"
        for name, (processes, folders) in counts.items()
        if processes or folders
    ]
    if failures:
        error = refusal(failures, len(hosts))
        raise ClusterError(f"{error.what}; ended elsewhere: {', '.join(lines) or 'nothing'}", error.remedy)
    if not lines:
        raise UsageError(f"no host has anything of a run {run!r} of this user", f"{listed_by} lists runs")
    return lines


def allocated_nodes(job: str) -> list[HostEntry]:
    """The nodes of a Slurm allocation.

    Args:
        job: the job's id, from the environment.

    Raises:
        UsageError: this process is in no allocation.
        ClusterError: Slurm's controller does not answer.
        MissingDependencyError: this machine has no scontrol.
    """
    if not job:
        raise UsageError("this process is in no Slurm allocation", "run the command in a batch script or under salloc")
    listed = _scontrol("show", "job", "--oneliner", job)
    names = next((word.removeprefix("NodeList=") for word in listed.split() if word.startswith("NodeList=")), "")
    nodes = slurm_nodes(_scontrol("show", "node", "--oneliner", names))
    try:
        return [replace(node, address=socket.gethostbyname(node.address)) for node in nodes]
    except OSError as e:
        raise ClusterError(f"the address of a node cannot be resolved: {e}", "see scontrol show node") from None


def _scontrol(*words: str) -> str:
    try:
        done = subprocess.run(
            ["scontrol", *words], capture_output=True, text=True, timeout=ANSWERS_WITHIN_S, check=False
        )
    except FileNotFoundError:
        raise missing_program("scontrol") from None
    except subprocess.TimeoutExpired:
        raise ClusterError("scontrol did not answer", "look at slurmctld: scontrol ping") from None
    if done.returncode:
        raise ClusterError(f"scontrol: {done.stderr.strip()}", "look at slurmctld: scontrol ping")
    return done.stdout


def _left(replies: Replies) -> Replies:
    return [found for found in replies if found["kind"] in ("process", "folder")]


def _name(run: str) -> str:
    """The name of a run, without its random digits."""
    return run.partition("/")[0]


def _counts(replies: Replies, run: str) -> tuple[int, int]:
    """The numbers of processes and of folders of a run, or of all runs of a name."""
    its: Mapping[str, set[str]] = {"process": set(), "folder": set()}
    for found in _left(replies):
        if run in (found["run"], _name(found["run"])):
            its[found["kind"]].add(found["which"])
    return len(its["process"]), len(its["folder"])
