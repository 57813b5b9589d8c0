"""Topics that runs left behind: whose they are, and which of them are removed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from hydra.client.process_identity import INITIAL_PID_NAMESPACE, ProcessOwner, start_of, this_process, why_not_dead
from hydra.errors import ServerError
from hydra.kafkatest.topic_registry import OwnedTopic, TopicRegistry, clean, why_kept
from hydra.kafkatest.topics import Cluster as Described
from hydra.kafkatest.topics import Topics

ME = ProcessOwner("here", "m1", "boot1", INITIAL_PID_NAMESPACE, 10, 500)
IN_CONTAINER = replace(ME, pid_namespace="ns2")
PID = 77
"""The owner's."""


def starts(pid: int) -> int | None:
    """The processes of a host: one has the owner's number, and began at 1000."""
    if pid == 99:
        raise PermissionError
    return {PID: 1000}.get(pid)


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (replace(ME, pid=PID, started=1000), "process 77 on here, which is running"),
        (replace(ME, pid=PID, started=999), ""),  # another process has its number by now
        (replace(ME, pid=78), ""),
        (replace(ME, pid=PID, started=1000, boot_id="boot2"), ""),
        (replace(ME, pid=78, pid_namespace="ns2"), "another container"),
        # Containers of one image have one name and one machine-id on every host.
        (replace(ME, pid=78, pid_namespace="ns2", boot_id="boot2"), "host of this name; run the command there"),
        (replace(ME, pid=78, host="there"), "process 78 on there; run the command there"),
        (replace(ME, pid=78, boot_id="boot2", host="there"), "run the command there"),
        (replace(ME, pid=78, boot_id="boot2", machine_id="m2"), "run the command there"),  # two hosts of one name
        (replace(ME, pid=99), "hidden from this user"),
    ],
)
def test_an_owner_is_dead_only_if_that_is_known(owner: ProcessOwner, why: str) -> None:
    reported = why_not_dead(owner, ME, starts)
    assert reported == why if not why else why in reported
    record = OwnedTopic("hydra-x", "c", "h:1", "/run", owner)
    assert why_kept(record, "c", ME, starts) == reported
    assert "of another cluster" in why_kept(record, "d", ME, starts)


@pytest.mark.parametrize("me", [IN_CONTAINER, replace(ME, machine_id="")], ids=["in a container", "no machine-id"])
def test_another_boot_is_none_of_this_host_where_the_host_is_not_known(me: ProcessOwner) -> None:
    assert "run the command there" in why_not_dead(replace(me, boot_id="boot2"), me, starts)
    assert why_not_dead(replace(me, pid=78), me, starts) == ""


@pytest.mark.tier("test")
def test_the_start_of_a_process_tells_whether_it_is_there() -> None:
    me = this_process()
    assert start_of(me.pid) == me.started > 0
    # A name with spaces and a parenthesis must not move the fields.
    with subprocess.Popen(
        ["perl", "-e", "$0 = 'x) R (y'; $| = 1; print 'up'; <STDIN>"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.read(2) == b"up"
        began = start_of(child.pid)
        assert began is not None
        assert began >= me.started
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        # Not reaped yet: a zombie is dead.
        assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
        assert start_of(child.pid) is None
    assert start_of(child.pid) is None


def record(topic: str, cluster: str = "c", owner: ProcessOwner = ME) -> OwnedTopic:
    return OwnedTopic(topic, cluster, "h:1", "/run", owner)


def test_records_are_in_every_folder_until_they_are_removed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    both = TopicRegistry(one, two)
    both.add(record("hydra-a"))
    both.add(record("hydra-b"))
    assert (
        TopicRegistry(one).all()
        == TopicRegistry(two).all()
        == {"hydra-a": record("hydra-a"), "hydra-b": record("hydra-b")}
    )
    both.remove("hydra-a")
    assert list(TopicRegistry(two).all()) == ["hydra-b"]
    both.remove("hydra-b")
    both.remove("hydra-b")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_copy_is_done_without_unless_it_is_the_first(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    TopicRegistry(tmp_path / "run", blocked / "state").add(record("hydra-a"))
    assert list(TopicRegistry(tmp_path / "run").all()) == ["hydra-a"]
    with pytest.raises(OSError, match="file"):
        TopicRegistry(blocked / "run", tmp_path / "state").add(record("hydra-b"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"topic": "hydra-a"}', '{"topic": 1}'])
def test_a_damaged_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "hydra-a.json").write_text(text)
    assert TopicRegistry(tmp_path).all() == {}


class Cluster(Topics):
    """A cluster that has some topics, lists some of them, and refuses to delete some."""

    def __init__(self, present: set[str], hidden: set[str], refused: set[str]) -> None:
        super().__init__("h:1", {}, "")
        self.names, self._hidden, self._refused = present, hidden, refused

    def describe(self, timeout_s: float = 0.0) -> Described:
        return Described("c", 1, frozenset(self.names - self._hidden))

    def groups_of(self, topic: str) -> list[str]:
        return []  # no broker answers at its address, and asking takes seconds

    def remove(self, topic: str) -> bool:
        if topic in self._refused:
            raise ServerError(f"Kafka refuses to delete {topic}", "look at --bootstrap")
        existed = topic in self.names
        self.names.discard(topic)
        return existed


def test_a_topic_that_is_not_removed_keeps_its_record_and_stops_no_other(tmp_path: Path) -> None:
    records, dead = TopicRegistry(tmp_path), replace(this_process(), pid=2**22 + 1)
    for name in ("a-refused", "b-there", "c-hidden", "d-hidden-refused", "e-never-made"):
        records.add(record(f"hydra-{name}", owner=dead))
    records.add(record("hydra-f-mine", owner=this_process()))
    refused = {"hydra-a-refused", "hydra-d-hidden-refused"}
    hidden = {"hydra-c-hidden", "hydra-d-hidden-refused"}
    kept = {"hydra-f-mine", "hydra-g-unknown"}
    cluster = Cluster({"hydra-a-refused", "hydra-b-there"} | hidden | kept, hidden, refused)
    *others, own, unknown = map(str, clean(cluster, records))
    assert others == [
        "kept hydra-a-refused: Kafka refuses to delete hydra-a-refused",
        "removed hydra-b-there",
        "removed hydra-c-hidden",
        "kept hydra-d-hidden-refused: Kafka refuses to delete hydra-d-hidden-refused",
    ]
    assert own.startswith("kept hydra-f-mine: ")
    assert "which is running" in own
    assert unknown.startswith("kept hydra-g-unknown: ")
    assert "no record" in unknown
    assert cluster.names == refused | kept
    assert records.all().keys() == refused | {"hydra-f-mine"}
    assert cluster.created == ()
