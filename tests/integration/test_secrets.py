"""Runs with passwords and keys: nobody but the clients gets to know them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from hydra.system.server_access import secret_lines
from tests.integration.command import background, hydra
from tests.integration.secret import PASSWORD, leaks, property_file
from tests.mqtttest.secure import secure_servers as mqtt_servers
from tests.natstest.secure import secure_servers as nats_servers
from tests.servers.access_cases import USER
from tests.suite.native_client import native_client
from tests.suite.waiting import LONG_S, wait_until

pytestmark = pytest.mark.tier("all")
SMALL = ("--clients", "2", "--rate", 200, "--duration", 1, "--set", "warmup_s=0")


def seen_and_kept(folder: Path, arguments: Sequence[object]) -> tuple[dict[int, bytes], list[Path]]:
    """A run to its end and its report: command line and environment of each process, and each file that it leaves."""
    run, log = folder / "run", folder / "log"
    words: dict[int, bytes] = {}
    with background(*arguments, *SMALL, "--out", run, log=log) as command:

        def ended() -> bool:
            for process in command.family():
                try:
                    environment = Path(f"/proc/{process.pid}/environ")
                    words[process.pid] = Path(f"/proc/{process.pid}/cmdline").read_bytes() + environment.read_bytes()
                    status = environment.stat()
                except OSError:
                    continue  # it ended meanwhile
                # Nobody else may read it: the run's client key stands there.
                assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (os.getuid(), 0o400)
            return command.process.poll() is not None

        wait_until(ended, "the end of the run", LONG_S)
        assert command.wait() == 0, command.output()
    hydra("report", run)
    kept = [path for path in (*run.rglob("*"), log) if path.is_file()]
    assert {path.name for path in kept} >= {"run.db", "report.html", "report.ipynb", "stderr", "log"}
    return words, kept


def test_a_password_is_nowhere_but_with_the_clients(tmp_path: Path) -> None:
    arguments = ("kafka-fixed", "--client", "confluent-kafka", "--kafka-prop-file", property_file(tmp_path))
    words, kept = seen_and_kept(tmp_path, arguments)
    # A supervisor and its Java, and of each role a parent, a relay and its clients.
    assert len(words) >= 2 + 3 + 4
    assert {pid: leaks(text) for pid, text in words.items() if leaks(text)} == {}
    assert {path: leaks(path.read_bytes()) for path in kept if leaks(path.read_bytes())} == {}


@pytest.mark.parametrize(
    ("system", "client"), [("nats", "nats-py"), ("nats", "native"), ("mqtt", "paho-mqtt"), ("mqtt", "native")]
)
def test_a_login_and_a_key_are_nowhere_but_with_the_clients(
    system: str, client: str, needs_nats: None, tmp_path: Path
) -> None:
    if client == "native" and native_client(f"{system}-pub") is None:
        pytest.skip("the native client is not built")
    folder = tmp_path / "servers"
    with nats_servers(folder, PASSWORD, ["user"]) if system == "nats" else mqtt_servers(folder, PASSWORD) as secure:
        scheme = {"nats": "tls", "mqtt": "mqtts"}[system]
        address = f"{scheme}://{quote(USER)}:{quote(PASSWORD, safe='')}@{secure.addresses['user']}"
        files = ("--ca-file", secure.file("ca.pem"), "--cert-file", secure.file("client.pem"))
        key = secure.file("client.key")
        login = (f"{system}-fixed", "--client", client, "--servers", address, *files, "--key-file", key)
        words, kept = seen_and_kept(tmp_path, login)
        parts = [line.encode() for line in secret_lines(Path(key).read_text())]

    def found(text: bytes) -> list[str]:
        return [*leaks(text), *(part.decode() for part in parts if part in text)]

    assert len(words) >= 3 + 4
    assert {pid: found(text) for pid, text in words.items() if found(text)} == {}
    assert {path: found(path.read_bytes()) for path in kept if found(path.read_bytes())} == {}
