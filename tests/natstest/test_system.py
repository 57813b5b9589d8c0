"""NATS as a system: its part of a scenario, and its settings of a step, on its own server and the user's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import nats.errors
import pytest

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError, ServerError, StepError, UsageError
from hydra.model import Settings, value_of, with_values
from hydra.natstest import streams
from hydra.natstest import system as module
from hydra.natstest.checked_client import CheckedClient
from hydra.natstest.connection import NatsConnection
from hydra.natstest.settings import NatsAccess, NatsEnd, NatsStep, spec_of
from hydra.natstest.streams import JetStreams, StreamRegistry
from hydra.natstest.system import NatsSystem
from hydra.system import wait_alone
from hydra.system.local_server import LocalServer
from tests.servers.running import kill
from tests.suite.waiting import SOON_S, wait_until


def opened(folder: Path, address: str) -> NatsSystem:
    system = NatsSystem(load_scenario("nats-fixed", {"nats.servers": address}))
    system.open("a run: with ünusual.name", folder, wait_alone)
    return system


@pytest.fixture
def system(server: LocalServer, tmp_path: Path) -> Iterator[NatsSystem]:
    with closing(opened(tmp_path, server.address)) as it:
        yield it


def step_of(system: NatsSystem, requests: Settings) -> NatsStep:
    return msgspec.convert(system.configure(requests), NatsStep)


def names(server: LocalServer) -> list[str]:
    """The streams of a server."""
    with closing(JetStreams(NatsAccess(servers=[server.address]))) as requests:
        return list(requests.names())


def settings(system: NatsSystem, **values: object) -> Settings:
    return with_values(system._scenario.settings, values)


def publish(step: NatsStep, count: int) -> None:
    connection = NatsConnection("test")
    connection.open(step.access)
    stream = connection.client.jetstream()
    for _ in range(count):
        connection.do(stream.publish(step.subject, b"x"), SOON_S)
    connection.end()


def test_core_has_a_subject_and_no_end(system: NatsSystem, server: LocalServer) -> None:
    step = step_of(system, settings(system))
    assert (step.servers, step.stream) == ([server.address], "")
    assert system.finish() is None
    assert system.servers.log_end(settings(system, publish_acks=False)) is None


@pytest.mark.parametrize("storage", ["memory", "file"])
def test_a_stream_goes_on_from_step_to_step_and_is_deleted(
    system: NatsSystem, server: LocalServer, storage: str
) -> None:
    requests = settings(system, mode="jetstream", storage=storage)
    first = step_of(system, requests)
    publish(first, 3)
    assert msgspec.convert(system.finish(), NatsEnd).last == 3
    second = step_of(system, requests)
    assert (first.first, second.first, second.stream) == (1, 4, first.stream)
    assert system.servers.log_end(requests) == 3
    assert system.servers.log_end(settings(system, mode="jetstream", storage=storage, publish_acks=False)) == 3
    system.close()
    assert system.warnings() == []
    assert first.stream not in names(server)


def test_what_makes_a_subscriber_subscribe_anew_takes_another_proof(system: NatsSystem) -> None:
    plain = system.proof(settings(system))
    assert system.proof(settings(system, publish_window=7, publish_acks=False)) == plain
    assert system.proof(settings(system, mode="jetstream")) != plain
    assert system.proof(settings(system, pending_messages=7)) != plain


@pytest.mark.tier("test")
def test_a_server_of_our_own_that_died_is_replaced(tmp_path: Path, needs_nats: None) -> None:
    with closing(NatsSystem(load_scenario("nats-fixed", {"settings.mode": "jetstream"}))) as system:
        system.open("run", tmp_path, wait_alone)
        before = step_of(system, settings(system))
        assert isinstance(system._own, LocalServer)
        kill(system._own)
        wait_until(system.servers.failure, "the end of the server")
        with pytest.raises(StepError):
            system.finish()
        system.servers.revive()
        assert system.servers.failure() == ""
        after = step_of(system, settings(system))
        assert (after.servers != before.servers, after.first) == (True, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["core", "jetstream"])
def test_a_server_of_the_users_that_died_fails_the_step(
    own_server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.1)
    monkeypatch.setattr(module, "SILENT_AFTER_S", 0.3)
    scenario = load_scenario("nats-fixed", {"nats.servers": own_server.address, "ready_timeout_s": 0.1})
    system = NatsSystem(scenario)
    system.open("run", tmp_path, wait_alone)
    system.configure(settings(system, mode=mode))
    system.finish()
    assert system.servers.failure() == ""
    monkeypatch.setattr(streams, "QUESTION_TIMEOUT_S", 0.5)
    kill(own_server)
    # It is sent without a request, while the step continues.
    silent = f"NATS at {own_server.address} does not answer any more"
    assert wait_until(system.servers.failure, "the end of the server") == silent
    with pytest.raises(StepError, match="does not answer any more"):
        system.finish()
    with pytest.raises(ServerError, match="does not answer"):
        system.servers.revive()
    system.close()
    assert len(system.warnings()) == (1 if mode == "jetstream" else 0)


@pytest.mark.tier("test")
def test_nobody_at_the_users_address_is_theirs_to_mend() -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1:1 does not answer"):
        NatsSystem(load_scenario("nats-fixed", {"nats.servers": "127.0.0.1:1"})).check()


def test_a_resumed_run_removes_what_its_killed_part_left(server: LocalServer, tmp_path: Path) -> None:
    killed = opened(tmp_path, server.address)
    left = step_of(killed, settings(killed, mode="jetstream")).stream
    system = opened(tmp_path, server.address)
    assert [warning.text for warning in system.warnings()] == [
        f"an earlier part of this run left a stream behind: removed {left}"
    ]
    own = step_of(system, settings(system, mode="jetstream")).stream
    assert {left, own} & set(names(server)) == {own}
    assert StreamRegistry(tmp_path).all() == [own]
    system.close()
    assert own not in names(server)
    assert list(tmp_path.iterdir()) == []
    killed.close()


@pytest.mark.parametrize("name", ["nats-rate", "nats-fixed"])
def test_the_scenarios_are_whole(name: str) -> None:
    scenario = load_scenario(name)
    assert (scenario.system, scenario.client, spec_of(scenario).servers) == ("nats", "nats-py", "")
    assert value_of(scenario.settings, "mode") == "core"
    assert ResolvedScenario.of(scenario).servers == 1


def test_servers_of_the_users_own_need_none_of_ours() -> None:
    scenario = load_scenario("nats-fixed", {"nats.servers": "a:4222,[::1]:4222"})
    assert ResolvedScenario.of(scenario).servers == 0


@pytest.mark.parametrize(
    ("key", "value", "where", "remedy"),
    [
        ("settings.mod", "core", "settings.mod", "mode"),
        ("settings.mode", "jet", "settings.mode", "'core' or 'jetstream'"),
        ("settings.storage", "disk", "settings.storage", "'memory' or 'file'"),
        ("settings.fetch_batch", 0, "fetch_batch", "1 to 2147483647"),
        ("settings.pending_bytes", 2**31, "pending_bytes", "1 to 2147483647"),
        ("settings.acks", "all", "settings.acks", ""),
        ("nats.servers", "somewhere", "nats.servers", "host:port"),
        ("nats.servers", "me:secret@host:1", "nats.servers", "begin it with nats://"),
        ("nats.servers", "ws://host:1", "nats.servers", "nats:// or tls://"),
        ("nats.servers", "nats://me:1@a,nats://me:2@b", "nats.servers", "one login"),
        ("nats.servers", "a:1,,b:1", "nats.servers", "host:port"),
        ("nats.replicas", 0, "nats", "1 to 5"),
        ("nats.replicas", 3, "nats.replicas", "server.count"),
        ("server.demand.ports", 1, "server.demand.ports", "2"),
    ],
)
def test_what_cannot_be_is_refused_by_name(key: str, value: Any, where: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_scenario("nats-fixed", {key: value})
    assert where in str(refused.value)
    assert remedy in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_client_that_requires_tls_sends_nothing_to_a_server_without(server: LocalServer) -> None:
    client = CheckedClient()
    client.requires_tls = True

    async def connect() -> None:
        try:
            await client.connect(f"nats://{server.address}", allow_reconnect=False)
        finally:
            await client.close()

    with pytest.raises(nats.errors.Error, match="does not use TLS"):
        asyncio.run(connect())
    assert not client.is_connected
