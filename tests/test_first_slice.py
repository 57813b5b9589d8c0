"""The C program of docs/another-client.md makes what the golden files hold."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    path = tmp_path_factory.mktemp("c") / "first_slice"
    words = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-o", str(path), str(ROOT / "docs/examples/first_slice.c")]
    subprocess.run([compiler, *words], check=True)
    return path


def output_of(program: Path, lines: list[str]) -> list[str]:
    return subprocess.check_output([program], input="\n".join(lines), text=True).split()


@pytest.mark.tier("test")
def test_headers_are_the_bytes_of_the_golden_files(program: Path) -> None:
    cases = json.loads((GOLDEN / "header" / "headers.json").read_text())
    lines = [f"header {c['epoch']} {c['publisher']} {c['sequence']} {c['time_ns']}" for c in cases]
    assert output_of(program, lines) == [(GOLDEN / "header" / c["file"]).read_bytes()[:24].hex() for c in cases]


@pytest.mark.tier("test")
def test_every_latency_is_counted_where_the_golden_files_count_it(program: Path) -> None:
    for file in sorted((GOLDEN / "histogram").glob("*.json")):
        case = json.loads(file.read_text())
        late = [(batch["now_ns"] - then) // 1000 for batch in case["batches"] for then in batch["times_ns"]]
        counted: dict[int, int] = {}
        for index in map(int, output_of(program, [f"index {us}" for us in late])):
            counted[index] = counted.get(index, 0) + 1
        assert [n for pair in sorted(counted.items()) for n in pair] == case["counts"], file.stem
