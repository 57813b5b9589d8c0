from __future__ import annotations

import re
from pathlib import Path

import pytest

from hydra.kafkatest import alike, properties

TREE = Path(__file__).resolve().parents[2]
NATIVE = TREE / "native" / "src" / "kafka" / "alike.h"
ENTRY = re.compile(r'Alike\{"([^"]+)", "([^"]*)"(?:, (0x[0-9a-f]+))?\}')


@pytest.mark.parametrize("table", ["BOTH", "PRODUCER", "CONSUMER"])
def test_the_native_client_is_told_the_same(table: str) -> None:
    if not NATIVE.exists():
        pytest.skip("the source of the native client is not here")
    (part,) = re.findall(rf"// alike: {table}\n(.*?)\n\}};", NATIVE.read_text(encoding="utf-8"), re.DOTALL)
    entries = ENTRY.findall(part)
    assert {name: value for name, value, _ in entries} == getattr(alike, table)
    assert {name: int(since, 16) for name, _, since in entries if since} == {
        name: since for name, since in alike.SINCE.items() if name in getattr(alike, table)
    }


def test_each_is_in_the_docs_with_its_value() -> None:
    page = (TREE / "docs" / "kafka.md").read_text(encoding="utf-8")
    for table in (alike.BOTH, alike.PRODUCER, alike.CONSUMER):
        for name, value in table.items():
            assert f"| `{name}` | {value} |" in page, name


def test_none_is_a_setting_and_none_is_unknown() -> None:
    for name in (*alike.alike("publisher"), *alike.alike("subscriber")):
        assert name not in properties.CONTROLLED
        assert properties.parse([f"{name}=1"]) == {name: "1"}
