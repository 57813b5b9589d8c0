"""No secret is written down, in whatever spelling it was given."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hydra.cli.error_exit import may_hold_secrets
from hydra.cli.main import cli
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError, HydraError
from hydra.events.group_events import ClientError
from hydra.events.run_events import PhasesTimed
from hydra.kafkatest.commands import kafka_fixed
from hydra.kafkatest.settings import spec_of
from hydra.model import Scenario
from hydra.options.scenario_commands import RunCommands
from hydra.run import launcher
from hydra.run.launcher import RunRequest
from hydra.run.run_metadata import scenario_of
from hydra.store.database import RunStore
from hydra.store.redaction import HIDDEN, Redactor
from tests.integration.command import refusal
from tests.run.begun_runs import known_of, stored

SECRETS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=4, max_size=24),
    st.text("aA1+/=%&'\"\\{}[],.: @#$~é漢", min_size=4, max_size=24),
).filter(lambda s: s == s.strip() and s.count("*") < 3)


def toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def escaped(text: str) -> str:
    """TOML with every character as its code point."""
    return '"' + "".join(f"\\U{ord(c):08x}" for c in text) + '"'


SPELLINGS: dict[str, Callable[[str], list[str]]] = {
    "flag, two words": lambda s: ["--kafka-prop", f"sasl.password={s}"],
    "flag, one word": lambda s: [f"--kafka-prop=sasl.password={s}"],
    "flag, spaces": lambda s: ["--kafka-prop", f" sasl.password = {s} "],
    "dotted, string": lambda s: ["--set", f"kafka.properties.sasl.password={toml(s)}"],
    "dotted, one word": lambda s: [f"--set=kafka.properties.sasl.password={toml(s)}"],
    "dotted, spaces": lambda s: ["--set", f" kafka . properties . sasl . password = {toml(s)} "],
    "dotted, code points": lambda s: ["--set", f"kafka.properties.sasl.password={escaped(s)}"],
    "table, string": lambda s: ["--set", f'kafka.properties={{"sasl.password"={toml(s)}}}'],
    "table, dotted": lambda s: ["--set", f"kafka.properties={{sasl.password={escaped(s)}}}"],
    "table of tables": lambda s: [f"--set=kafka={{properties={{sasl={{password={toml(s)}}}}}}}"],
    "a part of a secret": lambda s: ["--set", f"kafka.properties={{ssl.key.pem={toml(f'-----{chr(9)}{s}')}}}"],
    "twice": lambda s: ["--kafka-prop", f"sasl.password={s}", "--set", f"description={toml(f'it is {s}')}"],
    "in a property that is none": lambda s: [
        *("--kafka-prop", f"sasl.password={s}"),
        *("--kafka-prop", f"sasl.oauthbearer.token.endpoint.url=https://h/?p={quote(s, safe='')}&q={quote_plus(s)}"),
        *("--kafka-prop", f"sasl.username={base64.b64encode(s.encode()).decode()}"),
    ],
}


def written(arguments: list[str]) -> tuple[str, Scenario]:
    """What ``hydra kafka-fixed`` writes into its run before it begins."""
    found: list[tuple[str, Scenario]] = []

    def run(name: str | Path, replaced: Mapping[str, object], flags: Mapping[str, Any]) -> None:
        scenario = load_scenario(name, replaced)
        known = known_of(scenario, replaced, "kafka-fixed", *arguments)
        found.append((msgspec.json.encode(known).decode(), scenario))

    unused = Mock(side_effect=AssertionError("no experiment was asked for"))
    kafka_fixed.main(arguments, standalone_mode=False, obj=RunCommands(run, unused, print, print, str))
    return found[0]


@cache
def without_secret(spelling: str) -> str:
    """What stands there whatever the secret is."""
    return written(SPELLINGS[spelling]("S€CRET-OF-NOBODY"))[0]


def forms(secret: str) -> set[str]:
    """What a program may make of a secret."""
    encoded = {base64.b64encode(secret.encode()).decode(), base64.urlsafe_b64encode(secret.encode()).decode()}
    quoted = {quote(secret, safe=""), quote_plus(secret), toml(secret)[1:-1], repr(secret)[1:-1]}
    return {secret, *quoted, *encoded, *(code.rstrip("=") for code in encoded)}


@pytest.mark.parametrize("spelling", SPELLINGS)
@settings(max_examples=10)
@given(secret=SECRETS)
def test_the_facts_of_a_run_hold_no_secret(spelling: str, secret: str) -> None:
    known, scenario = written(SPELLINGS[spelling](secret))
    assert any(secret in value for value in spec_of(scenario).properties.values()), "it reaches the clients"
    # In Hydra's words a secret that is a part of them is not hidden.
    own = without_secret(spelling)
    spelt = {json.dumps(toml(secret)[1:-1], ensure_ascii=False)[1:-1], json.dumps(escaped(secret)[1:-1])[1:-1]}
    for form in forms(secret) | spelt:
        assert form not in known or form in own
    assert HIDDEN in known


@settings(max_examples=15)
@given(secret=SECRETS, user=st.text("abc@:é", max_size=8), before=st.text("ab \n%"), after=st.text("ab \n%"))
def test_no_text_holds_a_secret_whatever_it_was_encoded_with(secret: str, user: str, before: str, after: str) -> None:
    redactor = Redactor([secret], [user])
    login = f"{user}:{secret}" if user else secret
    for form in forms(secret) | {base64.b64encode(login.encode()).decode()}:
        assume(form not in before + HIDDEN + after)
        assert form not in redactor.text(f"{before}<{form}>{after}")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--set", "settings.rate=5", "--clients=3,6"], ["--set", "settings.rate=5", "--clients=3,6"]),
        (["--artifact", "https://me:geheim@h:1/a"], ["--artifact", f"https://{HIDDEN}@h:1/a"]),
        (["--kafka-prop", "sasl.password=abc"], ["--kafka-prop", f"sasl.password={HIDDEN}"]),
        (["--set=kafka.properties.sasl.password=1e3"], [f"--set=kafka.properties.sasl.password={HIDDEN}"]),
        (
            ["--set", "kafka={partitions=3,properties={sasl.password='a'}}"],
            ["--set", f'kafka={{"partitions": 3, "properties": {{"sasl": {{"password": "{HIDDEN}"}}}}}}'],
        ),
    ],
)
def test_a_command_line_keeps_what_is_not_secret(words: list[str], kept: list[str]) -> None:
    """Secrets of three characters and fewer are hidden under their key, and nowhere else: "abc" is in many words."""
    assert Redactor(["abc", "a"]).command_line(words) == kept


@pytest.mark.parametrize(
    "words",
    [
        ["--set", "kafka.properties.sasl.password:geheim"],
        ["--set", 'kafka.properties.sasl.password="geheim'],
        ["--set", "kafka.bootstrap={sasl.password='geheim'}"],
        ["--set=kafka.properties={sasl.password='geheim'"],
        ["--set", "kafka.propertis={sasl.password='geheim'}"],
        ["--set", "kafka={bootstrap={sasl.password='geheim'}}"],
        ["--set", "sasl.password", "geheim"],
        ["--kafka-prop", "sasl.password", "geheim"],
        ["--kafka-prop", "sasl.password:geheim"],
        ["--kafka-prop", "sasl.pasword=geheim"],
        ["--kafka-prop", "sasl.password=geheim", "--rate", "geheim"],
    ],
)
def test_a_refusal_does_not_repeat_a_secret(words: list[str]) -> None:
    assert may_hold_secrets("", ["kafka-fixed", *words])
    assert "geheim" not in Redactor.of_command(words).text(refusal("kafka-fixed", *words))


def test_events_of_a_run_hold_no_secret(tmp_path: Path) -> None:
    """A library's error may repeat what it was given."""
    with RunStore.create(tmp_path, {}) as store:
        store.redact = Redactor(["geheim"]).text
        store.add_event(ClientError(7, 'Invalid value "geheim" for sasl.password'))
        store.add_event(PhasesTimed(1, [("geheim", 1.0)]))
        error, phases = store.events()
        assert error.text == f'client 7: Invalid value "{HIDDEN}" for sasl.password'
        assert phases.data.fields == {"epoch": 1, "took_s": [[HIDDEN, 1.0]]}
    assert b"geheim" not in (tmp_path / "run.db").read_bytes()


