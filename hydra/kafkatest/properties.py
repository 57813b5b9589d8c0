"""The user's Kafka properties (``--kafka-prop key=value``) under librdkafka's names, for each client library."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hydra.client.linux_process import opened
from hydra.errors import UsageError
from hydra.kafkatest.property_table import CA_PEM, PROPERTIES, QUEUED, TABLE, KafkaPythonValue, Property
from hydra.model import Role

if TYPE_CHECKING:
    from hydra.client.tls import ClientTls

_SECRET: Final = re.compile(
    r"password|secret|passphrase|\.pem$|jaas|oauthbearer\.config|keystore\.key|assertion|kinit\.cmd", re.IGNORECASE
)
_PART: Final = re.compile(
    r"""\w*(?:password|secret|passphrase|token|key)\w*\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']+))""", re.IGNORECASE
)
"""A secret inside a value with several parts: a JAAS configuration, the settings of OAUTHBEARER."""
_LEAST_LINE: Final = 16
"""The fewest characters of a line of a key that counts as a secret by itself."""

_FILE_CHARACTERS: Final = 1_000_000


def parse(items: Iterable[str]) -> dict[str, str]:
    """``key=value`` items as a mapping, by the given names.

    Raises:
        UsageError: an item has no ``=``, or a user may not set its key. The text never contains the value.
    """
    found: dict[str, str] = {}
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key:
            raise UsageError("a --kafka-prop has no '='", "write --kafka-prop key=value")
        _known(key)
        found[key] = value
    return found


def parse_file(path: Path) -> dict[str, str]:
    """The properties in a file: ``key=value`` a line, nothing is escaped; ``#`` begins a comment line.

    Raises:
        UsageError: it cannot be read, or a user may not set a line's property. The text never contains a value.
    """
    try:
        with TextIOWrapper(opened(path), encoding="utf-8") as file:
            text = file.read(_FILE_CHARACTERS + 1)
    except OSError as e:
        raise UsageError(f"--kafka-prop-file {path}: cannot be read: {e.strerror}", "name a readable file") from e
    except UnicodeDecodeError as e:
        raise UsageError(f"--kafka-prop-file {path}: is not UTF-8", "write one key=value a line") from e
    if len(text) > _FILE_CHARACTERS:
        raise UsageError(
            f"--kafka-prop-file {path}: has more than {_FILE_CHARACTERS} characters", "name a file of key=value lines"
        )
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if "=" not in line:
            raise UsageError(f"--kafka-prop-file {path}: line {number} has no '='", "write one key=value a line")
        found |= parse([line])
    return found


def is_secret(key: str) -> bool:
    """Whether the value of a property is secret; ``key`` may be a dotted key of a scenario that ends with its name."""
    return _SECRET.search(key) is not None


def secret_values(properties: Mapping[str, str]) -> Iterator[str]:
    """The secret values: those of secret properties, and the passwords and keys in other values."""
    for key, value in properties.items():
        if is_secret(key):
            yield value
            yield from (part for parts in _PART.findall(value) for part in parts if part)
            lines = value.splitlines()
            if len(lines) > 1:
                yield from (line for line in lines if len(line) >= _LEAST_LINE and not line.startswith("-----"))


def confluent_config(properties: Mapping[str, str], role: Role | None) -> dict[str, str]:
    """The configuration of the role's client for confluent-kafka, under librdkafka's names.

    A publisher gets no consumer properties, a subscriber no producer properties; role None (the controller) neither.

    Raises:
        UsageError: a property is unknown, or Hydra's own.
    """
    given = [(_known(name), value) for name, value in properties.items()]
    return {row.name: value for row, value in given if row.role in (None, role)}


def trusting(tls: ClientTls) -> dict[str, str]:
    """The properties with which clients use TLS and trust these CAs only."""
    return {"security.protocol": "SSL", "ssl.ca.pem": tls.ca}


def kafka_python_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for kafka-python's clients, of a configuration that two steps can compare.

    Raises:
        AccessError: the text of CAs has no certificate.
    """
    arguments = {name: value for name, value in config.items() if name not in (QUEUED, CA_PEM)}
    if CA_PEM in config:
        from hydra.client.tls import ClientTls  # slow to import: most commands start no client

        arguments["ssl_context"] = ClientTls(ca=config[CA_PEM]).context()
    return arguments


def kafka_python_config(properties: Mapping[str, str], role: Role | None) -> dict[str, KafkaPythonValue]:
    """The configuration of kafka-python's clients, with Hydra's own ``QUEUED`` and ``CA_PEM``.

    Raises:
        UsageError: a property is unknown, Hydra's own, has no counterpart in kafka-python, or an impossible value.
    """
    arguments: dict[str, KafkaPythonValue] = {}
    for given, value in properties.items():
        row = _known(given)
        if not row.python:
            names = (name for other in TABLE if other.python for name in other.names.split())
            raise UsageError(
                f"kafka-python has nothing like the Kafka property {given!r}",
                f"{_nearest(row.name, names)}or use --client confluent-kafka",
            )
        if _is_of(row, role):
            try:
                arguments[row.python_name] = row.read(value)
            except ValueError as e:
                raise UsageError(f"the Kafka property {given!r} has an impossible value", f"give {e}") from None
    if CA_PEM in arguments and any(name.startswith("ssl_") and name != CA_PEM for name in arguments):
        raise UsageError("kafka-python takes ssl.ca.pem without other ssl properties", "name a file: ssl.ca.location")
    return arguments


def kafka_python_named(values: Mapping[str, object], role: Role) -> dict[str, KafkaPythonValue]:
    """Values by librdkafka's names as arguments of ``kafka_python_config``'s kind, without those that it lacks."""
    rows = [(PROPERTIES[name], str(value)) for name, value in values.items()]
    return {row.python_name: row.read(value) for row, value in rows if row.python and _is_of(row, role)}


def _is_of(row: Property, role: Role | None) -> bool:
    """Whether kafka-python's client of that role has the property."""
    return (row.only or row.role) in (None, role)


def _known(name: str) -> Property:
    row = PROPERTIES.get(name)
    if row is None:
        names = (other for free in TABLE if not free.instead for other in free.names.split())
        raise UsageError(
            f"there is no Kafka property {name!r}",
            f"{_nearest(name, names)}names are librdkafka's or the Java client's",
        )
    if row.instead:
        raise UsageError(f"the Kafka property {name!r} cannot be set", row.instead)
    return row


def _nearest(key: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(key, sorted(known), 1, 0.6)
    return f"did you mean {close[0]!r}? " if close else ""
