"""The test master answers as the real one did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.mesos import recordings
from tests.mesos.client import Framework, ask
from tests.mesos.cluster import Cluster, running
from tests.mesos.recordings import FOLDER, FRAMEWORK, STREAM, events, exchange, shape, statuses
from tests.suite.waiting import SOON_S, wait_until

pytestmark = pytest.mark.tier("all")

PORTS = "ports:[2000-2999,31500-32000]"
RECORDED = (
    ("127.0.0.1", "group:cpu16-mem60;rack:12;slots:[1-3]", f"cpus:16;mem:60000;disk:10000;{PORTS}"),
    ("127.0.0.1", "group:cpu4-mem16", "cpus:4;mem:15000;disk:10000;ports:[31000-31499]"),
)
"""The two agents of the recordings."""
REFUSED = [json.loads(line)["note"] for line in (FOLDER / "4-refused-calls.jsonl").read_text().splitlines()]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path, RECORDED, resend_s=0.5, ping_timeout_s=0.1) as cluster:
        yield cluster


@pytest.fixture
def framework(cluster: Cluster) -> Iterator[Framework]:
    framework = Framework(cluster.address)
    yield framework
    framework.close()


@pytest.mark.parametrize("note", REFUSED)
def test_it_refuses_what_the_real_one_refused_in_its_words(framework: Framework, note: str) -> None:
    recorded = exchange(note)
    method, target = recorded["request"]["line"].split()
    body = recorded["request"]["body"]
    text = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    counted = {FRAMEWORK: framework.id, STREAM: framework.stream_id}
    for others, own in counted.items():
        text = text.replace(others, own)
    headers = {name: counted.get(value, value) for name, value in recorded["request"]["headers"].items()}
    status, answer_headers, answer = ask(framework.address, method, target, text.encode(), headers)
    for others, own in counted.items():
        answer = answer.replace(own, others)
    assert f"{status} " in recorded["response"]["status"]
    assert answer == recorded["response"]["body"]
    assert set(answer_headers) == set(recorded["response"]["headers"])


def test_its_endpoints_answer_in_the_recorded_shape(cluster: Cluster) -> None:
    assert json.loads(ask(cluster.address, "GET", "/version")[2]) == exchange("version")["response"]["body"]
    own = json.loads(ask(cluster.address, "GET", "/slaves")[2])["slaves"]
    others = exchange("agents as the operator endpoint lists them")["response"]["body"]["slaves"]
    for agent, recorded in zip(own, others, strict=True):
        assert {k: shape(v) for k, v in agent.items()}.items() <= shape(recorded).items()
        for key in ("attributes", "resources", "used_resources"):
            assert agent[key] == recorded[key]
    status, headers, _ = ask(cluster.address, "GET", "/redirect")
    assert (status, headers["Location"]) == (307, f"//{cluster.address}")


def test_subscription_offers_and_heartbeat_have_the_recorded_shape(framework: Framework) -> None:
    recorded = next(line for line in recordings.lines() if line["dir"] == "response")
    assert set(dict(framework.answer.getheaders())) == set(recorded["headers"])
    assert shape(framework.wait("SUBSCRIBED")) == shape(events("SUBSCRIBED")[0])
    assert framework.wait("HEARTBEAT") == {}
    others, own = events("OFFERS")[0]["offers"], framework.wait("OFFERS")["offers"]
    for offer, other in zip(own, others, strict=True):
        assert shape(offer) == shape(other)
        assert offer["resources"] == other["resources"]
        assert offer["attributes"] == other["attributes"]


def test_a_task_really_runs_and_its_updates_have_the_recorded_shape(cluster: Cluster, framework: Framework) -> None:
    offer = framework.wait("OFFERS")["offers"][0]
    environment = {"variables": [{"name": "HYDRA_X", "value": "y"}]}
    command = {"value": 'echo "$HYDRA_X"; echo oops >&2; pwd', "environment": environment}
    framework.launch(offer, "ok-1", command)
    for state in ("TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"):
        status = framework.wait_for_task("ok-1", state)
        recorded = next(s for s in statuses(state) if s["task_id"]["value"] == "ok-1")
        own = {k: v for k, v in shape(status).items() if k != "container_status"}
        assert own == {k: v for k, v in shape(recorded).items() if k != "container_status"}
        assert status.get("message") == recorded.get("message")
        framework.acknowledge(status)
    (task,) = cluster.ask(cluster.master.tasks)
    sandbox = cluster.agents[0].sandbox(task)
    assert (sandbox / "stdout").read_text() == f"y\n{sandbox}\n"
    address = f"127.0.0.1:{cluster.agents[0].port}"
    answer = ask(address, "GET", f"/files/read?path={sandbox}/stderr&offset=0&length=1000")[2]
    assert shape(json.loads(answer)) == shape(exchange("read stderr")["response"]["body"])
    assert json.loads(answer)["data"].endswith("oops\n")
    assert ask(address, "GET", f"/files/read?path={sandbox}/nothing")[0] == 404


def test_an_update_comes_again_until_it_is_acknowledged_and_the_next_one_only_then(framework: Framework) -> None:
    framework.launch(framework.wait("OFFERS")["offers"][0], "fails-1", {"value": "exit 3"})
    first, again = framework.wait("UPDATE", 0), framework.wait("UPDATE", 1)
    assert first == again
    framework.acknowledge(first["status"])
    framework.acknowledge(framework.wait_for_task("fails-1", "TASK_RUNNING"))
    failed = framework.wait_for_task("fails-1", "TASK_FAILED")
    assert failed["message"] == "Command exited with status 3"


@pytest.mark.parametrize(
    ("task", "state", "command", "cpus"),
    [
        ("too-big", "TASK_ERROR", {"value": "true"}, 1000.0),
        ("bad-uri", "TASK_FAILED", {"value": "true", "uris": [{"value": "http://127.0.0.1:1/nothing.tar.gz"}]}, 0.1),
    ],
)
def test_a_launch_that_fails_says_so_as_recorded(
    framework: Framework, task: str, state: str, command: dict[str, object], cpus: float
) -> None:
    framework.launch(framework.wait("OFFERS")["offers"][0], task, command, cpus=cpus)
    status, recorded = framework.wait_for_task(task, state), statuses(state)[0]
    assert shape(status) == shape(recorded)
    assert (status["source"], status["reason"]) == (recorded["source"], recorded["reason"])
    words = str(recorded["message"]).split("available")[0].split("'")[0]
    assert status["message"].startswith(words)


def test_an_offer_can_be_used_once(framework: Framework) -> None:
    offer = framework.wait("OFFERS")["offers"][0]
    framework.launch(offer, "first", {"value": "true"})
    framework.launch(offer, "stale", {"value": "true"})
    status, recorded = framework.wait_for_task("stale", "TASK_DROPPED"), statuses("TASK_DROPPED")[0]
    assert shape(status) == shape(recorded)
    assert status["message"].replace(offer["id"]["value"], "O") == recorded["message"].replace(
        f"{FRAMEWORK[:-5]}-O6", "O"
    )


def test_unknown_tasks_are_reconciled_and_killed_in_vain(framework: Framework) -> None:
    framework.call("RECONCILE", {"tasks": [{"task_id": {"value": "never-seen"}}]})
    framework.call("KILL", {"task_id": {"value": "no-such"}})
    for task in ("never-seen", "no-such"):
        status = framework.wait_for_task(task, "TASK_UNKNOWN")
        (recorded,) = (s for s in statuses("TASK_UNKNOWN") if s["task_id"]["value"] == task)
        assert {**status, "timestamp": 0} == {**recorded, "timestamp": 0}


def test_a_second_subscription_ends_the_first(cluster: Cluster, framework: Framework) -> None:
    with closing(Framework(cluster.address, framework=framework.id)) as second:
        assert second.id == framework.id
        assert framework.wait("ERROR") == events("ERROR")[0]
        assert framework.closed.wait(SOON_S)


def test_a_removed_framework_may_not_come_back(cluster: Cluster, framework: Framework) -> None:
    framework.run("long")
    framework.call("TEARDOWN")
    assert framework.closed.wait(SOON_S)
    wait_until(lambda: cluster.states()["long"] == "TASK_KILLED", "the end of its task")
    with closing(Framework(cluster.address, framework=framework.id)) as again:
        assert again.wait("ERROR") == events("ERROR")[1]
        assert again.closed.wait(SOON_S)


def test_a_lost_agent_is_told_as_recorded(cluster: Cluster, framework: Framework) -> None:
    offer = framework.run("sandbox-1")
    framework.wait("OFFERS", 1)
    cluster.do(cluster.master.forget_agent(cluster.agents[0]))
    assert shape(framework.wait("RESCIND")) == shape(events("RESCIND")[0])
    status = framework.wait_for_task("sandbox-1", "TASK_UNREACHABLE")
    recorded = statuses("TASK_UNREACHABLE")[0]
    assert shape(status) == shape(recorded)
    assert (status["message"], status["reason"]) == (recorded["message"], recorded["reason"])
    assert framework.wait("FAILURE") == {"agent_id": offer["agent_id"]}
    assert shape(events("FAILURE")[0]) == shape(framework.wait("FAILURE"))


def test_a_master_that_does_not_lead_redirects_and_one_that_recovers_asks_for_patience(cluster: Cluster) -> None:
    old = cluster.master
    cluster.fail_over(recovering_s=0.0)
    status, headers, _ = ask(old.address, "POST", "/api/v1/scheduler", b"{}", {"Content-Type": "application/json"})
    assert (status, headers["Location"]) == (307, f"//{cluster.master.address}/api/v1/scheduler")
    old.leader = ""
    assert ask(old.address, "POST", "/api/v1/scheduler", b"{}")[0] == 503
