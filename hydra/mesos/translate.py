"""The JSON of the Mesos v1 scheduler API ↔ Hydra's types. Pure.

The messages are described in include/mesos/v1/mesos.proto and scheduler.proto of Mesos 1.11.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hydra.engine.resources import ResourceNeed, without
from hydra.model import Agent, Demand, GroupState, Resources

Json = dict[str, Any]
"""A message of the API, as JSON."""

STATES: Final[Mapping[str, GroupState]] = {
    "TASK_STAGING": "starting",
    "TASK_STARTING": "starting",
    "TASK_RUNNING": "running",
    "TASK_KILLING": "running",
    "TASK_FINISHED": "finished",
    "TASK_FAILED": "failed",
    "TASK_ERROR": "failed",
    "TASK_KILLED": "killed",
    "TASK_LOST": "lost",
    "TASK_DROPPED": "lost",
    "TASK_UNREACHABLE": "lost",
    "TASK_GONE": "lost",
    "TASK_GONE_BY_OPERATOR": "lost",
    "TASK_UNKNOWN": "lost",
}
"""The group state for every task state. An unknown state of a later Mesos counts as lost: the group is placed again."""

LIVE: Final = frozenset(state for state, means in STATES.items() if means in ("starting", "running"))
"""The states of tasks that have not ended. A master keeps an ended one until its framework acknowledges the end."""

NEVER_LAUNCHED: Final = frozenset({"REASON_INVALID_OFFERS", "REASON_RECONCILIATION"})
"""Reasons of a lost task without a fault of the agent: the offer was withdrawn, or the launch never arrived."""

AGENT_AT_FAULT: Final = frozenset(
    {
        "REASON_AGENT_REMOVED",
        "REASON_CONTAINER_LAUNCH_FAILED",
        "REASON_CONTAINER_UPDATE_FAILED",
        "REASON_EXECUTOR_REGISTRATION_TIMEOUT",
        "REASON_EXECUTOR_REREGISTRATION_TIMEOUT",
        "REASON_EXECUTOR_TERMINATED",
        "REASON_GC_ERROR",
    }
)
"""Reasons after which placement avoids the agent for the next attempt."""

LEAST_CPUS: Final = 0.01
LEAST_MEM: Final = 32.0
"""Mesos launches no task without resources, and warns below these (src/slave/constants.hpp, MIN_CPUS, MIN_MEM)."""

_SCALARS: Final = ("cpus", "mem", "disk")
_MILLI: Final = 1000
"""Mesos keeps three decimals of a scalar and drops the rest."""


@dataclass(frozen=True, slots=True)
class AgentOffer:
    """An offer of one agent's resources.

    Attributes:
        agent: the agent with the sum of this offer's resources, reserved and unreserved.
        address: ``host:port`` of the agent's own HTTP endpoint; "" if the offer has none.
        ip: the agent's IP address; "" if the offer has none.
        parts: the resources as they were offered; a launch takes pieces of them.
    """

    id: str
    agent: Agent
    address: str
    ip: str
    parts: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class TaskUpdate:
    """A master's update of one task; without a ``uuid`` it needs no acknowledgement; ``agent`` may be ""."""

    task: str
    state: str
    agent: str = ""
    uuid: str = ""
    reason: str = ""
    message: str = ""

    @property
    def means(self) -> GroupState:
        """The state of the task's group."""
        return STATES.get(self.state, "lost")

    @property
    def detail(self) -> str:
        """State, message and reason for the user."""
        return f"{self.state}{': ' if self.message else ''}{self.message}{f' ({self.reason})' if self.reason else ''}"


# --- messages of a master --------------------------------------------------------------------------------------------


def offer(message: Json) -> AgentOffer:
    """The offer in the API's form as an :class:`AgentOffer`."""
    address = message.get("url", {}).get("address", {})
    host = address.get("ip") or address.get("hostname") or ""
    parts = tuple(part for part in message.get("resources", ()) if _usable(part))
    agent = Agent(
        id=message["agent_id"]["value"],
        hostname=message["hostname"],
        attributes={a["name"]: _attribute(a) for a in message.get("attributes", ())},
        resources=total(parts),
    )
    port = address.get("port")
    return AgentOffer(
        id=message["id"]["value"],
        agent=agent,
        address=f"{host}:{port}" if host and port else "",
        ip=address.get("ip", ""),
        parts=parts,
    )


