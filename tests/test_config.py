"""TOML to model, and one line for everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hydra.config import file_locations, plugins
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import conf_dir, scenarios
from hydra.config.layers import parse_set
from hydra.config.scenario import load_scenario, resolve
from hydra.engine.group_sizing import split
from hydra.engine.placement import place
from hydra.errors import EXIT_USAGE, ConfigError
from hydra.model import Agent, Constraint, Demand, Group, Resources, Scenario, ServerSpec, value_of
from hydra.sweep.grid import GridSweep
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec

MINIMAL = """
system = "zmq"
client = "pyzmq"
table = "fixed"
[sweep]
clients = [3]
duration_s = 1
"""


def refused(reading: Callable[..., object], *arguments: object) -> str:
    """The one line that states what is wrong."""
    with pytest.raises(ConfigError) as caught:
        reading(*arguments)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == EXIT_USAGE
    return str(caught.value)


def _values(scenario: Scenario, *names: str) -> tuple[object, ...]:
    return tuple(value_of(scenario.settings, name) for name in names)


def scenario_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


# --- the files that come with Hydra --------------------------------------------------------------------------------


def test_the_default_cluster_is_the_one_of_the_original() -> None:
    cluster = load_cluster()
    assert [a.id for a in cluster.agents] == ["agent-pub", "agent-sub-1", "agent-sub-2", "agent-sub-3"]
    assert [a.attributes["group"] for a in cluster.agents] == ["cpu4-mem16", *["cpu16-mem60"] * 3]
    resources = Resources(4, 15000, 0, ((31000, 32000),))
    assert cluster.agents[0] == Agent("agent-pub", "agent-pub", {"group": "cpu4-mem16"}, resources)


@pytest.mark.parametrize("name", scenarios())
def test_every_scenario_loads_and_its_largest_row_fits_the_default_cluster(name: str) -> None:
    scenario, cluster = load_scenario(name), load_cluster()
    assert scenario.name == name
    # Only native clients pace by whole seconds.
    default = next(iter(plugins.system(scenario.system).identity.implementations))
    assert scenario.client == ("native" if name == "zmqburst" else default)
    groups = [
        Group(f"{role}-{n}", role, 0, size, (), {}, spec.demand, spec.constraints)
        for role, count, spec in (
            ("publisher", scenario.publishers, scenario.publisher),
            ("subscriber", max(scenario.sweep.clients), scenario.subscriber),
            ("server", 3 if scenario.system == "kafka" else 0, scenario.server),
        )
        for n, size in enumerate(split(count, cluster.agents, spec, 1 if role == "server" else 1000, role=role))
    ]
    launches, unplaced = place(cluster.agents, groups)
    assert unplaced == []
    assert {x.agent.id for x in launches if x.group.role == "publisher"} == {"agent-pub"}
    assert len({x.agent.id for x in launches if x.group.role == "subscriber"}) == 3


@pytest.mark.parametrize("name", scenarios())
def test_every_scenario_names_a_published_table_that_exists_or_says_that_there_is_none(name: str) -> None:
    text = (conf_dir() / "scenarios" / f"{name}.toml").read_text()
    tables = [word.strip("(),.;") for word in text.split() if "conf/reference/" in word]
    assert tables or "there is no published table" in text.lower()
    assert all((conf_dir() / "reference" / Path(table).name).is_file() for table in tables)


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("zmqrate", lambda s: s.sweep.clients == (30, 60, 120, 240, 480, 960, 1920, 3840, 7680)),
        ("zmqrate", lambda s: (s.sweep.duration_s, s.settings.burst, s.settings.message_size) == (60, 100, 24)),
        ("zmqrate", lambda s: s.sweep.search == SearchSpec()),
        ("zmqfixed", lambda s: (s.settings.rate, s.sweep.duration_s, s.table) == (10000, 10, "fixed")),
        ("kafka-batch", lambda s: s.sweep.vary == {"msg_batch": (100, 200, 500, 1000, 2000, 5000)}),
        ("kafka-batch", lambda s: _values(s, "rate", "acks", "linger_ms") == (30000, "1", 0)),
        ("kafka-fixed", lambda s: _values(s, "rate", "msg_batch", "linger_ms") == (10000, 1000, 10)),
    ],
)
def test_the_published_sweep_is_that_of_the_published_experiment(name: str, check: object) -> None:
    assert callable(check)
    assert check(load_scenario(name, {"published": True}))


@pytest.mark.parametrize("name", scenarios())
def test_rates_are_those_of_messages_of_128_bytes_and_published_ones_of_24(name: str) -> None:
    is_usual = name.endswith(("rate", "fixed"))
    assert load_scenario(name).settings.message_size == (128 if is_usual else 24)
    if is_usual or name == "kafka-batch":
        assert load_scenario(name, {"published": True}).settings.message_size == 24


@pytest.mark.parametrize("name", [n for n in scenarios() if n != "zmqburst" and not n.endswith("connections")])
def test_a_command_without_flags_takes_minutes_and_the_published_sweep_more(name: str) -> None:
    usual, published = resolve(name), resolve(name, {"published": True})
    rates = name.endswith("rate")
    assert usual.scenario.sweep.clients == ((10, 30) if name == "kafka-batch" else (10, 30, 100))
    assert usual.scenario.sweep.duration_s == (10.0 if rates else 5.0)
    assert usual.sweep.expected_s() < (120 if rates else 60)
    assert not rates or usual.sweep.bound_s() == 180
    assert published.sweep.expected_s() > 3 * usual.sweep.expected_s()
    if isinstance(usual.scenario.sweep, SearchSweep):
        assert usual.scenario.sweep.search.loss_target == 0.005


def test_values_of_the_published_sweep_go_before_the_file_and_behind_flags(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, MINIMAL + "[published.sweep]\nclients = [9, 8]\n[published.settings]\nburst = 7\n")
    assert load_scenario(file).sweep.clients == (3,)
    found = load_scenario(file, {"published": True, "sweep.duration_s": 2.0})
    assert (found.published, found.sweep.clients, found.sweep.duration_s, found.settings.burst) == (
        True,
        (9, 8),
        2.0,
        7,
    )
    assert load_scenario(file, {"published": True, "sweep.clients": [4]}).sweep.clients == (4,)


@pytest.mark.parametrize(
    ("more", "given", "expected"),
    [
        ("", True, "published: the scenario has no published sweep; leave out --published"),
        ("[published]\nclients = [1]\n", True, "clients: unknown key; this key belongs into [sweep]"),
        ("[published.sweep]\nclients = [1]\n", "often", "published: must be a valid boolean, not 'often'"),
    ],
)
def test_a_published_sweep_that_cannot_be_is_refused(tmp_path: Path, more: str, given: object, expected: str) -> None:
    assert expected in refused(load_scenario, scenario_file(tmp_path, MINIMAL + more), {"published": given})


def test_an_installed_conf_is_found_before_the_repositorys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "hydra"
    (package / "conf").mkdir(parents=True)
    monkeypatch.setattr(file_locations, "__file__", str(package / "config" / "places.py"))
    assert conf_dir() == tmp_path / "conf"
    (package / "conf" / "hydra.toml").touch()
    assert conf_dir() == package / "conf"


# --- scenarios -----------------------------------------------------------------------------------------------------


def test_a_small_file_is_a_scenario_named_after_it(tmp_path: Path) -> None:
    scenario = load_scenario(scenario_file(tmp_path, MINIMAL))
    assert isinstance(scenario, Scenario)
    assert (scenario.name, scenario.sweep.clients, scenario.sweep.duration_s) == ("mine", (3,), 1.0)


def test_constraints_are_written_as_marathon_writes_them(tmp_path: Path) -> None:
    text = MINIMAL + '[subscriber]\nconstraints = [["group", "CLUSTER", "a"], ["hostname", "UNIQUE"]]\n'
    text += "[subscriber.demand]\nbase_cpus = 1\n"
    spec = load_scenario(scenario_file(tmp_path, text)).subscriber
    assert spec.constraints == (Constraint("group", "CLUSTER", "a"), Constraint("hostname", "UNIQUE"))
    assert spec.demand == Demand(base_cpus=1.0, cpus_per_client=0.002, mem_per_client=8.0)


def test_overrides_replace_add_and_remove() -> None:
    replaced = {
        "sweep.clients": (30, 60),
        "sweep.held": None,
        "sweep.search": None,
        "table": "fixed",
        "settings.rate": 5,
    }
    added = {"sweep.vary.message_size": [24, 100], "subscriber.demand.mem_per_client": 1}
    scenario = load_scenario("zmqrate", {**replaced, **added})
    assert scenario.sweep.clients == (30, 60)
    assert scenario.sweep == GridSweep(10.0, (30, 60), vary={"message_size": (24, 100)})
    assert scenario.settings.rate == 5.0
    assert scenario.subscriber.demand.mem_per_client == 1.0


@pytest.mark.parametrize("how", ["file", "override"])
def test_kafka_properties_keep_their_dots_and_become_text(tmp_path: Path, how: str) -> None:
    written = {"security.protocol": "SSL", "socket.timeout.ms": 65536, "socket.nagle.disable": True}
    if how == "file":
        text = MINIMAL.replace('"zmq"', '"kafka"').replace("pyzmq", "kafka-python") + "[kafka.properties]\n"
        text += 'security.protocol = "SSL"\n"socket.timeout.ms" = 65536\nsocket.nagle.disable = true\n'
        scenario = load_scenario(scenario_file(tmp_path, text))
    else:
        scenario = load_scenario("kafka-batch", {f"kafka.properties.{k}": v for k, v in written.items()})
    kept = {"security.protocol": "SSL", "socket.timeout.ms": "65536", "socket.nagle.disable": "true"}
    assert scenario.tables["kafka"].properties == kept


def test_a_secret_is_not_repeated_in_an_error() -> None:
    text = refused(load_scenario, "kafka-batch", {"kafka.properties.sasl.password": ["hunter2"]})
    assert "kafka.properties.sasl.password: must be a valid string" in text
    assert "hunter2" not in text


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"sweep.clints": [1]}, "sweep.clints: unknown key; did you mean clients?"),
        ({"settings.msg_bach": 1}, "settings.msg_bach: unknown key; did you mean msg_batch?"),
        ({"rate": 3}, "rate: unknown key; this key belongs into [settings]"),
        ({"settings.clients": [3]}, "settings.clients: unknown key; this key belongs into [sweep]"),
        ({"kafka.xyzzy": 3}, "kafka.xyzzy: unknown key; known here: tls, bootstrap"),
        ({"sweep.duration_s": None}, "sweep.duration_s: is missing; add it"),
        ({"sweep": None}, "sweep: is missing; add it"),
        ({"system": "amqp"}, "or 'zmq', not 'amqp'"),
        ({"client": "pyzmq"}, "client: 'pyzmq' is no client of system kafka; use kafka-python or confluent-kafka"),
        (
            {"client": "native", "native.secure": True},
            "native.secure: unknown key; this is a key of system zmq, not of kafka",
        ),
        (
            {"client": "native", "native.transport": "ipc"},
            "native.transport: unknown key; this is a key of system zmq, not",
        ),
        ({"settings.rate": "fast"}, "settings.rate: must be a valid number or 'max', not 'fast'"),
        ({"settings.rate": 0}, "settings.rate: must be 1e-06 to 1000000000 messages/s, not 0 messages/s"),
        ({"settings.msg_batch": 1.5}, "settings.msg_batch: must be a valid integer, not 1.5"),
        ({"settings.msg_batch": "1"}, "settings.msg_batch: must be a valid integer, not '1'"),
        ({"settings.linger_ms": float("nan")}, "settings.linger_ms: must be a finite number"),
        ({"settings.acks": 1}, "settings.acks: must be '0', '1' or 'all', not 1"),
        ({"settings": 3}, "settings: must be a table; write [settings]"),
        ({"settings.rate.x": 3}, "settings.rate: is a value and not a table"),
        ({"publishers": True}, "publishers: must be a valid integer, not True"),
        ({"sweep.clients": 30}, "sweep.clients: must be a list, not 30; write [ ] around the value"),
        ({"sweep.clients": [30, 30]}, "sweep: a subscriber count stands twice"),
        ({"sweep.vary.rat": [1]}, "sweep.vary.rat: unknown key; did you mean rate?"),
        ({"sweep.vary.msg_batch": []}, "sweep: every list under vary needs at least one value"),
        ({"sweep.vary.msg_batch": [1, 0]}, "sweep.vary.msg_batch.1: must be 1 to 1000000, not 0"),
        ({"sweep.vary.acks": ["1", "2"]}, "sweep.vary.acks.1: must be '0', '1' or 'all', not '2'"),
        ({"sweep.vary": {}, "sweep.search": {}}, "table: batch has no search; remove [sweep.search]"),
        ({"table": "rates"}, "table: rates is the table of a search; add [sweep.held] or [sweep.search]"),
        ({"subscriber.demand.base_cpus": -1}, "subscriber.demand.base_cpus: must be 0 to 1000000, not -1"),
        ({"subscriber.constraints": "group"}, "subscriber.constraints: must be a list of constraints"),
        ({"subscriber.constraints": ["group", "UNIQUE"]}, "subscriber.constraints.0: must be a list of strings"),
        ({"subscriber.constraints": [["group", "IS"]]}, "subscriber.constraints.0: unknown operator 'IS'"),
        ({"subscriber.constraints": [["hostname", "MAX_PER", "x"]]}, "MAX_PER needs a number of at least 1"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_its_remedy(overrides: dict[str, object], expected: str) -> None:
    text = refused(load_scenario, "kafka-batch", overrides)
    assert expected in text
    assert "kafka-batch.toml" in text


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"server.count": 0}, "server.count: must be 1 to 1000, not 0"),
        ({"server.count": "two"}, "server.count: must be"),
        ({"server.counts": 2}, "server.counts: unknown key; did you mean count"),
        ({" server . counts ": 2}, "server.counts: unknown key; did you mean count"),
        ({"server": {"count": 0}}, "server.count: must be 1 to 1000, not 0"),
        ({"server.constraints": [["hostname", "MAX_PER"]]}, "server.constraints"),
        (
            {"server.demand.ports": 1},
            "server.demand.ports: the number of ports must be 2 (for clients and controllers), 3 (for metrics",
        ),
        ({"server.demand.base_mem": -1.0}, "server.demand.base_mem: must be 0 to 1000000000000, not -1"),
        ({"kafka.replication_factor": 2}, "2 replicas need as many brokers, and server.count is 1"),
        ({"kafka.replication_factor": 2, "server.count": 1}, "and server.count is 1; raise server.count,"),
        ({"server": 3}, "server: must be a table; write [server] and its keys below"),
        ({"servr.count": 3}, "servr: unknown key; did you mean server?"),
    ],
)
def test_brokers_that_cannot_be_are_refused(overrides: dict[str, object], expected: str) -> None:
    assert expected in refused(load_scenario, "kafka-fixed", overrides)


def test_a_broker_asks_for_what_one_takes_unless_the_scenario_says_otherwise(tmp_path: Path) -> None:
    kafka = MINIMAL.replace('"zmq"', '"kafka"').replace('"pyzmq"', '"confluent-kafka"')
    servers = plugins.system("kafka").servers
    assert servers is not None
    assert load_scenario(scenario_file(tmp_path, kafka)).server == ServerSpec(demand=servers.demand)
    some = load_scenario(scenario_file(tmp_path, kafka + "[server.demand]\nbase_cpus = 3.0\n")).server
    assert some.demand == Demand(base_cpus=3.0, base_mem=1536.0, ports=2)
    assert load_scenario("kafka-fixed", {"kafka.replication_factor": 3, "kafka.bootstrap": "h:1"}).server.count == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("system = zmq", "not TOML: Invalid value (at line 1"),
        ("a = 1\na = 2", "not TOML"),
        ("", "is missing"),
        (MINIMAL + "[kafka]\n", "kafka: unknown key; this is a key of system kafka, not of zmq"),
        (MINIMAL + "[server]\n", "server: system zmq has no servers of its own; remove [server]"),
        # Before the one that it leaves missing.
        (MINIMAL.replace("duration_s", "duration"), "duration: unknown key; did you mean duration_s"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, text: str, expected: str) -> None:
    output = refused(load_scenario, scenario_file(tmp_path, text))
    assert expected in output
    assert "mine.toml" in output


@pytest.mark.parametrize(("key", "value", "setting"), [("series", ["nodrop"], "nodrop"), ("sndhwms", [10], "sndhwm")])
def test_a_search_that_takes_another_systems_setting_is_refused(key: str, value: list[object], setting: str) -> None:
    expected = f"sweep.search.{key}: takes the setting {setting}, which system kafka does not have; leave it out"
    assert expected in refused(load_scenario, "kafka-rate", {f"sweep.search.{key}": value})
    assert load_scenario("zmqrate", {f"sweep.search.{key}": value}).sweep.decided


@pytest.mark.parametrize("name", ["zmqrat", "nowhere/x.toml", "x.toml"])
def test_a_missing_scenario_lists_the_known_ones_and_tells_the_nearest(name: str) -> None:
    text = refused(load_scenario, name)
    assert all(known in text for known in scenarios())
    assert ("did you mean zmqrate" in text) == (name == "zmqrat")


# --- the cluster ---------------------------------------------------------------------------------------------------


def test_an_agents_hostname_is_its_id_unless_given(tmp_path: Path) -> None:
    path = tmp_path / "hydra.toml"
    path.write_text('[cluster]\nmax_group = 7\n[[agents]]\nid = "a"\n[[agents]]\nid = "b"\nhostname = "h"\n')
    cluster = load_cluster(path)
    assert [a.hostname for a in cluster.agents] == ["a", "h"]
    assert cluster.max_group == 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent = 1", "agent: unknown key; did you mean agents?"),
        ("agents = 1", "agents: must be tables"),
        ("agents = [1]", "agents.0: must be a table"),
        ("cluster = 1", "cluster: must be a table"),
        ("[cluster]\nmaxgroup = 1", "cluster.maxgroup: unknown key; did you mean max_group?"),
        ('[cluster]\nmax_group = 0\n[[agents]]\nid = "a"', "cluster.max_group: must be 1 to 1000000, not 0"),
        ('[cluster]\nmax_group = "x"\n[[agents]]\nid = "a"', "cluster.max_group: must be a valid integer, not 'x'"),
        ('[[agents]]\nid = "a"\n[[agents]]\nid = "a"', "two agents have the same id"),
        ("[[agents]]\nhostname = 'x'", "agents.0.id: is missing"),
        ("[[agents]]\nid = 3", "agents.0.id: must be a valid string, not 3"),
        ("[[agents]]\nid = 'a'\nresource = 'cpus:1'", "agents.0.resource: unknown key; did you mean resources?"),
        ("[[agents]]\nid = 'a'\nresources = 'cpus:x'", "agents.0.resources: resource cpus must be a number"),
        ("[[agents]]\nid = 'a'\nresources = 4", "agents.0.resources: must be a string; write for example"),
        ("[[agents]]\nid = 'a'\nattributes = 'group'", "agents.0.attributes: 'group' is not an attribute"),
        ("[cluster]\nmax_group = 99999999\n[[agents]]\nid = 'a'", "max_group: must be 1 to 1000000, not 99999999"),
    ],
)
def test_a_wrong_cluster_file_is_named_with_its_remedy(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "hydra.toml"
    path.write_text(text)
    output = refused(load_cluster, path)
    assert expected in output
    assert "hydra.toml" in output


# --- --set ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("sweep.clients=[30,60]", "sweep.clients", [30, 60]),
        ("settings.rate = 2.5", "settings.rate", 2.5),
        ("settings.rate=max", "settings.rate", "max"),
        ("settings.acks='1'", "settings.acks", "1"),
        ("settings.nodrop=true", "settings.nodrop", True),
        ("client=kafka-python", "client", "kafka-python"),
        ("kafka.bootstrap=host:9092", "kafka.bootstrap", "host:9092"),
        ("description=a=b", "description", "a=b"),
        ("description=", "description", ""),
        ("description=1\nx = 2", "description", "1\nx = 2"),
    ],
)
def test_a_set_value_is_toml_or_a_bare_word(text: str, key: str, value: object) -> None:
    assert parse_set(text) == (key, value)


@pytest.mark.parametrize("text", ["sweep.clients", "=3", "a..b=3", "sweep.clients=[30", 'name="x'])
def test_a_malformed_set_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--set") as caught:
        parse_set(text)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("settings.rate", "1k", 1000.0),
        ("settings.rate", "max", "max"),
        ("settings.message_size", "1kB", 1000),
        ("settings.message_size", "1 KiB", 1024),
        ("settings.message_sizes", "1kB-4kB:50", "1000-4000:50"),
        ("settings.message_sizes", "24-256:1234567,256-300:0.00001", "24-256:1234567,256-300:0.00001"),
        ("sweep.duration_s", "1min", 60.0),
        ("sweep.clients", ["1k", 2000], (1000, 2000)),
        ("warmup_s", "500ms", 0.5),
    ],
)
def test_a_text_with_a_unit_is_a_number_in_a_file_as_it_is_on_the_command_line(
    key: str, written: object, value: object
) -> None:
    found: Any = load_scenario("zmqfixed", {key: written})
    for part in key.split("."):
        found = getattr(found, part)
    assert found == value


def test_the_values_of_rows_have_units_too() -> None:
    scenario = load_scenario("zmqfixed", {"sweep.vary": {"message_size": ["1kB", "2KiB"], "rate": ["1k", "max"]}})
    assert scenario.values_of("message_size") == (1000, 2048)
    assert scenario.values_of("rate") == (1000.0, "max")


@pytest.mark.parametrize(
    ("key", "written"),
    [("settings.rate", "1kB"), ("settings.rate", "1e9999999k"), ("settings.rate", "100"), ("sweep.duration_s", "1 k")],
)
def test_a_text_that_is_no_number_with_a_unit_of_its_key_is_rejected(key: str, written: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key}: must be a valid number"):
        load_scenario("zmqfixed", {key: written})
