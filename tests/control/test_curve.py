"""The keys of a run."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from hydra.control import curve

ENDPOINT = "tcp://127.0.0.1:5555"


def test_every_run_has_its_own_keys() -> None:
    one, other = curve.generate(), curve.generate()
    texts = {*astuple(one), *astuple(other)}
    assert len(texts) == 8
    assert all(len(text) == 40 for text in texts)


def test_secrets_are_not_in_the_text_of_the_objects() -> None:
    keys = curve.generate()
    credentials = curve.credentials(curve.environment(keys, ENDPOINT))
    for shown in (repr(keys), str(keys), repr(credentials), f"{credentials}"):
        assert keys.client_secret not in shown
        assert keys.server_secret not in shown


def test_the_environment_carries_what_a_client_needs_and_not_the_servers_secret() -> None:
    keys = curve.generate()
    env = curve.environment(keys, ENDPOINT)
    assert keys.server_secret not in env.values()
    credentials = curve.credentials(env)
    assert credentials.endpoint == ENDPOINT
    assert credentials.server_public == keys.server_public
    assert (credentials.client_public, credentials.client_secret) == (keys.client_public, keys.client_secret)


@pytest.mark.parametrize("name", [curve.ENDPOINT, curve.SERVER_KEY, curve.CLIENT_KEY, curve.CLIENT_SECRET])
@pytest.mark.parametrize("value", [None, "", "short", "ä" * 40, "x" * 41, "x" * 39 + "\n", "x" * 39 + '"'])
def test_what_is_missing_or_no_key_is_named_and_not_shown(name: str, value: str | None) -> None:
    env = curve.environment(curve.generate(), ENDPOINT)
    if value is None:
        del env[name]
    else:
        env[name] = value
    with pytest.raises(ValueError, match=name) as refusal:
        curve.credentials(env)
    if value and name == curve.CLIENT_SECRET:
        assert value not in str(refusal.value)


@pytest.mark.parametrize("endpoint", ["nonsense", "udp://1.2.3.4:5", "tcp://", "tcp://host", "tcp://host:port"])
def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    env = curve.environment(curve.generate(), ENDPOINT) | {curve.ENDPOINT: endpoint}
    with pytest.raises(ValueError, match=curve.ENDPOINT):
        curve.credentials(env)


@pytest.mark.parametrize("endpoint", [ENDPOINT, "tcp://[::1]:5555", "tcp://master.example:80"])
def test_endpoints(endpoint: str) -> None:
    assert curve.credentials(curve.environment(curve.generate(), endpoint)).endpoint == endpoint
