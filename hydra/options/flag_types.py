"""Types of flags: they convert the text on a command line to a value, or reject it with one line."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any, Final

import click

from hydra.amounts import AMOUNTS, BYTES, UNITS, amount, duration, whole_number
from hydra.errors import MissingDependencyError, UsageError, pip_install


class CountList(click.ParamType[list[int]]):
    """Whole numbers separated by commas: ``30,60,120``, ``1e3,1e5`` or ``1k,100k``.

    Args:
        least, most: limits of each number; None: there is no upper limit.
        units: the letters that may follow a number.
    """

    name = "N,N,…"

    def __init__(self, least: int = 0, most: int | None = None, units: Mapping[str, int] | None = None) -> None:
        self._least, self._most = least, most
        self.units = AMOUNTS if units is None else units

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The numbers as a list; fails with one line if the text is no such list."""
        if isinstance(value, list):
            return value
        try:
            numbers = [whole_number(part, self.units) for part in str(value).split(",")]
        except ValueError:
            numbers = []
        if not numbers or any(n < 0 for n in numbers):
            self.fail(f"{value!r} is not a list of whole numbers like 30,60,120", param, ctx)
        for number in numbers:
            if number < self._least or (self._most is not None and number > self._most):
                upper = "or more" if self._most is None else f"to {self._most}"
                self.fail(f"{number} is not {self._least} {upper}", param, ctx)
        return numbers


class WholeNumber(click.types.IntParamType):
    """A whole number, which may be written like 1e5 or 100k."""

    units: Mapping[str, int] = AMOUNTS

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; fails with one line where it is none."""
        with suppress(ValueError):
            value = whole_number(str(value), self.units)
        if isinstance(value, str) and (several := _several(self, value, param)):
            self.fail(f"{value!r} is no single number{several}", param, ctx)
        return super().convert(value, param, ctx)


class WholeNumberRange(WholeNumber, click.IntRange):
    """A whole number in a range."""


class ByteCount(WholeNumber):
    """A number of bytes, which may be written like 1kB or 64KiB."""

    units = BYTES


class ByteCountRange(ByteCount, click.IntRange):
    """A number of bytes in a range."""


def _several(kind: click.ParamType[Any], value: object, param: click.Parameter | None) -> str:
    """How a user varies a setting, if the value of its flag is a list of possible values; else ""."""
    table, _, name = str(getattr(param, "key", "")).rpartition(".")
    parts = str(value).split(",")
    if table != "settings" or len(parts) < 2:
        return ""
    try:
        values = [kind.convert(part, None, None) for part in parts]
    except click.UsageError:
        return ""
    shown = ",".join(f"{each:g}" if isinstance(each, float) else repr(each) for each in values)
    return f"; for a row with each of these values use --set 'sweep.vary={{{name}=[{shown}]}}'"


class ChoiceList(click.Choice[str]):
    """One or more of the names, separated by commas."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The names as they were written; fails with one line if a name is unknown."""
        return ",".join(super(ChoiceList, self).convert(name, param, ctx) for name in str(value).split(","))


class NonEmptyText(click.ParamType[str]):
    """Text that is not empty."""

    name = "TEXT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text; fails with one line if it is empty."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        return value


class FilePath(click.Path):
    """A path that is not empty; an empty one would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails with one line if it is empty."""
        return super().convert(WORD.convert(str(value), param, ctx), param, ctx)


class RateType(click.ParamType[float | str]):
    """Messages per second, or ``max``."""

    name = "RATE|max"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The rate; fails with one line if the text is no rate."""
        if value == "max" or isinstance(value, float):
            return value
        try:
            rate = float(amount(str(value), AMOUNTS))
        except ValueError:
            rate = nan
        if not isfinite(rate):
            self.fail(f"{value!r} is neither messages per second nor max{_several(self, value, param)}", param, ctx)
        return rate


class RateList(click.ParamType[list[float | str]]):
    """Rates separated by commas: ``100,500,max``."""

    name = "RATE,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The rates as a list; fails with one line if a part is no rate."""
        if isinstance(value, list):
            return value
        return [RateType().convert(part, param, ctx) for part in str(value).split(",")]


class Percent(click.types.FloatParamType):
    """A fraction below 1 that the user writes in percent."""

    name = "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The fraction; fails with one line if the text is no percentage."""
        percent = super().convert(value, param, ctx)
        if not 0 <= percent < 100:
            self.fail(f"{value!r} is no percentage from 0 to below 100", param, ctx)
        return percent / 100


class FiniteFloat(click.types.FloatParamType):
    """A number that is neither nan nor infinite, and may be written like 1.5k."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; fails with one line if it is not finite."""
        if isinstance(value, str) and value.strip().endswith(tuple(AMOUNTS)):
            with suppress(ValueError):
                value = float(amount(value, AMOUNTS))
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class FiniteFloatRange(FiniteFloat, click.FloatRange):
    """A number in a range, and neither nan nor infinite."""


