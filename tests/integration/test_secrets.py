"""Runs with passwords and keys: only the clients get them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from hydra.system.server_access import secret_lines
from tests.integration.command import background, hydra
from tests.integration.secret import PASSWORD, leaks, property_file
from tests.mqtttest.secure import secure_servers as mqtt_servers
from tests.natstest.secure import TOKEN, store_context
from tests.natstest.secure import secure_servers as nats_servers
from tests.servers.access_cases import USER, SecureServers
from tests.suite.native_client import native_client
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")
SMALL = ("--clients", "2", "--rate", 200, "--duration", 1, "--set", "warmup_s=0")


def seen_and_kept(folder: Path, arguments: Sequence[object], **env: str) -> tuple[dict[int, bytes], list[Path]]:
    """A run to its end and its report: command line and environment of each process, and each file that it leaves."""
    run, log = folder / "run", folder / "log"
    words: dict[int, bytes] = {}
    with background(*arguments, *SMALL, "--out", run, log=log, env=env) as command:
        own = Path(f"/proc/{command.process.pid}/cmdline").read_bytes()

        def ended() -> bool:
            for process in command.family():
                try:
                    environment = Path(f"/proc/{process.pid}/environ")
                    line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
                    if line == own:
                        continue  # forked by the command, which begins another program just now
                    words[process.pid] = line + environment.read_bytes()
                    status = environment.stat()
                except OSError:
                    continue  # it ended meanwhile
                # No other user may read it: the run's client key stands there.
                assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (os.getuid(), 0o400)
            return command.process.poll() is not None

        wait_until(ended, "the end of the run", LONG_S)
        assert command.wait() == 0, command.output()
    hydra("report", run)
    kept = [path for path in (*run.rglob("*"), log) if path.is_file()]
    assert {path.name for path in kept} >= {"run.db", "report.html", "report.ipynb", "stderr", "log"}
    return words, kept


def assert_nowhere(secrets: Sequence[str], words: Mapping[int, bytes], kept: Sequence[Path]) -> None:
    """No process shows a secret, and no file contains one."""
    found = {str(pid): leaks(text, secrets) for pid, text in words.items()}
    found |= {str(path): leaks(path.read_bytes(), secrets) for path in kept}
    assert {where: forms for where, forms in found.items() if forms} == {}


def test_a_password_is_nowhere_but_with_the_clients(tmp_path: Path) -> None:
    arguments = ("kafka-fixed", "--client", "confluent-kafka", "--kafka-prop-file", property_file(tmp_path))
    words, kept = seen_and_kept(tmp_path, arguments)
    # A supervisor and its Java, and of each role a parent, a relay and its clients.
    assert len(words) >= 2 + 3 + 4
    assert_nowhere([PASSWORD], words, kept)


def login_of(
    kind: str, scheme: str, at: str, secure: SecureServers, home: Path
) -> tuple[Sequence[object], Sequence[str]]:
    """The flags of a login at an address, and its secrets; a context is stored below ``home``."""
    names = {"ca": "ca.pem", "cert": "client.pem", "key": "client.key"}
    files = {each: secure.file(name) for each, name in names.items()}
    tls = [word for each, file in files.items() for word in (f"--{each}-file", file)]
    key = list(secret_lines(Path(files["key"]).read_text()))
    match kind:
        case "token":
            return ("--servers", at, "--token-file", secure.file("token")), [TOKEN]
        case "NKEY":
            file = secure.file("user.nk")
            return ("--servers", f"tls://{at}", *tls, "--nkey-file", file), [Path(file).read_text().strip(), *key]
        case "credentials":
            file = secure.file("me.creds")
            jwt, seed = (line for line in Path(file).read_text().splitlines() if line and not line.startswith("-"))
            return ("--servers", at, "--creds-file", file), [jwt, seed]
        case "context":
            store_context(home, "mine", {"url": f"tls://{at}", "user": USER, "password": PASSWORD, **files})
            return ("--nats-context", "mine"), [PASSWORD, *key]
        case _:
            address = f"{scheme}://{quote(USER)}:{quote(PASSWORD, safe='')}@{at}"
            return ("--servers", address, *tls), [PASSWORD, *key]


@pytest.mark.parametrize(
    ("system", "client", "login", "server"),
    [
        ("nats", "nats-py", "address", "user"),
        ("nats", "native", "address", "user"),
        ("nats", "nats-py", "token", "plain"),
        ("nats", "native", "NKEY", "user"),
        ("nats", "nats-py", "credentials", "credentials"),
        ("nats", "native", "context", "user"),
        ("mqtt", "paho-mqtt", "address", "user"),
        ("mqtt", "native", "address", "user"),
    ],
)
def test_a_login_and_a_key_are_nowhere_but_with_the_clients(
    system: str, client: str, login: str, server: str, needs_nats: None, tmp_path: Path
) -> None:
    if client == "native" and native_client(f"{system}-pub") is None:
        pytest.skip("the native client is not built")
    folder, home = tmp_path / "servers", tmp_path / "home"
    with nats_servers(folder, PASSWORD, [server]) if system == "nats" else mqtt_servers(folder, PASSWORD) as secure:
        scheme = {"nats": "tls", "mqtt": "mqtts"}[system]
        flags, secrets = login_of(login, scheme, secure.addresses[server], secure, home)
        command = (f"{system}-fixed", "--client", client, *flags)
        words, kept = seen_and_kept(tmp_path, command, XDG_CONFIG_HOME=str(home))
    assert len(words) >= 3 + 4
    assert_nowhere(secrets, words, kept)
