"""Addresses as users write them, and the certificates of a run, checked by TLS itself, without a socket."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from hydra.client.tls import AccessError, ClientTls, ServerTls, access_error, in_memory
from hydra.errors import RefusedKeyError, UsageError
from hydra.system.run_certificates import RunAuthority
from hydra.system.server_access import AddressError, AddressForm, ServerAddress, client_tls, first_line

FORM = AddressForm({"": 1883, "mqtt": 1883, "mqtts": 8883, "wss": 443}, {"ws": ("ws:// is no way", "write wss://")})
AUTHORITY, HOST = RunAuthority(), "10.0.0.5"


@pytest.mark.parametrize(
    ("text", "address", "endpoint"),
    [
        ("host", ServerAddress("", "host", 1883), "host:1883"),
        ("host:7", ServerAddress("", "host", 7), "host:7"),
        ("[::1]:7", ServerAddress("", "::1", 7), "[::1]:7"),
        ("MQTTS://host/", ServerAddress("mqtts", "host", 8883, path="/"), "host:8883"),
        ("wss://host/a/path", ServerAddress("wss", "host", 443, path="/a/path"), "host:443"),
        ("mqtt://only@host:7", ServerAddress("mqtt", "host", 7, "only"), "host:7"),
        ("mqtt://m%40:p%2Fw:@host", ServerAddress("mqtt", "host", 1883, "m@", "p/w:"), "host:1883"),
    ],
)
def test_an_address_is_read_as_users_write_it(text: str, address: ServerAddress, endpoint: str) -> None:
    assert FORM.read(text) == address
    assert address.endpoint == endpoint


@pytest.mark.parametrize(
    ("text", "refusal", "remedy"),
    [
        ("", "an address is empty", "write host:port"),
        ("h:1,g:2", "'h:1,g:2' has several addresses", "name one server"),
        ("1883", "'1883' is no address", "write host:port"),
        ("a..b:1", "'a..b:1' is no address", "write host:port"),
        (f"{'a' * 64}:1", f"'{'a' * 12}...{'a' * 11}:1' is no address", "write host:port"),
        ("host:", "'host:' is no address", "write host:port"),
        ("host:99999", "'host:99999' is no address", "ports are 1 to 65535"),
        ("::1", "'::1' is no address", "in brackets: [::1]:PORT"),
        ("mqtt://host/path", "'mqtt://host/path' is no address", "write host:port"),
        ("amqp://h", "'amqp://h' begins with an unknown scheme", "write mqtt:// or mqtts:// or wss://"),
        ("ws://h", "ws:// is no way", "write wss://"),
        ("me:secret@h", "'***@h' is no address", "begin it with mqtt://"),
        ("mqtt://me:sec/ret@h", "'mqtt://***@h' is no address", "%2F for /"),
        ("mqtt://me:secret", "'mqtt://me:***' is no address", "write host:port"),  # the host is forgotten
    ],
)
def test_what_is_no_address_is_named_without_its_password(text: str, refusal: str, remedy: str) -> None:
    with pytest.raises(AddressError) as error:
        FORM.read(text)
    assert error.value.what == refusal
    assert remedy in error.value.remedy


def handshake(tls: ClientTls, server: ServerTls, server_name: str = "", host: str = HOST) -> str:
    """What fails when a client and a server shake hands in memory; "" if nothing does."""
    others = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with in_memory(server.certificate + server.key) as path:
        others.load_cert_chain(path)
    if server_name:
        others.verify_mode = ssl.CERT_REQUIRED
        others.load_verify_locations(cadata=server_name)
    present, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.context().wrap_bio(back, present, server_hostname=host)
    other = others.wrap_bio(present, back, server_side=True)
    read = (lambda: client.read(1), lambda: other.read(1))
    try:
        for step in (client.do_handshake, other.do_handshake, client.do_handshake, other.do_handshake, *read):
            try:
                step()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                if step in (client.do_handshake, read[0]):
                    raise
        client.read(1)
    except ssl.SSLWantReadError:
        return ""
    except ssl.SSLError as e:
        return str(access_error(e, host, tls))
    return "data"


def test_the_certificates_of_a_run_let_its_clients_in_and_no_others() -> None:
    server, other = AUTHORITY.server(f"{HOST}:1,{HOST}:2"), RunAuthority()
    own, others = (it.server("client:1") for it in (AUTHORITY, other))
    known = ClientTls(ca=AUTHORITY.client.ca, certificate=own.certificate, key=own.key)
    unknown = ClientTls(ca=AUTHORITY.client.ca, certificate=others.certificate, key=others.key)
    assert handshake(AUTHORITY.client, server) == ""
    assert handshake(AUTHORITY.client, AUTHORITY.server("name:1"), host="name") == ""
    assert handshake(known, server, AUTHORITY.client.ca) == ""
    assert handshake(AUTHORITY.client, server, host="other").startswith("TLS: wrong host name: ")
    assert handshake(other.client, server).startswith("TLS: unknown CA: ")
    assert handshake(AUTHORITY.client, server, AUTHORITY.client.ca) == "TLS: the server requires a client certificate"
    assert (
        handshake(unknown, server, AUTHORITY.client.ca) == "TLS: the server rejects the client certificate: unknown ca"
    )


def test_files_are_read_and_checked_before_anything_starts(tmp_path: Path) -> None:
    server = AUTHORITY.server(f"{HOST}:1")
    certificate, key = server.write(tmp_path)
    assert Path(key).stat().st_mode & 0o777 == 0o600

    class Files:
        def __init__(self, ca: str = "", cert: str = "", key: str = "") -> None:
            self.ca_file, self.cert_file, self.key_file = ca, cert, key

    own = {"certificate": server.certificate, "key": server.key}
    assert client_tls("nats", Files(certificate, certificate, key)) == ClientTls(ca=server.certificate, **own)
    both = tmp_path / "both"
    both.write_text(f"{server.certificate}{server.key}")
    client_tls("nats", Files(cert=str(both))).context()
    both.write_text(f"# die Zertifizierungsstelle für Gäste\n{server.certificate}")
    assert client_tls("nats", Files(str(both))) == ClientTls(ca=server.certificate)
    (tmp_path / "large").write_bytes(b" " * 300_000)
    (tmp_path / "empty").touch()
    for files, refusal in (
        (Files(key), "server-key.pem has no certificate"),
        (Files(str(tmp_path / "empty")), "empty has no certificate"),
        (Files(certificate, certificate, certificate), "certificate and key cannot be read"),
        (Files(cert=str(tmp_path / "none")), "nats.cert_file: .*none cannot be read: No such file"),
        (Files(str(tmp_path / "large")), "nats.ca_file: .*large cannot be read: it has more than 256 KiB"),
    ):
        with pytest.raises(UsageError, match=refusal):
            client_tls("nats", files)
    assert first_line("k", str(tmp_path / "server-key.pem")) == "-----BEGIN PRIVATE KEY-----"
    with pytest.raises(RefusedKeyError, match="k: /nowhere cannot be read"):
        first_line("k", "/nowhere")


def test_an_error_names_the_layer_at_which_a_server_failed() -> None:
    refused = access_error(ConnectionRefusedError(111, "Connection refused"), "h", ClientTls())
    assert str(refused.at("X at h:1")) == "X at h:1 does not answer: network: Connection refused"
    assert access_error(TimeoutError("timed out"), "h", None).reason == "no answer in time"
    assert AccessError("login", "wrong password", server="X at h:1").args[0] == "X at h:1: login: wrong password"
