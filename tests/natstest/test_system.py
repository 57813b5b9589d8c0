"""NATS as a system: what it tells of a step, on a server of its own and on the user's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import ServerError, StepError, UsageError
from hydra.model import Settings, with_values
from hydra.natstest import streams, watch
from hydra.natstest.carried import End, Step
from hydra.natstest.connection import Connection
from hydra.natstest.records import Records
from hydra.natstest.streams import Streams
from hydra.natstest.system import NatsSystem
from hydra.servers.embedded import EmbeddedServer
from hydra.system import wait_alone
from tests.natstest.ends import kill


def opened(folder: Path, address: str) -> NatsSystem:
    system = NatsSystem(load_scenario("nats-fixed", {"nats.servers": address}))
    system.open("a run: with ünusual.name", folder, wait_alone)
    return system


def settings(system: NatsSystem, **values: object) -> Settings:
    return with_values(system._scenario.settings, values)


def publish(step: Step, count: int) -> None:
    connection = Connection("test")
    connection.open(step.servers)
    stream = connection.client.jetstream()
    for _ in range(count):
        connection.do(stream.publish(step.subject, b"x"), 5)
    connection.end()


def test_core_has_a_subject_and_no_end(server: EmbeddedServer, tmp_path: Path) -> None:
    system = opened(tmp_path, server.address)
    step = msgspec.convert(system.configure(settings(system)), Step)
    assert (step.servers, step.stream) == ([server.address], "")
    assert system.finish() is None
    assert system.log_end(settings(system, publish_acks=False)) is None
    system.close()


@pytest.mark.parametrize("storage", ["memory", "file"])
def test_a_stream_goes_on_from_step_to_step_and_is_deleted(
    server: EmbeddedServer, tmp_path: Path, storage: str
) -> None:
    system = opened(tmp_path, server.address)
    asked = settings(system, mode="jetstream", storage=storage)
    first = msgspec.convert(system.configure(asked), Step)
    publish(first, 3)
    assert msgspec.convert(system.finish(), End).last == 3
    second = msgspec.convert(system.configure(asked), Step)
    assert (first.first, second.first, second.stream) == (1, 4, first.stream)
    assert system.log_end(asked) == 3
    assert system.log_end(settings(system, mode="jetstream", storage=storage, publish_acks=False)) == 3
    system.close()
    assert system.warnings() == []
    asked_again = Streams([server.address])
    assert first.stream not in asked_again.names()
    asked_again.close()


def test_what_makes_a_subscriber_subscribe_anew_takes_another_proof(server: EmbeddedServer, tmp_path: Path) -> None:
    system = opened(tmp_path, server.address)
    plain = system.proof(settings(system))
    assert system.proof(settings(system, publish_window=7, publish_acks=False)) == plain
    assert system.proof(settings(system, mode="jetstream")) != plain
    assert system.proof(settings(system, pending_messages=7)) != plain
    system.close()


@pytest.mark.processes
def test_a_server_of_our_own_that_died_is_replaced(tmp_path: Path, needs_nats: None) -> None:
    system = NatsSystem(load_scenario("nats-fixed", {"settings.mode": "jetstream"}))
    system.open("run", tmp_path, wait_alone)
    try:
        before = msgspec.convert(system.configure(system._scenario.settings), Step)
        assert isinstance(system._own, EmbeddedServer)
        kill(system._own)
        assert wait_alone(lambda: system.failure() != "", 5)
        with pytest.raises(StepError):
            system.finish()
        system.revive()
        assert system.failure() == ""
        after = msgspec.convert(system.configure(system._scenario.settings), Step)
        assert (after.servers != before.servers, after.first) == (True, 1)
    finally:
        system.close()
    assert list(tmp_path.glob("nats-*")) == []


@pytest.mark.parametrize("mode", ["core", "jetstream"])
def test_a_server_of_the_users_that_died_fails_the_step(
    own_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(streams, "QUESTION_TIMEOUT_S", 0.5)
    monkeypatch.setattr(watch, "EVERY_S", 0.1)
    monkeypatch.setattr(watch, "GONE_AFTER_S", 0.3)
    scenario = load_scenario("nats-fixed", {"nats.servers": own_server.address, "ready_timeout_s": 0.1})
    system = NatsSystem(scenario)
    system.open("run", tmp_path, wait_alone)
    system.configure(settings(system, mode=mode))
    system.finish()
    assert system.failure() == ""
    kill(own_server)
    # Nobody asked it anything: it is told while the step goes on.
    assert wait_alone(lambda: system.failure() != "", 10)
    assert system.failure() == f"NATS at {own_server.address} is gone"
    with pytest.raises(StepError, match="is gone"):
        system.finish()
    with pytest.raises(ServerError, match="does not answer"):
        system.revive()
    system.close()
    assert len(system.warnings()) == (1 if mode == "jetstream" else 0)


def test_nobody_at_the_users_address_is_theirs_to_mend() -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:1 does not answer"):
        NatsSystem(load_scenario("nats-fixed", {"nats.servers": "127.0.0.1:1"})).check()


def test_a_resumed_run_removes_what_its_killed_part_left(server: EmbeddedServer, tmp_path: Path) -> None:
    killed = opened(tmp_path, server.address)
    left = msgspec.convert(killed.configure(settings(killed, mode="jetstream")), Step).stream
    system = opened(tmp_path, server.address)
    assert [warning.text for warning in system.warnings()] == [
        f"an earlier part of this run left a stream behind: removed {left}"
    ]
    mine = msgspec.convert(system.configure(settings(system, mode="jetstream")), Step).stream
    asked = Streams([server.address])
    assert left not in asked.names()
    assert mine in asked.names()
    assert Records(tmp_path).all() == [mine]
    system.close()
    assert mine not in asked.names()
    assert list(tmp_path.iterdir()) == []
    asked.close()
    killed.close()
