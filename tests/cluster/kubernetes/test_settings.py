"""[kubernetes] in hydra.toml, its tables and lists, and its flags."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.config.engines import load_engine
from hydra.config.places import conf_dir
from hydra.errors import ConfigError

TABLES = """
[kubernetes]
node_lost_s = 5
[kubernetes.labels]
team = "messaging"
[kubernetes.annotations]
"example.com/cost-centre" = "42, and more"
[[kubernetes.tolerations]]
key = "dedicated"
operator = "Exists"
[[kubernetes.tolerations]]
key = "slow"
effect = "NoExecute"
tolerationSeconds = 3
[kubernetes.pod]
runtimeClassName = "gvisor"
dnsConfig = { options = [{ name = "ndots", value = "1" }] }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "hydra.toml"
    path.write_text(f"[[agents]]\nid = 'a'\n{text}")
    return path


def test_what_comes_with_hydra_is_the_default() -> None:
    assert load_engine("kubernetes") == KubernetesSettings()


def test_what_comes_with_hydra_in_comments_can_be_used(tmp_path: Path) -> None:
    table = "[kubernetes]\n" + (conf_dir() / "hydra.toml").read_text().partition("\n[kubernetes]\n")[2]
    bare = re.sub(r"^# ([a-zA-Z_]+ = |\[|\")", r"\1", table, flags=re.MULTILINE)
    settings = load_engine("kubernetes", written(tmp_path, bare))
    (toleration,) = settings.tolerations
    assert toleration == {"key": "dedicated", "operator": "Equal", "value": "benchmarks", "effect": "NoSchedule"}
    assert (settings.labels, settings.pod) == ({"team": "messaging"}, {"runtimeClassName": "gvisor"})


def test_tables_and_lists_are_as_in_a_pods_yaml(tmp_path: Path) -> None:
    settings = load_engine("kubernetes", written(tmp_path, TABLES))
    assert settings == KubernetesSettings(
        node_lost_s=5,
        labels={"team": "messaging"},
        annotations={"example.com/cost-centre": "42, and more"},
        tolerations=(
            {"key": "dedicated", "operator": "Exists"},
            {"key": "slow", "effect": "NoExecute", "tolerationSeconds": 3},
        ),
        pod={"runtimeClassName": "gvisor", "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}},
    )


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("namespce = 'x'", "namespce: unknown key; did you mean namespace?"),
        ("namespace = 'My_own'", "namespace: must be lower-case letters, digits and -, not 'My_own'"),
        ("pull_policy = 'Sometimes'", "pull_policy: must be one of Always, IfNotPresent, Never, not 'Sometimes'"),
        ("labels = 'team'", 'labels: must be a table; write { name = "value" }'),
        ("labels = { team = 3 }", "labels.team: must be a valid string; write it in quotes"),
        ("labels = { team = { name = 'x' } }", "labels.team: must be a valid string"),
        ("labels = { team = 'my team' }", "labels.team: must be at most 63 letters, digits, -, _ and ., of which the "),
        ("annotations = { a = true }", "annotations.a: must be a valid string; write it in quotes"),
        ("tolerations = { key = 'x' }", "tolerations: must be a list, not a table; write [ ] around it"),
        ("tolerations = ['x']", "tolerations.0: must be a table, not 'x'; write { name = \"value\" }"),
        (
            "tolerations = [{}, { efect = 'NoSchedule' }]",
            "tolerations.1.efect: is no key of a toleration: key, operator, value, effect, tolerationSeconds",
        ),
        ("tolerations = [{ tolerationSeconds = '3' }]", "tolerations.0.tolerationSeconds: must be a whole number, not"),
        ("pod = { containers = [] }", "pod.containers: would replace what Hydra writes there"),
        ("tolerations = [{ key = true }]", "tolerations.0.key: must be a text in quotes, not True"),
        ("pod = ['x']", 'pod: must be a table, not a list; write { name = "value" }'),
        ("ports = 'many'", "ports: must be a range within 1-65535, as in '31000-32000', not 'many'"),
        ("ports = '2-1'", "ports: must be a range within 1-65535, as in '31000-32000', not '2-1'"),
        ("ports = 31000", "ports: must be a valid string, not 31000; write it in quotes"),
        ("cpu_limit_ratio = 0.5", "cpu_limit_ratio: must be 0 for no limit, or 1 or more, not 0.5"),
        ("memory_limit_ratio = 0.99", "memory_limit_ratio: must be 0 for no limit, or 1 or more, not 0.99"),
        ("memory_limit_ratio = 1e3", "memory_limit_ratio: must be 0 to 100, not 1000"),
        ("node_lost_s = 0", "node_lost_s: must be 1 to 3600, not 0"),
        ("in_cluster = 'yes'", "in_cluster: must be a valid boolean, not 'yes'"),
    ],
)
def test_a_refusal_is_one_line_with_the_key_and_what_would_be_right(tmp_path: Path, text: str, refusal: str) -> None:
    path = written(tmp_path, f"[kubernetes]\n{text}\n")
    with pytest.raises(ConfigError) as error:
        load_engine("kubernetes", path)
    assert str(error.value).startswith(f"{path}: kubernetes.{refusal}")
    assert "\n" not in str(error.value)


def test_a_flag_is_blamed_for_itself_and_not_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[kubernetes]\nnamespace = 'good'\n")
    with pytest.raises(ConfigError) as error:
        load_engine("kubernetes", path, {"namespace": "B A D", "python_image": "python:3.12"})
    assert str(error.value) == "--namespace: must be lower-case letters, digits and -, not 'B A D'"
