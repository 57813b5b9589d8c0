"""The dict shapes of the Mesos v1 scheduler API: the one module that knows them. Pure.

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
"""A message of the API, as JSON has it."""

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
"""What every task state means for a group. A state of a later Mesos counts as lost: its group is placed again."""

NEVER_LAUNCHED: Final = frozenset({"REASON_INVALID_OFFERS", "REASON_RECONCILIATION"})
"""Reasons of a lost task that say nothing against the agent: the offer was gone, or the launch never arrived."""

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
"""Reasons for which the next attempt should rather be made on another agent."""

LEAST_CPUS: Final = 0.01
LEAST_MEM: Final = 32.0
"""Mesos launches no task with nothing, and warns below these (src/slave/constants.hpp, MIN_CPUS and MIN_MEM)."""

_SCALARS: Final = ("cpus", "mem", "disk")
_MILLI: Final = 1000
"""Mesos keeps three decimals of a scalar; what is smaller would be lost on the way."""


@dataclass(frozen=True, slots=True)
class AgentOffer:
    """What a master offers of one agent.

    Attributes:
        agent: with the resources of this offer alone; reserved and unreserved ones are added up.
        address: ``host:port`` of the agent's own HTTP endpoint, "" if it was not told.
        ip: the agent's address in the network, "" if it was not told.
        parts: the resources as they were offered; a launch takes pieces of them.
    """

    id: str
    agent: Agent
    address: str
    ip: str
    parts: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class TaskUpdate:
    """What a master says of one task; ``uuid`` "" needs no acknowledgement, ``agent`` may be ""."""

    task: str
    state: str
    agent: str = ""
    uuid: str = ""
    reason: str = ""
    message: str = ""

    @property
    def means(self) -> GroupState:
        """The state of its group."""
        return STATES.get(self.state, "lost")

    @property
    def detail(self) -> str:
        """State, message and reason for the user."""
        return f"{self.state}{': ' if self.message else ''}{self.message}{f' ({self.reason})' if self.reason else ''}"


# --- what a master says ----------------------------------------------------------------------------------------------


def offer(message: Json) -> AgentOffer:
    """An offer."""
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
    """The status in an update."""
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
    """Not revocable (it may be taken away in mid-run), no shared or mounted volume."""
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


# --- what a framework says -------------------------------------------------------------------------------------------


def framework_info(
    *, name: str, user: str, role: str, principal: str, failover_timeout_s: float, hostname: str, framework: str = ""
) -> Json:
    """How the framework introduces itself; ``framework`` is its id if it had one before."""
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
    """The demand of a group of ``count`` as Mesos can keep it: three decimals, rounded up, and never nothing."""

    def up(amount: float, least: float) -> float:
        # The rounding inside keeps 0.114 from becoming 0.115.
        return max(math.ceil(round(amount * _MILLI, 6)) / _MILLI, least)

    return Demand(
        base_cpus=up(demand.base_cpus + count * demand.cpus_per_client, LEAST_CPUS),
        base_mem=up(demand.base_mem + count * demand.mem_per_client, LEAST_MEM),
        ports=demand.ports,
    )


def take(parts: Sequence[Json], need: ResourceNeed) -> tuple[list[Json], list[Json], tuple[int, ...]] | None:
    """The pieces of offered resources that meet the need, what is left of them, and the ports; None if they do not.

    Reserved resources go first, as nobody else can use them. Everything else that Mesos said of a piece (role,
    reservation, allocation) stays on it.
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
        # Role, reservation and allocation are shared: nobody changes what a master said.
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
    """An archive that the agent's fetcher unpacks into the sandbox, from its cache if it has it."""

    value: str

    def message(self) -> Json:
        """As the API has it."""
        return {"value": self.value, "extract": True, "cache": True, "executable": False}


def command_info(words: Sequence[str], environment: Mapping[str, str], uris: Sequence[Uri]) -> Json:
    """What a task runs.

    Args:
        words: a program by its absolute path, and its arguments; there is no shell between.
        environment: what is added to the executor's; the only place for the run's key.
        uris: what is fetched before.
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
        task: its id.
        name: for the master's pages.
        agent: the id of its agent.
        resources: pieces of the offers that it is launched with.
        command: see :func:`command_info`.
        grace_s: from SIGTERM to SIGKILL when it is killed.
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
    """What an ACCEPT does with its offers."""
    return {"type": "LAUNCH", "launch": {"task_infos": list(tasks)}}


# --- what the operator's endpoints say -------------------------------------------------------------------------------


def agents(message: Json) -> list[Agent]:
    """The active agents in an answer of ``/slaves``, with what is free on each now."""
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
    """An attribute's value there: a number or a text."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _text_ranges(text: str) -> list[tuple[int, int]]:
    """``[2000-2999, 31500-32000]``."""
    pairs = (part.strip().partition("-") for part in text.strip("[] ").split(",") if part.strip())
    return [(int(first), int(last or first)) for first, _, last in pairs]
