"""The addresses of the server, the URLs of all pages, and what a request asks for."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, quote, unquote

from hydra.errors import UsageError

FILES: Final = ("table.md", "table.csv", "rows.json")
"""The files in a run's folder that can be read in addition to its report."""
_PAGE: Final = "report.html"
"""The file to which the page of an experiment links; the server redirects to the report that it makes itself."""
STYLE: Final = "style.css"
_ASSET: Final = re.compile(r"style\.css|plotly-[0-9][0-9A-Za-z.-]*\.min\.js")
_DEPTH: Final = 2
"""A run is in the folder, or in an experiment or a set of runs in the folder."""
_MOST_RUNS: Final = 20


@dataclass(frozen=True, slots=True)
class RunListPage:
    """The list of the runs in the folder, or in an experiment or a set of interleaved runs there."""

    within: str = ""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The report of a run or of an experiment, by its path in the folder."""

    run: str


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """Several runs in one page, the base first. A folder of interleaved runs stands for all runs in it."""

    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of a run's folder, one of :data:`FILES`."""

    run: str
    name: str


@dataclass(frozen=True, slots=True)
class Asset:
    """A style sheet or a script."""

    name: str


@dataclass(frozen=True, slots=True)
class Redirect:
    """The same page at another address."""

    to: str


@dataclass(frozen=True, slots=True)
class BadRequest:
    """A request that cannot be answered, and what to do instead."""

    status: HTTPStatus
    what: str


PageRequest = RunListPage | ReportPage | ComparisonPage | RunFile | Asset | Redirect | BadRequest

_NOWHERE: Final = BadRequest(HTTPStatus.NOT_FOUND, "There is no such page.")


def route(target: str) -> PageRequest:
    """The page or file that the target of a request line asks for.

    Args:
        target: path and query as they were sent.
    """
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        return BadRequest(HTTPStatus.BAD_REQUEST, "The address must begin with a slash.")
    # Names of folders are bytes: bytes that are not UTF-8 are kept.
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


def _of_a_run(path: str, names: list[str]) -> PageRequest:
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


def _comparing(query: str) -> PageRequest:
    try:
        parameters = parse_qs(query, errors="surrogateescape", max_num_fields=_MOST_RUNS + 1)
    except ValueError:
        return BadRequest(HTTPStatus.BAD_REQUEST, f"At most {_MOST_RUNS} runs are compared at once.")
    names = list(dict.fromkeys(parameters.get("run", [])))
    if not all(len(parts := name.split("/")) <= _DEPTH and all(map(_is_name, parts)) for name in names):
        return _NOWHERE
    if not names:
        return BadRequest(HTTPStatus.BAD_REQUEST, "No run was chosen: go back, and choose two or more.")
    return ComparisonPage(tuple(names))


def _is_name(part: str) -> bool:
    return bool(part) and part not in (".", "..") and not {"/", "\0"} & set(part)


# --- addresses -----------------------------------------------------------------------------------------------------


def run_url(run: str) -> str:
    """The URL of a report."""
    return f"/run/{quote(run, errors='surrogateescape')}/"


def listing_url(within: str) -> str:
    """The URL of the list of runs in an experiment or a set of interleaved runs; "" for all runs."""
    return f"/in/{quote(within, safe='', errors='surrogateescape')}/" if within else "/"


def comparing_url(runs: tuple[str, ...]) -> str:
    """The URL of a comparison, the base first."""
    return "/compare?" + "&".join(f"run={quote(run, errors='surrogateescape')}" for run in runs)


_LOCAL: Final = "localhost"
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+))(?::\d{1,5})?")


def loopback(host: str) -> str:
    """The address to bind for the host that the user named.

    Raises:
        UsageError: other machines could reach this address.
    """
    address = "127.0.0.1" if host == _LOCAL else host
    if not _is_loopback(address):
        raise UsageError(
            f"--host {host} is no loopback address, but the pages are for this machine only",
            "use 127.0.0.1, and reach the pages from another machine with ssh -L",
        )
    return address


def names_this_machine(header: str) -> bool:
    """Whether the ``Host`` of a request names this machine.

    A foreign web page may resolve its own name to 127.0.0.1 (DNS rebinding) to read the runs; this header then has its
    name. The port is not checked, because a tunnel has another one.
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    name = found["six"] or found["name"]
    return name.lower() == _LOCAL or _is_loopback(name)


def url(address: str, port: int) -> str:
    """The URL at which a browser opens the list of runs."""
    return f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False
