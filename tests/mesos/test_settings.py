"""[mesos] in hydra.toml, its flags and its part of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.config.cluster import load_cluster, load_engine
from hydra.errors import ConfigError
from hydra.mesos.master import hosts
from hydra.mesos.settings import MesosSettings


def written(folder: Path, text: str) -> Path:
    path = folder / "hydra.toml"
    path.write_text(f"[[agents]]\nid = 'a'\n{text}")
    return path


def test_what_comes_with_hydra_is_the_default() -> None:
    assert load_engine("mesos") == MesosSettings()


def test_flags_go_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "[mesos]\nrole = 'r'\nprincipal = 'p'\nsecret = 'file'\nadvertise = '10.0.0.1'\n")
    monkeypatch.setenv("HYDRA_MESOS_SECRET", "environment")
    spec = load_engine("mesos", path, {"advertise": "10.0.0.2", "artifact": None})
    assert (spec.role, spec.principal, spec.secret) == ("r", "p", "environment")
    assert (spec.advertise, spec.artifact) == ("10.0.0.2", "")
    assert "environment" not in repr(spec)
    assert "environment" not in str(load_cluster(path))


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("[mesos]\nrolle = 'x'\n", "mesos.rolle: unknown key; did you mean role?"),
        ("[mesos]\nrole = ''\n", "mesos.role: must not be empty"),
        ("[mesos]\nfailover_timeout_s = -1.0\n", "mesos.failover_timeout_s: must be 0 to 1000000000 s, not -1 s"),
        ("[mesos]\nname = 'a/b'\n", "mesos.name: must be a word without a slash"),
        ("[mesos]\nsecret = 's3cret'\n", "mesos.secret: needs a principal"),
        ("[mesos]\nsecret = ['s3cret']\n", "mesos.secret: must be a valid string"),
        ("[mesos]\nfailover_timeout_s = 1e300\n", "mesos.failover_timeout_s: must be 0 to 1000000000"),
    ],
)
def test_a_refusal_names_the_key_and_never_the_secret(tmp_path: Path, text: str, refusal: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_engine("mesos", written(tmp_path, text))
    assert refusal in str(error.value)
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("master", "found"),
    [
        ("host", [("host", 5050)]),
        ("10.0.0.1:5051", [("10.0.0.1", 5051)]),
        ("zk://h1:2182,h2/mesos", [("h1", 2182), ("h2", 2181)]),
    ],
)
def test_a_master_is_read_with_its_default_ports(master: str, found: list[tuple[str, int]]) -> None:
    assert hosts(master) == found
