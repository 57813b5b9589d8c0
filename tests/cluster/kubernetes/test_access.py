"""What is read of a kubeconfig before anybody is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.cluster.kubernetes.access import IN_CLUSTER, Api, check_context, context_of
from hydra.errors import HydraError, UsageError

GOOD = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: lab, context: {cluster: c, user: u, namespace: tests}}, {name: bare, context: {cluster: c, user: u}}]
current-context: lab
"""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    path.write_text(GOOD)
    # The client has read the variable when it was imported.
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


@pytest.mark.parametrize(
    ("master", "context"), [("k8s://lab", "lab"), ("k8s://", ""), ("kubernetes", ""), ("k8s://in-cluster", IN_CLUSTER)]
)
def test_a_master_names_a_context(master: str, context: str) -> None:
    assert context_of(master) == context


@pytest.mark.parametrize(("context", "namespace"), [("", "tests"), ("lab", "tests"), ("bare", "default")])
def test_a_context_has_a_namespace(kubeconfig: Path, context: str, namespace: str) -> None:
    check_context(context)
    assert Api(context).namespace == namespace


def test_a_context_that_is_not_there_is_told_with_those_that_are(kubeconfig: Path) -> None:
    with pytest.raises(UsageError, match="no context 'moon'; it has: lab, bare"):
        check_context("moon")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [b",
        "[]",
        "contexts: 3",
        "contexts: []",
        "current-context: lab",
        "\x00",
        "contexts: [{}]\ncurrent-context: x",
    ],
)
def test_a_kubeconfig_that_is_none_is_one_line(kubeconfig: Path, text: str) -> None:
    kubeconfig.write_text(text)
    with pytest.raises(HydraError) as refused:
        Api("")
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code in (1, 2)


def test_a_controller_that_is_no_pod_is_told_so() -> None:
    with pytest.raises(UsageError, match=r"no cluster to ask: .*--in-cluster makes"):
        Api(IN_CLUSTER)
