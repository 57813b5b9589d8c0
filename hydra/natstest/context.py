"""What the command ``nats`` has stored as a context: addresses of servers, a login and files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from hydra.errors import UsageError
from hydra.natstest.settings import TABLE

_KEYS: Final = {
    "url": "servers",
    "user": "username",
    "password": "password",
    "token": "token",
    "nkey": "nkey_file",
    "creds": "creds_file",
    "cert": "cert_file",
    "key": "key_file",
    "ca": "ca_file",
}
"""Keys of a context, and the keys of [nats] with the same meaning."""
_UNUSED: Final = (
    "nsc",
    "socks_proxy",
    "jetstream_domain",
    "jetstream_api_prefix",
    "inbox_prefix",
    "user_jwt",
    "user_seed",
    "tls_first",
)
"""Keys of a context that change how a client connects, and that Hydra does not have."""
_USUAL: Final = {"inbox_prefix": "_INBOX", "jetstream_api_prefix": "$JS.API"}
_DEFAULT: Final = "nats://127.0.0.1:4222"


def folder() -> Path:
    """The folder of contexts: a file NAME.json for each."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "nats" / "context"


def values_of(name: str) -> dict[str, str]:
    """The values of a stored context, by dotted key of a scenario.

    Raises:
        UsageError: there is no such context, or Hydra cannot connect as it demands. The text contains no secret.
    """
    file = folder() / f"{name}.json"
    if file.parent != folder() or not file.is_file():
        known = ", ".join(sorted(each.stem for each in folder().glob("*.json"))) or "none"
        raise UsageError(f"{folder()} has no context {name!r}", f"known contexts: {known}")
    try:
        stored = json.loads(file.read_bytes())
    except (OSError, ValueError) as e:
        raise UsageError(f"{file} cannot be read: {e}", "nats context edit repairs it") from None
    if not isinstance(stored, dict) or any(not isinstance(stored.get(key, ""), str) for key in _KEYS):
        raise UsageError(f"{file} is no context of nats", "nats context edit repairs it")
    for key in _UNUSED:
        if stored.get(key, "") not in ("", False, None, _USUAL.get(key)):
            raise UsageError(
                f"the context {name!r} has {key}, which Hydra does not use", "name the servers with --servers"
            )
    found = {own_name: stored[key] for key, own_name in _KEYS.items() if stored.get(key)}
    for key, value in found.items():
        if key.endswith("_file"):
            if "://" in value:
                raise UsageError(
                    f"the context {name!r} has {key} elsewhere than in a file",
                    f"name a file with --{key.replace('_', '-')}",
                )
            found[key] = str(Path(value).expanduser())
    return {f"{TABLE}.{key}": value for key, value in {"servers": _DEFAULT, **found}.items()}
