"""The wheels with the native client inside: what scripts/wheels.py writes and refuses before it compiles."""

from __future__ import annotations

import re
import runpy
import sysconfig
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[1]
SCRIPT = runpy.run_path(str(TREE / "scripts" / "wheels.py"))


@pytest.mark.parametrize(
    ("tool", "machine", "text"),
    [
        ("cc", "x86_64", '"/z" cc -target x86_64-linux-gnu.2.28 -s "$@"'),
        ("c++", "aarch64", '"/z" c++ -target aarch64-linux-gnu.2.28 -s "$@"'),
        ("ar", "aarch64", '"/z" ar "$@"'),
    ],
)
def test_compilers_are_zigs_for_the_old_glibc(tool: str, machine: str, text: str) -> None:
    assert SCRIPT["compiler_text"](Path("/z"), tool, machine).splitlines() == ["#!/bin/sh", f"exec {text}"]


def test_headers_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(SCRIPT["WheelError"], match=r"no CLI/CLI.hpp nlohmann/json.hpp zmq.hpp in .*system-packages"):
        SCRIPT["copy_headers"](tmp_path / "prefix", tmp_path)


def test_without_zig_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(SCRIPT["WheelError"], match="try pip install ziglang"):
        SCRIPT["write_toolchain"](tmp_path / "tools", "x86_64", tmp_path / "prefix")
    assert not (tmp_path / "tools").exists()


def test_every_source_has_its_checksum_and_the_version_that_it_is_called_by() -> None:
    text = (TREE / "native" / "portable" / "CMakeLists.txt").read_text()
    calls = re.findall(r"^hydra_library\((\S+) (\S+) (https://\S+)\s+(\S+)", text, re.MULTILINE)
    assert len(calls) == len(re.findall(r"^hydra_library\(", text, re.MULTILINE)) > 0
    for name, version, url, sha256 in calls:
        assert re.fullmatch(r"[0-9a-f]{64}", sha256), name
        assert url.removesuffix(".tar.gz").endswith(version), name
