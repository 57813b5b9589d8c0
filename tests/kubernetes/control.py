"""The command lines of the control plane."""

from __future__ import annotations

import json
from pathlib import Path

from tests.kubernetes.identity import ISSUER, SYSTEM
from tests.kubernetes.places import Place, programs

_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "users": [SYSTEM, "system:apiserver", "system:anonymous"]}, {"level": "Metadata"}],
}


def etcd(place: Place) -> list[str | Path]:
    """Without fsync: what it holds is thrown away."""
    client, peer = f"http://{place.gateway}:2379", f"http://{place.gateway}:2380"
    return [
        "etcd",
        f"--data-dir={place.run / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(place: Place) -> list[str | Path]:
    """Its policy of admission is the one that Kubernetes comes with: Pod Security by the labels of namespaces."""
    run = place.run
    policy = run / "audit-policy.json"
    policy.write_text(json.dumps(_AUDIT))
    return [
        programs() / "kube-apiserver",
        f"--etcd-servers=http://{place.gateway}:2379",
        f"--bind-address={place.api}",
        f"--advertise-address={place.api}",
        "--secure-port=443",
        f"--tls-cert-file={run / 'server.crt'}",
        f"--tls-private-key-file={run / 'server.key'}",
        f"--service-cluster-ip-range={place.services}",
        f"--service-account-key-file={run / 'sa.pub'}",
        f"--service-account-signing-key-file={run / 'sa.key'}",
        f"--service-account-issuer={ISSUER}",
        f"--token-auth-file={run / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--kubelet-preferred-address-types=InternalIP",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={place.audit}",
        "--audit-log-maxsize=1000",
    ]


def controller_manager(place: Place) -> list[str | Path]:
    """Notices within six seconds that a node has ended."""
    return [
        *_client("kube-controller-manager", place),
        f"--service-account-private-key-file={place.run / 'sa.key'}",
        f"--root-ca-file={place.run / 'ca.crt'}",
        f"--flex-volume-plugin-dir={place.run / 'plugins'}",
        "--node-monitor-period=1s",
        "--node-monitor-grace-period=6s",
        "--node-eviction-rate=10",
        "--secondary-node-eviction-rate=10",
    ]


def scheduler(place: Place) -> list[str | Path]:
    """Quick enough for hundreds of Pods at once."""
    return _client("kube-scheduler", place)


def _client(program: str, place: Place) -> list[str | Path]:
    """What both have in common."""
    return [
        programs() / program,
        f"--kubeconfig={place.run / SYSTEM}.kubeconfig",
        "--leader-elect=false",
        f"--bind-address={place.gateway}",
        f"--cert-dir={place.run / 'certificates'}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]