def update(status: Json) -> TaskUpdate:
    """The status of an update in the API's form as a :class:`TaskUpdate`."""
    return TaskUpdate(
        task=status["task_id"]["value"],
        state=status["state"],
        agent=status.get("agent_id", {}).get("value", ""),
        uuid=status.get("uuid", ""),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
    )


def total(parts: Iterable[Json]) -> Resources:
    """The sum of resources in the API's form; kinds that Hydra does not use are left out."""
    amounts = dict.fromkeys(_SCALARS, 0.0)
    ranges: list[tuple[int, int]] = []
    for part in parts:
        if part["name"] in amounts and part["type"] == "SCALAR":
            amounts[part["name"]] = round(amounts[part["name"]] + part["scalar"]["value"], 3)
        elif part["name"] == "ports" and part["type"] == "RANGES":
            ranges += ((int(r["begin"]), int(r["end"])) for r in part["ranges"].get("range", ()))
    return Resources(**amounts, ports=tuple(sorted(ranges)))


def _usable(part: Json) -> bool:
    """Whether Hydra uses a resource: Mesos cannot revoke it, and it is no shared or mounted volume."""
    return not any(key in part for key in ("revocable", "shared")) and "source" not in part.get("disk", {})


def _attribute(attribute: Json) -> str:
    """The value as it was written in the agent's ``--attributes``."""
    match attribute["type"]:
        case "SCALAR":
            return f"{attribute['scalar']['value']:.3f}".rstrip("0").rstrip(".")
        case "RANGES":
            spans = ["{begin}-{end}".format(**span) for span in attribute["ranges"].get("range", ())]
            return f"[{','.join(spans)}]"
        case "SET":
            return f"{{{','.join(attribute['set'].get('item', ()))}}}"
        case _:
            return str(attribute.get("text", {}).get("value", ""))


# --- messages of a framework -----------------------------------------------------------------------------------------


def framework_info(
    *, name: str, user: str, role: str, principal: str, failover_timeout_s: float, hostname: str, framework: str = ""
) -> Json:
    """The framework's description for the master; ``framework`` is its id if it had one before."""
    info: Json = {
        "user": user,
        "name": name,
        "role": role,
        "failover_timeout": failover_timeout_s,
        "checkpoint": True,
        "hostname": hostname,
        "capabilities": [{"type": "PARTITION_AWARE"}],
    }
    if principal:
        info["principal"] = principal
    if framework:
        info["id"] = {"value": framework}
    return info


def rounded_demand(demand: Demand, count: int) -> Demand:
    """The demand of a group of ``count`` clients as Mesos stores it: three decimals, rounded up, and never 0."""

    def up(amount: float, least: float) -> float:
        # The rounding inside keeps 0.114 from becoming 0.115.
        return max(math.ceil(round(amount * _MILLI, 6)) / _MILLI, least)

    return Demand(
        base_cpus=up(demand.base_cpus + count * demand.cpus_per_client, LEAST_CPUS),
        base_mem=up(demand.base_mem + count * demand.mem_per_client, LEAST_MEM),
        ports=demand.ports,
    )


def take(parts: Sequence[Json], need: ResourceNeed) -> tuple[list[Json], list[Json], tuple[int, ...]] | None:
    """The pieces of offered resources that meet the need, the rest, and the ports; None if the offers do not suffice.

    Reserved resources are used first, as no other framework can use them. A piece keeps its role, reservation and
    allocation.
    """
    required = {"cpus": round(need.cpus * _MILLI), "mem": round(need.mem * _MILLI), "ports": need.ports}
    taken: list[Json] = []
    left: list[Json] = []
    ports: list[int] = []
    for part in sorted(parts, key=_is_unreserved):
        name = part["name"]
        want = required.get(name, 0)
        if want <= 0:
            left.append(part)
        elif part["type"] == "SCALAR":
            have = round(part["scalar"]["value"] * _MILLI)
            here = min(have, want)
            required[name] -= here
            _append(taken, part, "scalar", {"value": here / _MILLI}, here)
            _append(left, part, "scalar", {"value": (have - here) / _MILLI}, have - here)
        else:
            ranges = [(int(r["begin"]), int(r["end"])) for r in part["ranges"].get("range", ())]
            got, rest = _lowest(ranges, want)
            required[name] -= sum(last - first + 1 for first, last in got)
            ports += (port for first, last in got for port in range(first, last + 1))
            _append(taken, part, "ranges", _ranges(got), len(got))
            _append(left, part, "ranges", _ranges(rest), len(rest))
    if any(amount > 0 for amount in required.values()):
        return None
    return taken, left, tuple(ports)