class Duration(click.ParamType[float]):
    """A time with its unit: ``20ms``, ``90s``, ``1h``.

    Args:
        unit: the unit of the result, and of a number without a unit; one of :data:`UNITS`.
        least, most: the bounds of the time, in that unit.
    """

    name = "TIME"

    def __init__(self, unit: str, least: float = 0.0, most: float = inf) -> None:
        self._unit, self._least, self._most = unit, least, most

    def with_unit(self, text: str) -> str:
        """The help of a flag, with the unit of a number without one."""
        unit = "seconds" if self._unit == "s" else self._unit
        return f"{text.removesuffix('.')}; a number without a unit is in {unit}."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The time in this type's unit; fails with one line if the text is no time."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            time = duration(text, self._unit)
        except ValueError:
            self.fail(f"{value!r} is no time like {' or '.join(f'20{u}' for u in UNITS)}", param, ctx)
        if not self._least <= time <= self._most:
            self.fail(f"{value!r} is not {self._least:g}{self._unit} to {self._most:g}{self._unit}", param, ctx)
        return time


class ListenAddress(click.ParamType[tuple[str, int]]):
    """An address for Prometheus: ``:9464`` and ``9464`` can be reached from this machine only."""

    name = "[HOST]:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Host and port; fails with one line if the text is no address, or the address cannot be bound."""
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).strip().rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not (port.isascii() and port.isdigit() and int(port) < 65536) or any(c in host for c in "/@ []"):
            self.fail(f"{value!r} is no address like :9464 or 0.0.0.0:9464", param, ctx)

        host = host or "127.0.0.1"
        refuse_address(host, int(port))
        return host, int(port)


class OtlpUrl(click.ParamType[str]):
    """The address of an OpenTelemetry receiver."""

    name = "URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The address; fails with one line if the text is no address."""
        from urllib.parse import urlsplit

        text = str(value).strip()
        try:
            parts = urlsplit(text)
            known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and " " not in text
        except ValueError:
            known = False
        if not known:
            self.fail(f"{value!r} is no address like http://localhost:4318", param, ctx)
        if parts.query or parts.fragment:
            about = "credentials belong into the environment variable OTEL_EXPORTER_OTLP_HEADERS"
            self.fail(f"the address has more than a path: {about}", param, ctx)

        refuse_missing("--otlp", "opentelemetry.sdk")
        return text


COUNTS = CountList()
BYTE_COUNT = ByteCount()
BYTE_COUNTS = CountList(units=BYTES)
NUMBER = FiniteFloat()
RATE = RateType()
RATES = RateList()
WHOLE_NUMBER = WholeNumber()
PERCENT = Percent()
WORD = NonEmptyText()
PATH = FilePath(path_type=Path)


_PACKAGES: Final = {"--otlp": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")}
"""The packages that each flag needs beside those of every Hydra: those of the extra ``metrics``."""


def family_of(host: str, port: int) -> int:
    """The address family of a host's name or address, for a socket.

    Raises:
        OSError: the host cannot be resolved.
    """
    import socket  # slow to import, and only this flag needs it

    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]


def refuse_address(host: str, port: int) -> None:
    """Rejects an address that cannot be bound.

    Raises:
        UsageError: the address is in use, or is not of this machine.
    """
    import socket

    try:
        with socket.socket(family_of(host, port), socket.SOCK_STREAM) as socket_:
            # The server sets it, too: a connection that has just ended does not block the port.
            socket_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            socket_.bind((host, port))
    except UnicodeError as e:  # the text cannot be a host's name
        raise cannot_listen(host, port, OSError(0, "this text cannot be the name of a host")) from e
    except OSError as e:
        raise cannot_listen(host, port, e) from e


def cannot_listen(host: str, port: int, error: OSError) -> UsageError:
    """The error for an address that cannot be bound."""
    return UsageError(
        f"--prometheus: nothing can listen at {url_host(host, port)}: {error.strerror}",
        "name a free port and an address of this machine, or port 0 for any",
    )


def refuse_missing(flag: str, library: str) -> None:
    """Rejects a flag whose library is not installed.

    Raises:
        MissingDependencyError: the library is not installed.
    """
    try:
        found = find_spec(library)
    except ImportError:
        found = None
    if found is None:
        raise missing(flag, library)


def missing(flag: str, library: str | None) -> MissingDependencyError:
    """The error for a flag whose library is not installed."""
    return MissingDependencyError(
        f"{flag} needs a library that is not installed ({library})", pip_install(*_PACKAGES[flag])
    )


def url_host(host: str, port: int) -> str:
    """Host and port in the form of a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
