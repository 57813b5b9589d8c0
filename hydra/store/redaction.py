"""Hides secrets in everything that is stored or printed, by their keys and by their values."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

from hydra.config import plugins
from hydra.config.fields import field_of, shared_table
from hydra.config.layers import parse_set
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.errors import ConfigError, HydraError
from hydra.options.plugin_commands import commands, params_of
from hydra.options.shared_flags import KEY_VALUE, SET, TYPED

COMMAND: Final = "--run"
"""The flag whose value is a whole command."""
HIDDEN: Final = "***"
"""The text that replaces a secret."""

_LEAST: Final = 4
"""The minimum length of a secret that is found by its value; shorter ones occur in ordinary words and numbers."""

_LOGIN: Final = re.compile(r"(://)[^/?#\s@'\"]+@")
"""User and password in front of the host of a URL."""

_ASSIGNED: Final = re.compile(r"""(?<![\w.-])[\w.-]++["']?\s*[=:]\s*""")
"""A key and the characters between the key and its value."""


class Redactor:
    """Hides the secrets of a run.

    Args:
        secrets: secret values. A value with fewer than 4 characters is hidden under its key only.
        users: names that may stand before a secret in HTTP's basic authentication.
    """

    def __init__(self, secrets: Iterable[str], users: Iterable[str] = ()) -> None:
        names = [user for user in users if user]
        found = {form for secret in secrets for form in _forms(secret, names)}
        # The longest form comes first, because one secret may be the beginning of another.
        forms = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, forms))) if forms else None

    @classmethod
    def of_run(cls, resolved: ResolvedScenario, secrets: Iterable[str] = (), users: Iterable[str] = ()) -> Redactor:
        """A redactor for the texts of a run, with the secrets of its scenario and of the engine."""
        return cls.of_runs([resolved], secrets, users)

    @classmethod
    def of_runs(
        cls, resolved: Iterable[ResolvedScenario], secrets: Iterable[str] = (), users: Iterable[str] = ()
    ) -> Redactor:
        """A redactor for the texts of a command, with the secrets of all its scenarios and of the engine."""
        known = [login for each in resolved for login in each.system.settings.logins(each.scenario)]
        return cls([*(secret for _, secret in known if secret), *secrets], [*(user for user, _ in known), *users])

    @classmethod
    def of_command(cls, words: Sequence[str]) -> Redactor:
        """A redactor for texts before the scenario is known, with the secrets on the command line, misspelt or not."""
        return cls(_on_command_line(words))

    def text(self, text: str) -> str:
        """The text with all secrets hidden, also those encoded for JSON, a URL or in base64."""
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        return _LOGIN.sub(rf"\1{HIDDEN}@", text)

    @contextlib.contextmanager
    def in_errors(self) -> Iterator[None]:
        """Hides every secret in errors that are raised in its block."""
        try:
            yield
        except HydraError as e:
            e.what, e.remedy = self.text(e.what), self.text(e.remedy)
            raise

    def value(self, value: object, key: str = "") -> object:
        """A JSON or TOML value with every secret in it hidden.

        Args:
            value: the value; tables and lists are searched, and keys stay.
            key: the dotted key of the value.
        """
        if is_secret(key):
            return HIDDEN
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {name: self.value(inner, f"{key}.{name}" if key else str(name)) for name, inner in value.items()}
            case list() | tuple():
                return [self.value(inner, key) for inner in value]
            case _:
                return value

    def command_line(self, words: Sequence[str]) -> list[str]:
        """The words of a command; every value assigned to a secret key is hidden."""
        hidden: list[str] = []
        before, assigning = "", _assigning(words)
        for word in words:
            flag, equals, rest = word.partition("=")
            if before in assigning:
                hidden.append(self._assignment(word))
            elif before == COMMAND:
                hidden.append(self.command(word))
            elif equals and flag in assigning:
                hidden.append(f"{flag}={self._assignment(rest)}")
            elif equals and flag == COMMAND:
                hidden.append(f"{flag}={self.command(rest)}")
            else:
                hidden.append(self.text(word))
            before = "" if before in (*assigning, COMMAND) else word
        return hidden

    def command(self, text: str) -> str:
        """A whole command in one text, with its secrets hidden as in :meth:`command_line`."""
        words = _words(text)
        hidden = self.command_line(words)
        # Joined again only if necessary, because a shell has several notations for a word.
        return self.text(text) if hidden == [self.text(word) for word in words] else shlex.join(hidden)

    def _assignment(self, text: str) -> str:
        key, equals, _ = text.partition("=")
        if equals and is_secret(key):
            return f"{key}={HIDDEN}"
        try:
            name, value = parse_set(text)
        except ConfigError:
            return self.text(text)
        shown = self.value(value, name)
        # The value is written again only if necessary, because TOML has several notations for a secret.
        return self.text(text) if shown == value else f"{name}={json.dumps(shown, default=str)}"


def typed() -> list[str]:
    """The words of this command as the user typed them, on this machine or where the command was handed over."""
    words = os.environ.get(TYPED)
    return ["hydra", *(json.loads(words) if words else sys.argv[1:])]


def is_secret(key: str) -> bool:
    """Whether the value of a (dotted) key is secret in any system; a key that all systems share is none."""
    if field_of(key, shared_table(key.rpartition(".")[0])) is not None:
        return False
    return any(spec.settings.is_secret(key) for spec in plugins.systems().values())


def _assigning(words: Sequence[str]) -> set[str]:
    """The flags whose value is KEY=VALUE: ``--set``, and the flags of the named command, or of all commands."""
    known = commands({})
    # The command follows the program; hydra run may have the flags of any command.
    named = [known[word] for word in words[1:2] if word in known] or known.values()
    params = [param for load in named for param in params_of(load()) if param.metavar == KEY_VALUE]
    return {SET, *(name for param in params for name in param.opts)}


def _words(text: str) -> list[str]:
    """The words of a command in one text; [] if its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _forms(secret: str, users: Sequence[str]) -> Iterator[str]:
    """Every form in which a secret may be written."""
    for value in {secret, secret.strip()}:
        if len(value) < _LEAST or value == HIDDEN:
            continue
        yield value
        yield repr(value)[1:-1]
        yield json.dumps(value)[1:-1]
        yield json.dumps(value, ensure_ascii=False)[1:-1]
        octets = value.encode(errors="surrogateescape")  # a command line may hold what is not UTF-8
        for escaped in (quote(octets), quote(octets, safe=""), quote_plus(octets)):
            yield escaped
            yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), escaped)
        for plain in (value, *(f"{user}:{value}" for user in users)):
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                encoded = encode(plain.encode(errors="surrogateescape")).decode()
                yield encoded
                yield encoded.rstrip("=")


def _on_command_line(words: Sequence[str]) -> Iterator[str]:
    assigning = _assigning(words)
    for number, word in enumerate(words):
        if word.startswith(f"{COMMAND}=") or (number and words[number - 1] == COMMAND):
            yield from _on_command_line(_words(word.removeprefix(f"{COMMAND}=")))
        ends = [m.end() for m in _ASSIGNED.finditer(word) if is_secret(m[0].rstrip("\"'=: \t"))]
        for end in ends:
            rest = word[end:]
            yield rest
            yield rest.strip(" \"'{}[]")
            quoted = re.match(r"""(["'])(.*?)\1""", rest, re.DOTALL)
            if quoted:
                yield quoted[2]
        # Without an assignment the next word may be the secret.
        assigns = word.startswith(tuple(f"{flag}=" for flag in assigning)) or words[number - 1] in assigning
        if assigns and not ends and is_secret(word):
            yield from words[number + 1 : number + 2]
