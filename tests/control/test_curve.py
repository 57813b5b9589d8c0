"""The keys of a run."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from hydra.control import curve_security

ENDPOINT = "tcp://127.0.0.1:5555"


def test_every_run_has_its_own_keys() -> None:
    one, other = curve_security.generate(), curve_security.generate()
    texts = {*astuple(one), *astuple(other)}
    assert len(texts) == 8
    assert all(len(text) == 40 for text in texts)


def test_secrets_are_not_in_the_text_of_the_objects() -> None:
    keys = curve_security.generate()
    credentials = curve_security.credentials(curve_security.environment(keys, ENDPOINT))
    for shown in (repr(keys), str(keys), repr(credentials), f"{credentials}"):
        assert keys.client_secret not in shown
        assert keys.server_secret not in shown


def test_the_environment_carries_what_a_client_needs_and_not_the_servers_secret() -> None:
    keys = curve_security.generate()
    env = curve_security.environment(keys, ENDPOINT)
    assert keys.server_secret not in env.values()
    credentials = curve_security.credentials(env)
    assert credentials.endpoint == ENDPOINT
    assert credentials.server_public == keys.server_public
    assert (credentials.client_public, credentials.client_secret) == (keys.client_public, keys.client_secret)


@pytest.mark.parametrize(
    "name",
    [curve_security.ENDPOINT, curve_security.SERVER_KEY, curve_security.CLIENT_KEY, curve_security.CLIENT_SECRET],
)
@pytest.mark.parametrize("value", [None, "", "short", "ä" * 40, "x" * 41, "x" * 39 + "\n", "x" * 39 + '"'])
def test_what_is_missing_or_no_key_is_named_and_not_shown(name: str, value: str | None) -> None:
    env = curve_security.environment(curve_security.generate(), ENDPOINT)
    if value is None:
        del env[name]
    else:
        env[name] = value
    with pytest.raises(ValueError, match=name) as refusal:
        curve_security.credentials(env)
    if value and name == curve_security.CLIENT_SECRET:
        assert value not in str(refusal.value)


@pytest.mark.parametrize("endpoint", ["nonsense", "udp://1.2.3.4:5", "tcp://", "tcp://host", "tcp://host:port"])
def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    env = curve_security.environment(curve_security.generate(), ENDPOINT) | {curve_security.ENDPOINT: endpoint}
    with pytest.raises(ValueError, match=curve_security.ENDPOINT):
        curve_security.credentials(env)


@pytest.mark.parametrize("endpoint", [ENDPOINT, "tcp://[::1]:5555", "tcp://master.example:80"])
def test_endpoints(endpoint: str) -> None:
    assert (
        curve_security.credentials(curve_security.environment(curve_security.generate(), endpoint)).endpoint == endpoint
    )
