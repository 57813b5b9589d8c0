"""What a scenario may say of NATS."""

from __future__ import annotations

from typing import Any

import pytest

from hydra import plugins
from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError
from hydra.model import value_of
from hydra.natstest.settings import spec_of


@pytest.mark.parametrize("name", ["nats-rate", "nats-fixed"])
def test_the_scenarios_are_whole(name: str) -> None:
    scenario = load_scenario(name)
    assert (scenario.system, scenario.client, spec_of(scenario).servers) == ("nats", "nats-py", "")
    assert value_of(scenario.settings, "mode") == "core"
    assert plugins.system("nats").servers_of(scenario) == 1


def test_servers_of_the_users_own_need_none_of_ours() -> None:
    scenario = load_scenario("nats-fixed", {"nats.servers": "a:4222,[::1]:4222"})
    assert plugins.system("nats").servers_of(scenario) == 0


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
        ("nats.servers", "me:secret@host:1", "nats.servers", "host:port"),
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
