"""How the user's server is reached: address, login and files of a scenario."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from hydra.errors import ConfigError
from hydra.model import Scenario
from hydra.mqtttest.settings import TABLE, MqttAccess, MqttSpec, spec_of
from hydra.system import Refusal
from hydra.system.server_access import AddressError, AddressForm, ServerAddress, client_tls, first_line, key_secrets

FORM: Final = AddressForm({"": 1883, "mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443})
_TLS: Final = ("mqtts", "wss")
_WEBSOCKET: Final = ("ws", "wss")
_USUAL_PATH: Final = "/mqtt"


def address(spec: MqttSpec) -> ServerAddress | None:
    """The user's server; None if Hydra starts one.

    Raises:
        AddressError: the address is invalid.
    """
    return FORM.read(spec.broker) if spec.broker else None


def refusals(scenario: Scenario) -> Iterator[Refusal]:
    """What is wrong with the address and the login, before any file is read."""
    spec = spec_of(scenario)
    try:
        server = address(spec)
    except AddressError as e:
        yield (TABLE, "broker"), e.what, e.remedy
        return
    if server and server.scheme in _WEBSOCKET and scenario.client == "native":
        what = f"{server.scheme}://: native clients of MQTT have no WebSocket, because libmosquitto has none"
        yield (TABLE, "broker"), what, "choose --implementation paho-mqtt, or name a port for mqtt:// or mqtts://"
    if server and server.username and spec.username:
        yield (TABLE, "username"), "broker and username both name a login", "leave one out"
    if spec.password and spec.password_file:
        yield (TABLE, "password"), "the password is named twice, here and by password_file", "leave one out"


def access_of(spec: MqttSpec) -> MqttAccess:
    """How the user's server is reached.

    Raises:
        RefusedKeyError: a file cannot be read.
        UsageError: a file has no certificate or key, or the key is not that of the certificate.
    """
    server = FORM.read(spec.broker)
    return MqttAccess(
        host=server.host,
        port=server.port,
        username=spec.username or server.username,
        password=password_of(spec),
        tls=client_tls(TABLE, spec) if uses_tls(spec) else None,
        websocket=(server.path or _USUAL_PATH) if server.scheme in _WEBSOCKET else "",
    )


def uses_tls(spec: MqttSpec) -> bool:
    """Whether clients use TLS with the user's server."""
    server = address(spec)
    return server is not None and (server.scheme in _TLS or bool(spec.ca_file or spec.cert_file))


def password_of(spec: MqttSpec) -> str:
    """The password, read from its file if one is named.

    Raises:
        RefusedKeyError: the file cannot be read.
    """
    if spec.password_file:
        return first_line(f"{TABLE}.password_file", spec.password_file)
    server = address(spec)
    return spec.password or (server.password if server else None) or ""


def secrets_of(spec: MqttSpec) -> Iterator[str]:
    """The password and the private key, if they can be read."""
    with contextlib.suppress(ConfigError, AddressError):  # the error is reported when the run begins
        yield from filter(None, [password_of(spec)])
    yield from key_secrets(TABLE, spec)


def users_of(spec: MqttSpec) -> Iterator[str]:
    """The user names."""
    with contextlib.suppress(AddressError):
        server = address(spec)
        yield from filter(None, [spec.username, server.username if server else ""])
