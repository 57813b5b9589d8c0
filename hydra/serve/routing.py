"""Which addresses the page may have, what a request asks for, and the address of everything that can be asked for."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, quote, unquote

from hydra.errors import UsageError

FILES: Final = ("table.md", "table.csv", "rows.json")
"""What can be read of a run's folder beside its report."""
_PAGE: Final = "report.html"
"""To which the page of an experiment links; here the report is made anew."""
STYLE: Final = "style.css"
_ASSET: Final = re.compile(r"style\.css|plotly-[0-9][0-9A-Za-z.-]*\.min\.js")
_DEPTH: Final = 2
"""A run lies in the folder, or in an experiment or a set of runs there."""
_MOST_RUNS: Final = 20


@dataclass(frozen=True, slots=True)
class RunListPage:
    """The runs of the folder; or of an experiment, or of runs that took turns, in it."""

    within: str = ""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The report of a run or of an experiment, by its path in the folder."""

    run: str


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """Several runs in one page, the base first. One folder of runs that took turns stands for all of these."""

    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of a run's folder, one of :data:`FILES`."""

    run: str
    name: str


@dataclass(frozen=True, slots=True)
class Asset:
    """A style or a script."""

    name: str


@dataclass(frozen=True, slots=True)
class Redirect:
    """The same under another address."""

    to: str


@dataclass(frozen=True, slots=True)
class BadRequest:
    """What cannot be asked for, and what to do instead."""

    status: HTTPStatus
    what: str


Asked = RunListPage | ReportPage | ComparisonPage | RunFile | Asset | Redirect | BadRequest

_NOWHERE: Final = BadRequest(HTTPStatus.NOT_FOUND, "There is no such page.")


def route(target: str) -> Asked:
    """What the target of a request line asks for.

    Args:
        target: path and query as they were sent.
    """
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        return BadRequest(HTTPStatus.BAD_REQUEST, "The address must begin with a slash.")
    # Names of folders are bytes: those that are no UTF-8 come through as they are.
    first, *rest = [unquote(part, errors="surrogateescape") for part in path[1:].split("/")]
    if not all(_is_name(part) for part in [first, *rest] if part):
        return _NOWHERE
    match first, rest:
        case "", []:
            return RunListPage()
        case "in", [name, ""] if name:
            return RunListPage(name)
        case "run", [*names]:
            return _of_a_run(path, names)
        case "compare", []:
            return _comparing(query)
        case "assets", [name] if _ASSET.fullmatch(name):
            return Asset(name)
    return _NOWHERE


def _of_a_run(path: str, names: list[str]) -> Asked:
    *folders, last = names or [""]
    if not all(folders) or len(folders) > _DEPTH:
        return _NOWHERE
    run = "/".join(folders)
    if run and not last:
        return ReportPage(run)
    if run and last in FILES:
        return RunFile(run, last)
    if run and last == _PAGE:
        return Redirect(path.removesuffix(_PAGE))
    return Redirect(f"{path}/") if last and len(folders) < _DEPTH else _NOWHERE


def _comparing(query: str) -> Asked:
    try:
        asked = parse_qs(query, errors="surrogateescape", max_num_fields=_MOST_RUNS + 1)
    except ValueError:
        return BadRequest(HTTPStatus.BAD_REQUEST, f"At most {_MOST_RUNS} runs are compared at once.")
    names = list(dict.fromkeys(asked.get("run", [])))
    if not all(len(parts := name.split("/")) <= _DEPTH and all(map(_is_name, parts)) for name in names):
        return _NOWHERE
    if not names:
        return BadRequest(HTTPStatus.BAD_REQUEST, "No run was chosen: go back, and choose two or more.")
    return ComparisonPage(tuple(names))


def _is_name(part: str) -> bool:
    return bool(part) and part not in (".", "..") and not {"/", "\0"} & set(part)


# --- addresses -----------------------------------------------------------------------------------------------------


def run_url(run: str) -> str:
    """Of a report."""
    return f"/run/{quote(run, errors='surrogateescape')}/"


def listing_url(within: str) -> str:
    """Of the list of runs in an experiment, or in a folder of runs that took turns; "": of all."""
    return f"/in/{quote(within, safe='', errors='surrogateescape')}/" if within else "/"


def comparing_url(runs: tuple[str, ...]) -> str:
    """Of a comparison, the base first."""
    return "/compare?" + "&".join(f"run={quote(run, errors='surrogateescape')}" for run in runs)


_LOCAL: Final = "localhost"
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+))(?::\d{1,5})?")


def loopback(host: str) -> str:
    """The address that is bound for a host that the user named.

    Raises:
        UsageError: other machines could reach it.
    """
    address = "127.0.0.1" if host == _LOCAL else host
    if not _is_loopback(address):
        raise UsageError(
            f"--host {host} is no loopback address, and the page is for this machine alone",
            "use 127.0.0.1, or reach it from elsewhere with ssh -L",
        )
    return address


def names_this_machine(header: str) -> bool:
    """Whether the ``Host`` of a request names this machine.

    A page elsewhere may give its own name the address 127.0.0.1 (DNS rebinding) and would read what is shown; its name
    stands in this header. The port is not looked at: a tunnel has another one.
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    name = found["six"] or found["name"]
    return name.lower() == _LOCAL or _is_loopback(name)


def url(address: str, port: int) -> str:
    """Where a browser finds the page."""
    return f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False