@pytest.mark.parametrize(
    "first",
    [
        {"kafka.properties": {"sasl.password": "geheim", "socket.timeout.ms": "1"}},
        {"kafka.properties.sasl.password": "geheim", "kafka.properties.socket.timeout.ms": 1},
        {"kafka": {"properties": {"sasl": {"password": "geheim"}, "socket.timeout.ms": 1}}},
    ],
    ids=["flags", "dotted keys", "tables"],
)
def test_a_run_is_resumed_with_its_secrets_given_again(tmp_path: Path, first: dict[str, object]) -> None:
    scenario = stored(tmp_path, first)
    with pytest.raises(ConfigError, match=r"secrets are not stored with a run: kafka\.properties\.sasl\.password"):
        scenario_of(tmp_path, "kafka-fixed", {})
    assert scenario_of(tmp_path, "kafka-fixed", first).scenario == scenario
    assert scenario_of(tmp_path, "kafka-fixed", {"kafka.properties.sasl.password": "geheim"}).scenario == scenario


def test_what_was_hidden_is_not_taken_for_a_value(tmp_path: Path) -> None:
    """A password that is a part of an address hides that part of it, too."""
    properties = {"sasl.username": "me", "sasl.password": "kafka"}
    first: dict[str, object] = {"kafka.bootstrap": "kafka1:9092", "kafka.properties": properties}
    scenario = stored(tmp_path, first)
    with pytest.raises(ConfigError, match=r"not stored with a run: kafka\.bootstrap"):
        scenario_of(tmp_path, "kafka-fixed", {"kafka.properties": properties})
    assert scenario_of(tmp_path, "kafka-fixed", first).scenario == scenario