def _is_unreserved(part: Json) -> bool:
    return part.get("role", "*") == "*" and not part.get("reservations")


def _append(parts: list[Json], like: Json, key: str, value: Json, amount: int) -> None:
    if amount > 0:
        # Role, reservation and allocation are shared with ``like``; no code changes them.
        parts.append({**like, key: value})


def _lowest(ranges: Sequence[tuple[int, int]], count: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    got: list[tuple[int, int]] = []
    rest: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        here = min(count, last - first + 1)
        count -= here
        if here:
            got.append((first, first + here - 1))
        if first + here <= last:
            rest.append((first + here, last))
    return got, rest


def _ranges(ranges: Iterable[tuple[int, int]]) -> Json:
    return {"range": [{"begin": first, "end": last} for first, last in ranges]}


@dataclass(frozen=True, slots=True)
class Uri:
    """An archive that the agent's fetcher unpacks into the sandbox; the fetcher may cache it."""

    value: str

    def message(self) -> Json:
        """The archive in the API's form."""
        return {"value": self.value, "extract": True, "cache": True, "executable": False}


def command_info(words: Sequence[str], environment: Mapping[str, str], uris: Sequence[Uri]) -> Json:
    """The command of a task.

    Args:
        words: the absolute path of a program, and its arguments; Mesos starts it without a shell.
        environment: variables added to the executor's environment; only they contain the run's key.
        uris: the archives to fetch before.
    """
    return {
        "shell": False,
        "value": words[0],
        "arguments": list(words),
        "environment": {
            "variables": [{"name": k, "type": "VALUE", "value": v} for k, v in sorted(environment.items())]
        },
        "uris": [uri.message() for uri in uris],
    }


def task_info(*, task: str, name: str, agent: str, resources: Sequence[Json], command: Json, grace_s: float) -> Json:
    """A command task.

    Args:
        task: the task's id.
        name: the task's name on the master's pages.
        agent: the agent's id.
        resources: the pieces of offers with which the task is launched.
        command: see :func:`command_info`.
        grace_s: the time from SIGTERM to SIGKILL when the task is killed, in s.
    """
    return {
        "name": name,
        "task_id": {"value": task},
        "agent_id": {"value": agent},
        "resources": list(resources),
        "command": command,
        "kill_policy": {"grace_period": {"nanoseconds": round(grace_s * 1e9)}},
    }


def launch_operation(tasks: Sequence[Json]) -> Json:
    """The operation of an ACCEPT that launches tasks."""
    return {"type": "LAUNCH", "launch": {"task_infos": list(tasks)}}


# --- answers of the operator's endpoints -----------------------------------------------------------------------------


def agents(message: Json) -> list[Agent]:
    """The active agents in an answer of ``/slaves``, with the free resources of each."""
    found = []
    for row in message.get("slaves", ()):
        if not row.get("active", True):
            continue
        used = {**dict.fromkeys(_SCALARS, 0.0), **row.get("used_resources", {})}
        everything = row.get("resources", {})
        found.append(
            Agent(
                id=row["id"],
                hostname=row["hostname"],
                attributes={name: _plain(value) for name, value in row.get("attributes", {}).items()},
                resources=Resources(
                    **{name: max(0.0, round(everything.get(name, 0.0) - used[name], 3)) for name in _SCALARS},
                    ports=without(_text_ranges(everything.get("ports", "")), _text_ranges(used.get("ports", ""))),
                ),
            )
        )
    return found


def _plain(value: object) -> str:
    """An attribute's value in such an answer, a number or a text, as text."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _text_ranges(text: str) -> list[tuple[int, int]]:
    """The ranges in a text such as ``[2000-2999, 31500-32000]``."""
    pairs = (part.strip().partition("-") for part in text.strip("[] ").split(",") if part.strip())
    return [(int(first), int(last or first)) for first, _, last in pairs]
