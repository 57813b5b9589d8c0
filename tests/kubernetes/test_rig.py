"""What tests of the Kubernetes engine rely on: nodes, the Pod network, policies and users of the rig."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from tests.kubernetes import images
from tests.kubernetes.api import ApiError
from tests.kubernetes.pods import namespace, pod, status_of
from tests.kubernetes.rig import Rig

LISTENS = "import socket; s = socket.create_server(('', 7000)); c, _ = s.accept(); c.sendall(b'hello')"
ASKS = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 10).recv(9))"


@pytest.fixture
def space(rig: Rig) -> Iterator[str]:
    with namespace(rig.api()) as name:
        yield name


def test_all_nodes_are_ready_and_carry_the_labels_of_the_published_scenarios(rig: Rig) -> None:
    found = {each["metadata"]["name"]: each["metadata"]["labels"]["group"] for each in rig.api().items("/api/v1/nodes")}
    assert found == {"node1": "cpu4-mem16", "node2": "cpu16-mem60"}
    assert rig.ready() == ["node1", "node2"]


def test_restricted_pods_reach_each_other_across_nodes_and_this_machine_reaches_them(rig: Rig, space: str) -> None:
    api, pods = rig.api(), f"/api/v1/namespaces/{space}/pods"
    there = {"nodeSelector": {"group": "cpu4-mem16"}}
    api.create(pods, pod("listens", images.PYTHON, ["python3", "-c", LISTENS], **there))
    address = status_of(api, f"{pods}/listens", "Running")["podIP"]
    elsewhere = {"nodeSelector": {"group": "cpu16-mem60"}}
    api.create(pods, pod("asks", images.PYTHON, ["python3", "-c", ASKS, address, "7000"], **elsewhere))
    status_of(api, f"{pods}/asks", "Succeeded")
    assert api.get(f"{pods}/asks/log") == "b'hello'\n"
    assert api.get(f"{pods}/listens")["spec"]["nodeName"] == "node1"
    assert api.get(f"{pods}/asks")["spec"]["nodeName"] == "node2"


def test_pods_reach_this_machine(rig: Rig, space: str) -> None:
    with http.server.ThreadingHTTPServer((rig.place.gateway, 0), http.server.SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        api, pods = rig.api(), f"/api/v1/namespaces/{space}/pods"
        url = f"http://{rig.place.gateway}:{server.server_port}/"
        command = ["python3", "-c", f"import urllib.request; urllib.request.urlopen('{url}', timeout=10)"]
        api.create(pods, pod("asks", images.PYTHON, command))
        assert status_of(api, f"{pods}/asks", "Succeeded", "Failed")["phase"] == "Succeeded"
        server.shutdown()


def test_a_pod_calls_the_api_with_the_token_of_its_service_account(rig: Rig, space: str) -> None:
    script = (
        "import os, ssl, urllib.request as r; d = '/var/run/secrets/kubernetes.io/serviceaccount/'\n"
        "url = f\"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/api\"\n"
        "request = r.Request(url, headers={'Authorization': 'Bearer ' + open(d + 'token').read()})\n"
        "print(r.urlopen(request, context=ssl.create_default_context(cafile=d + 'ca.crt')).status)"
    )
    api, pods = rig.api(), f"/api/v1/namespaces/{space}/pods"
    api.create(pods, pod("asks", images.PYTHON, ["python3", "-c", script], enableServiceLinks=False))
    status_of(api, f"{pods}/asks", "Succeeded", "Failed")
    assert api.get(f"{pods}/asks/log") == "200\n"


def test_the_image_of_this_tree_runs_hydra_and_its_native_client(rig: Rig, space: str) -> None:
    api, pods = rig.api(), f"/api/v1/namespaces/{space}/pods"
    script = "hydra --version && hydra-client --help && id -u && java -version && nats-server --version"
    api.create(pods, pod("hydra", rig.image, ["sh", "-c", script]))
    status = status_of(api, f"{pods}/hydra", "Succeeded", "Failed")
    assert status["phase"] == "Succeeded", api.get(f"{pods}/hydra/log")


def test_pod_security_refuses_what_is_not_restricted(rig: Rig, space: str) -> None:
    loose = pod("loose", images.PYTHON, ["true"])
    del loose["spec"]["securityContext"]
    with pytest.raises(ApiError, match="violates PodSecurity"):
        rig.api().create(f"/api/v1/namespaces/{space}/pods", loose)


def test_a_user_has_no_rights_until_they_are_granted_and_the_log_tells_what_was_asked(rig: Rig, space: str) -> None:
    pods = f"/api/v1/namespaces/{space}/pods"
    with pytest.raises(ApiError, match="403"):
        rig.api("hydra").get(pods)
    asked = [each for each in rig.audited("hydra") if each["objectRef"].get("namespace") == space]
    assert [(each["verb"], each["objectRef"]["resource"]) for each in asked] == [("list", "pods")]
    assert asked[0]["responseStatus"]["code"] == 403
