"""The cluster file's hosts, and the flag that names some of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hydra.config.cluster import load_cluster, load_engine
from hydra.errors import ConfigError, UsageError
from hydra.options.engine_choice import choose


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return tmp_path / "cluster.toml"


def test_the_hosts_of_a_cluster_file_are_settings_of_the_engine(cluster: Path) -> None:
    cluster.write_text('[ssh]\nadvertise = "10.0.0.9"\n[[hosts]]\nname = "a"\n[[hosts]]\nname = "b"\nport = 2222\n')
    settings = load_engine("ssh", cluster)
    assert (settings.advertise, settings.hosts) == ("10.0.0.9", ({"name": "a"}, {"name": "b", "port": 2222}))
    assert load_cluster(cluster).agents == ()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[[hosts]]\nport = 1\n", "hosts.0.name: must have letters"),
        ("[[hosts]]\nname = 'a'\n[[hosts]]\nname = 'b'\nuser = 1\n", "hosts.1.user: must be a text in quotes, not 1"),
        ("hosts = 'a'\n", "hosts: must be"),
        ("[ssh]\nhosts = []\n", "ssh.hosts: unknown key"),
        ("[slurm]\nhosts = []\n", "slurm.hosts: unknown key"),
        ("[[host]]\nname = 'a'\n", "host: unknown key; did you mean hosts?"),
    ],
)
def test_a_mistake_is_named_by_its_key_whichever_engine_runs(cluster: Path, written: str, expected: str) -> None:
    cluster.write_text(written)
    load = load_cluster if written.startswith("[[host]]") else partial(choose, "local")
    with pytest.raises(ConfigError) as refusal:
        load(cluster)
    assert str(refusal.value).startswith(f"{cluster}: {expected}")


@pytest.mark.parametrize(
    ("master", "hosts", "chosen"),
    [(None, None, "local"), (None, "a,b", "ssh://a,b"), ("ssh", "a", "ssh://a"), ("slurm", None, "slurm")],
)
def test_a_flag_stands_for_a_master(master: str | None, hosts: str | None, chosen: str) -> None:
    engine = choose(master, None, {"hosts": hosts})
    assert (engine.master, engine.spec.name) == (chosen, chosen.partition("://")[0])


@pytest.mark.parametrize("master", ["local", "slurm", "10.0.0.5:5050", "ssh://c"])
def test_two_flags_that_name_a_cluster_are_refused(master: str) -> None:
    with pytest.raises(UsageError, match=f"--hosts and --master {master} name two clusters"):
        choose(master, None, {"hosts": "a"})


@pytest.mark.parametrize(
    ("master", "expected"), [("ssh", "declares no hosts"), ("ssh://a,-x", "--hosts a,-x: '-x' is not a host")]
)
def test_hosts_that_are_none_are_refused(cluster: Path, master: str, expected: str) -> None:
    cluster.write_text("")
    engine = choose(master, cluster)
    with pytest.raises(UsageError, match=expected):
        engine.agents([])
