"""A password that tests give to a run, and every form in which a secret may be written."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

PASSWORD: Final = 'gänz/geheim+sehr="lang"'
"""Quotes, a slash and an umlaut: its forms in JSON, in a URL and in base64 all differ."""


def _forms(secret: str) -> Iterator[str]:
    """As it is, in JSON, in JSON of ASCII, in a URL, and in base64."""
    yield secret
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode()


def leaks(data: bytes, secrets: Iterable[str] = (PASSWORD,)) -> list[str]:
    """The forms of the secrets that stand in the data."""
    return [form for secret in secrets for form in _forms(secret) if form.encode() in data]


def property_file(folder: Path) -> Path:
    """A file for ``--kafka-prop-file``. Without SASL clients are given the password and do nothing with it."""
    file = folder / "client.properties"
    file.write_text(f"sasl.username=me\nsasl.password={PASSWORD}\n")
    return file
