"""A password that tests give to a run, and every form of it that may tell it to somebody else."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final
from urllib.parse import quote

PASSWORD: Final = 'gänz/geheim+sehr="lang"'
"""Quotes, a slash and an umlaut: its forms in JSON, in a URL and in base64 all differ."""
_FORMS: Final = {
    "as it is": PASSWORD,
    "in JSON": PASSWORD.replace('"', '\\"'),
    "in JSON of ASCII": PASSWORD.replace('"', '\\"').replace("ä", "\\u00e4"),
    "in a URL": quote(PASSWORD, safe=""),
    "in base64": base64.b64encode(PASSWORD.encode()).decode(),
}


def leaks(data: bytes) -> list[str]:
    """The forms of the password that stand in the data."""
    return [name for name, form in _FORMS.items() if form.encode() in data]


def property_file(folder: Path) -> Path:
    """A file for ``--kafka-prop-file``. Without SASL clients are given the password and do nothing with it."""
    file = folder / "client.properties"
    file.write_text(f"sasl.username=me\nsasl.password={PASSWORD}\n")
    return file
