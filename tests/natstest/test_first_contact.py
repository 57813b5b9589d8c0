"""What the first contact with the user's servers finds out: pure decisions, and a real server that rejects a run."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from hydra.client.server_interface import accepts, free_ports
from hydra.client.supervised_process import SupervisedProcess
from hydra.config.scenario import load_scenario
from hydra.errors import ServerError, UsageError
from hydra.events.warnings import HydraWarning
from hydra.natstest.first_contact import no_right, require_servers, require_size, subjects
from hydra.natstest.library_loop import JetStreamError
from hydra.natstest.program import find_server
from hydra.natstest.server_demands import error_in
from hydra.natstest.settings import NatsAccess
from hydra.natstest.streams import JetStreams
from hydra.natstest.system import NatsSystem
from hydra.system.local_server import LocalServer
from tests.connections.servers import nats
from tests.integration.command import refusal
from tests.suite.waiting import wait_until

HOST = "127.0.0.1"


def test_what_the_servers_cannot_take_is_refused_with_both_numbers() -> None:
    require_size({"max_payload": 4096}, 4096, "h:1")
    require_size({}, 4096, "h:1")
    with pytest.raises(UsageError, match=r"a message has 4097 bytes, and NATS at h:1 accepts 4096 \(max_payload\)"):
        require_size({"max_payload": 4096}, 4097, "h:1")
    require_servers({}, 1, "h:1")
    require_servers({"cluster": "c"}, 3, "h:1")
    with pytest.raises(UsageError, match="3 replicas needs 3 servers, and NATS at h:1 is 1 server"):
        require_servers({}, 3, "h:1")


@pytest.mark.parametrize(
    ("more", "published", "subscribed", "granted"),
    [
        ({}, ["core"], ["core"], "*.core"),
        ({"settings.mode": "jetstream"}, ["memory", *["memory"] * 4], [], "*.memory, and publish on $JS.API.STREAM.>"),
    ],
)
def test_subjects_like_those_of_the_run_are_tried(
    more: dict[str, Any], published: list[str], subscribed: list[str], granted: str
) -> None:
    scenario = load_scenario("nats-fixed", more)
    publish, subscribe = subjects(scenario)
    assert [each.rpartition(".")[2].rpartition("-")[2] for each in publish] == published
    assert [each.rpartition(".")[2] for each in subscribe] == subscribed
    refused = no_right("h:1", 'nats: permissions violation for publish to "x"', scenario)
    assert refused.what == 'NATS at h:1 refuses this user: permissions violation for publish to "x"'
    assert refused.remedy == f"grant publish and subscribe on {granted}"


def test_no_error_has_an_empty_reason() -> None:
    assert str(JetStreamError(0, "off")) == "off"
    assert str(JetStreamError(10074, "no")) == "no (error 10074)"
    assert error_in(b"-ERR 'maximum connections exceeded'\r\n") == "maximum connections exceeded"
    assert error_in(b"PING\r\n") == ""


@pytest.mark.parametrize("flag", ["--subject", "--stream"])
def test_an_existing_subject_or_stream_cannot_be_used_and_the_error_says_so(flag: str) -> None:
    assert f"{flag}: Hydra measures with a {flag[2:]} of its own" in refusal("nats-fixed", flag, "orders")


def test_a_server_that_rejects_a_run_is_known_before_anything_is_made(server: LocalServer) -> None:
    def system(**more: object) -> NatsSystem:
        return NatsSystem(load_scenario("nats-fixed", {"nats.servers": server.address, **more}))

    streams = {"settings.mode": "jetstream"}
    system(**streams).check()
    with pytest.raises(UsageError, match=r"needs 3 servers, and NATS at .* is 1 server"):
        system(**streams, **{"nats.replicas": 3}).check()


@pytest.mark.tier("test")
def test_a_cluster_without_jetstream_leaves_the_question_open_and_is_named(needs_nats: None, tmp_path: Path) -> None:
    port, routes = free_ports(HOST, 2)
    words = [
        find_server().path,
        "-a",
        HOST,
        "-p",
        str(port),
        "--cluster_name",
        "c",
        "--cluster",
        f"nats://{HOST}:{routes}",
    ]
    running = SupervisedProcess(words, tmp_path, tmp_path / "log", grace_s=0.0)
    try:
        wait_until(lambda: accepts(HOST, port), "the server")
        given = {"nats.servers": f"{HOST}:{port}", "settings.mode": "jetstream"}
        with pytest.raises(UsageError, match=r"JetStream, which is off .*; turn JetStream on, or use --mode core"):
            NatsSystem(load_scenario("nats-fixed", given)).check()
    finally:
        running.stop()


@pytest.mark.tier("test")
def test_a_server_that_is_gone_is_not_told_as_one_without_jetstream() -> None:
    (port,) = free_ports(HOST, 1)
    with (
        contextlib.closing(JetStreams(NatsAccess(servers=[f"{HOST}:{port}"]))) as streams,
        pytest.raises(ServerError, match="does not answer: network: Connection refused"),
    ):
        streams.reach(jetstream=True)


def test_named_addresses_that_do_not_answer_are_no_error_while_another_one_does(server: LocalServer) -> None:
    system = NatsSystem(load_scenario("nats-fixed", {"nats.servers": f"{HOST}:1,{server.address}"}))
    system.check()
    assert [str(warning) for warning in system.warnings()] == [
        f"NATS does not answer at {HOST}:1 (Connection refused); "
        "clients use the other addresses of --servers; leave out those that are wrong"
    ]
    assert system.configure(system._scenario.settings)["servers"] == [server.address]


@pytest.mark.tier("test")
def test_addresses_that_the_servers_name_to_clients_and_that_do_not_answer_are_a_warning(
    needs_nats: None, tmp_path: Path
) -> None:
    (route,) = free_ports(HOST, 1)
    first = {"name": "c", "listen": f"{HOST}:{route}"}
    second = {"name": "c", "listen": f"{HOST}:-1", "routes": [f"nats://{HOST}:{route}"]}
    warnings: list[HydraWarning] = []
    with (
        nats(tmp_path / "first", cluster=first) as address,
        nats(tmp_path / "second", cluster=second, client_advertise=f"{HOST}:1"),
    ):
        system = NatsSystem(load_scenario("nats-fixed", {"nats.servers": address}))

        def warned() -> bool:
            system.check()
            warnings.extend(system.warnings())
            return bool(warnings)

        wait_until(warned, "the address of the second server")
    assert warnings[0].text == (
        f"NATS at {address} names further addresses to its clients, of which these do not answer: "
        f"{HOST}:1 (Connection refused)"
    )


def test_a_stream_that_cannot_be_removed_is_named_with_the_command_that_removes_it() -> None:
    class Unremovable:
        created = ("hydra-s",)

        def delete(self, _: str) -> None:
            raise ServerError("gone")

        def close(self) -> None: ...

    system = NatsSystem(load_scenario("nats-fixed", {"nats.servers": "h:1"}))
    system._address, system._streams = "h:1", Unremovable()  # type: ignore[assignment]  # only what the end of a run uses
    system.close()
    assert [str(warning) for warning in system.warnings()] == [
        "hydra-s may be left at h:1; nats --server h:1 stream rm hydra-s removes it when the servers answer"
    ]
