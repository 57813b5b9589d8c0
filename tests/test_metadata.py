"""The facts of the project in files at the top agree: name, version, licence, interpreters."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]


def cited(key: str) -> str:
    found = re.search(rf'^{key}: "?([^"\n]+)"?$', (TREE / "CITATION.cff").read_text(), re.MULTILINE)
    assert found, key
    return found[1]


def test_the_citation_names_this_version_and_licence() -> None:
    assert cited("version") == PROJECT["version"]
    assert cited("license") == PROJECT["license"]


def test_the_newest_heading_of_the_changelog_is_this_version() -> None:
    (first, *_) = re.findall(r"^## \[([^\]]+)\]", (TREE / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first == PROJECT["version"]


def test_the_licence_is_the_one_that_is_named() -> None:
    text = (TREE / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]


def test_badges_say_what_the_metadata_says() -> None:
    images = TREE / "docs" / "images"
    assert f">{PROJECT['license']}<" in (images / "licence.svg").read_text()
    assert f">{PROJECT['requires-python'].replace('>=', '≥ ')}<" in (images / "python.svg").read_text()


def test_pictures_of_the_readme_are_there_and_small() -> None:
    named = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (TREE / "README.md").read_text())
    assert named
    for name in named:
        assert (TREE / name).stat().st_size < 150_000, name


def test_the_readme_stays_short() -> None:
    assert len((TREE / "README.md").read_text().splitlines()) < 200
