"""Settings of brokers and topics that our Kafka knows: names, types and bounds (``conf/kafka/settings.txt``)."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from hydra.kafkatest.jars import conf_folder

Scope = Literal["broker", "topic"]
_WHOLE: Final = {"int", "long", "short"}
_TRUTH: Final = ("true", "false")


@dataclass(frozen=True, slots=True)
class Known:
    """A setting: its type in Kafka's words, and the values that it takes: ``least..most``, ``a|b|c``, "" for any."""

    type: str
    valid: str = ""

    def problem(self, value: str) -> str:
        """Why it does not take the value, "" if it may."""
        if self.type == "boolean":
            return "" if value.strip().lower() in _TRUTH else "must be true or false"
        if self.type in _WHOLE and not re.fullmatch(r"\s*[+-]?\d+\s*", value):
            return "must be a whole number"
        if self.type in _WHOLE or self.type == "double":
            try:
                number = float(value)
            except ValueError:
                return "must be a number"
            least, _, most = self.valid.partition("..")
            if (least and number < float(least)) or (most and number > float(most)):
                return f"must be at least {least}{f' and at most {most}' if most else ''}"
        elif self.valid and value not in self.valid.split("|"):
            return f"must be one of {', '.join(self.valid.split('|'))}"
        return ""


def problem(scope: Scope, name: str, value: str) -> tuple[str, str]:
    """What is wrong with a setting of a broker or a topic, and what to try; two empty texts where nothing is known."""
    known = settings(conf_folder())[scope]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        return f"Kafka knows no setting of this name for a {scope}", f"did you mean {near[0]}?" if near else ""
    what = known[name].problem(value)
    return (f"{what}, not {value!r}", "") if what else ("", "")


@cache
def settings(conf: Path) -> dict[Scope, dict[str, Known]]:
    """All settings of brokers and of topics, by their names."""
    found: dict[Scope, dict[str, Known]] = {"broker": {}, "topic": {}}
    scope: Scope = "broker"
    for line in (conf / "settings.txt").read_text().splitlines():
        if line.startswith("["):
            scope = "topic" if line == "[topic]" else "broker"
        elif line and not line.startswith("#"):
            name, kind, *valid = line.split()
            found[scope][name] = Known(kind, *valid)
    return found