@pytest.mark.parametrize("password", ["geheim99", "q~7"])
def test_no_run_of_a_comparison_stores_the_secret_of_another_one_and_it_is_given_again(
    password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored_only(resolved: ResolvedScenario, request: RunRequest, redactor: Redactor, _: object) -> NoReturn:
        launcher._store(resolved, request, redactor).close()
        raise HydraError("stored")

    monkeypatch.setattr(launcher, "_launch", stored_only)
    monkeypatch.setattr(launcher, "system_for", Mock())
    first = "mqtt-fixed --servers h:1 --clients 1"
    second = f"{first} --set mqtt.username=me --set mqtt.password={password} --rate 1000"
    words = ["compare", "--run", f"{first} --rate 1000", f"--run={second}", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["hydra", *words])
    assert password not in Redactor.of_command(["hydra", *words]).text(f"what about {password}?") or len(password) < 4
    with pytest.raises(HydraError, match="stored"):
        cli(words, standalone_mode=False)
    resumed = ["compare", "--resume", str(tmp_path / "out")]
    with pytest.raises(ConfigError, match=r"secrets are not stored with a run: mqtt\.password"):
        cli(resumed, standalone_mode=False)
    for again in (["--set", f"mqtt.password={password}"], words[1:4]):
        with pytest.raises(HydraError, match="stored"):
            cli([*resumed, *again], standalone_mode=False)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any(path.name == "run.db" for path in files)
    assert not [path for path in files if password.encode() in path.read_bytes()]


def test_hydra_run_hides_what_any_systems_flags_assign() -> None:
    """Whatever other words stand there: a folder may be called like a command."""
    words = ["hydra", "run", "mine.toml", "--out", "ps", "--kafka-prop", "sasl.password=geheim123"]
    assert Redactor([]).command_line(words)[-1] == f"sasl.password={HIDDEN}"
    assert "geheim123" not in Redactor.of_command(words).text("what about geheim123?")
