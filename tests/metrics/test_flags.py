"""Addresses on a command line, and where no process can listen."""

from __future__ import annotations

import click
import pytest

from hydra.errors import MissingDependencyError, UsageError
from hydra.options.flag_types import ListenAddress, OtlpUrl, refuse_address, refuse_missing, url_host

pytest.importorskip("prometheus_client", reason="pip install '.[metrics]'")


HOSTS = {":0": "127.0.0.1", "0": "127.0.0.1", "localhost:0": "localhost", "0.0.0.0:0": "0.0.0.0", "[::1]:0": "::1"}


@pytest.mark.tier("test")
@pytest.mark.parametrize(("text", "host"), HOSTS.items())
def test_an_address_is_a_host_and_a_port(text: str, host: str) -> None:
    assert ListenAddress().convert(text, None, None) == (host, 0)


@pytest.mark.parametrize("text", [":65536", "nonsense", "", ":", ":-1", "http://localhost:9464", "a b:1", ":१"])
def test_nonsense_is_no_address(text: str) -> None:
    with pytest.raises(click.UsageError, match=r"is no address like :9464 or 0\.0\.0\.0:9464"):
        ListenAddress().convert(text, None, None)


@pytest.mark.parametrize("url", ["http://localhost:4318", "https://me:secret@here/v1/metrics", "http://[::1]:4318/"])
def test_a_receiver_has_a_url(url: str) -> None:
    assert OtlpUrl().convert(url, None, None) == url


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://here:1", "http://", "http://here:port", "", "http://a b"])
def test_nonsense_is_no_url(url: str) -> None:
    with pytest.raises(click.UsageError, match="is no address like http://localhost:4318"):
        OtlpUrl().convert(url, None, None)


def test_a_secret_in_a_url_is_refused() -> None:
    with pytest.raises(click.UsageError, match="OTEL_EXPORTER_OTLP_HEADERS"):
        OtlpUrl().convert("http://localhost:4318?api_key=abcd", None, None)


def test_what_is_no_name_of_a_host_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be the name of a host"):
        refuse_address("a..b", 9464)


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("192.0.2.1", "Cannot assign requested address"),
        ("no-such-host.invalid", "Name or service not known|No address|Temporary failure"),
    ],
)
def test_an_address_of_somebody_else_is_refused(host: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"nothing can listen at {host}:0: ({why}); name a free port"):
        refuse_address(host, 0)


@pytest.mark.parametrize("library", ["no_such_library", "no_such_library.of_metrics"])
def test_a_library_that_is_not_there_is_named(library: str) -> None:
    with pytest.raises(MissingDependencyError, match=rf"--otlp needs .* \({library}\); \S+ -m pip install opentel"):
        refuse_missing("--otlp", library)


def test_addresses_of_the_longer_kind_are_written_in_brackets() -> None:
    assert [url_host("::1", 9464), url_host("127.0.0.1", 9464)] == ["[::1]:9464", "127.0.0.1:9464"]
