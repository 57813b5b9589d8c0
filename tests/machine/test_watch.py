"""The machines of a run, as a run looks at them: this host, and another one through a relay."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hydra.client.kernel_files import read_texts
from hydra.control.watch_assignment import KernelTextRequests
from hydra.model import FactChange
from hydra.run.machine_watch import MachineWatch
from hydra.run.own_machine import OwnMachine
from hydra.wire.messages import Hello, KernelTexts
from tests.control.golden_messages import FROM_CLIENT
from tests.machine.trees import stat, unpacked, write

SECOND = 10**9
OWN = ("own", "time:[1]")


class Host:
    """A host with a relay, process 50, of the group 40."""

    def __init__(self, root: Path) -> None:
        golden = FROM_CLIENT["hello-relay"]
        assert isinstance(golden, Hello)
        self.root = root
        self.now_ns = 7 * SECOND
        self.hello = Hello(**{name: getattr(golden, name) for name in golden.__struct_fields__} | {
            "agent": "far", "pid": 50, "role": "publisher"
        })  # fmt: skip
        write(root, stat(40, 1, "parent", 5) | stat(50, 40, "relay", 5) | stat(60, 1, "sshd", 100))
        (root / "proc/50/status").write_text("Cpus_allowed_list:\t2-3\n")

    @property
    def key(self) -> tuple[str, str]:
        return self.hello.boot_id, self.hello.time_namespace


class Channel:
    """A controller whose only other host answers every command while the run waits."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.answers = True
        self.too_many = False
        self.looks: list[bool] = []
        """Of each command that was sent: whether it asks for processes."""
        self.roster: Any = SimpleNamespace(own=OWN, hellos=lambda: [host.hello], looks=KernelTextRequests(OWN))
        self.roster.looks.joined(b"far", host.key)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        for identity, look in self.roster.looks.due(0) if self.answers else ():
            texts = read_texts(look.patterns, look.most_bytes, self.host.root)
            self.looks.append("/proc/[0-9]*/stat" in look.patterns)
            message = KernelTexts(
                ids=[1],
                seq=1,
                number=look.number,
                time_ns=self.host.now_ns,
                texts=texts,
                complete=not (self.too_many and self.looks[-1]),
            )
            self.roster.looks.heard(identity, message)
        return condition()


@pytest.fixture
def far(tmp_path: Path) -> Host:
    return Host(unpacked("bare-metal-intel", tmp_path / "far"))


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MachineWatch:
    # What is due is asked at once, whatever the clock of this host shows.
    monkeypatch.setattr("hydra.run.machine_watch.time.monotonic_ns", lambda: 0)
    root = unpacked("virtual-machine", tmp_path / "here")
    write(root, stat(1, 0, "init", 0) | stat(5, 1, "hydra", 0))
    return MachineWatch(OwnMachine(root, pid=5))


def test_the_record_of_each_host_is_read_once(watch: MachineWatch, far: Host) -> None:
    channel: Any = Channel(far)
    assert watch.look(channel)
    assert not watch.look(channel)
    assert watch.records.keys() == {platform.node(), "far"}
    assert watch.records["far"].governor == "powersave"
    assert watch.records["far"].quota_cpus == 0
    assert watch.others(channel) == [("far", watch.records["far"], frozenset({"publisher"}))]


def test_the_agents_of_a_host_share_its_name(watch: MachineWatch, far: Host) -> None:
    channel: Any = Channel(far)
    watch.look(channel)
    places = {"near": OWN, "far": far.key, "farther": far.key, "silent-2": ("silent", "t"), "silent-1": ("silent", "t")}
    channel.roster.hellos = lambda: [
        msgspec.structs.replace(far.hello, agent=agent, boot_id=boot_id, time_namespace=time_namespace)
        for agent, (boot_id, time_namespace) in places.items()
    ]
    assert watch.of_agents(channel) == {
        "near": platform.node(),
        "far": "far",
        "farther": "far",
        "silent-2": "silent-1",
        "silent-1": "silent-1",
    }


def test_what_happens_on_another_host_during_a_step(watch: MachineWatch, far: Host) -> None:
    channel: Any = Channel(far)
    watch.look(channel)
    watch.begin(channel)
    channel.wait_until(lambda: True, 0.0)
    watch.sample(channel)
    channel.wait_until(lambda: True, 0.0)
    far.now_ns += 10 * SECOND
    used = (
        stat(40, 1, "parent", 400) | stat(50, 40, "relay", 900) | stat(60, 1, "sshd", 300) | stat(70, 50, "client", 99)
    )
    write(far.root, used)
    policy = far.root / "sys/devices/system/cpu/cpufreq"
    for governor in policy.glob("*/scaling_governor"):
        governor.write_text("performance\n")
    heat = far.root / "sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count"
    heat.write_text("9\n")
    memory = far.root / "proc/meminfo"
    memory.write_text(memory.read_text().replace("SwapFree:         523264 kB", "SwapFree:         523260 kB"))
    watch.end(channel)
    activity = watch.activities(channel)["far"]
    assert activity.seconds == 10.0
    assert (activity.cpus, activity.others) == (8, {"sshd": 2.0})
    assert activity.frequencies_mhz == (4100.0,)
    assert (activity.throttled, activity.swapped_bytes) == (2, 4096)
    assert activity.changed == (FactChange("governor", "powersave", "performance"),)
    assert activity.pinned == {"publisher": "2-3"}
    assert activity.before is None


def test_a_host_with_too_many_processes_is_observed_without_them(watch: MachineWatch, far: Host) -> None:
    channel: Any = Channel(far)
    watch.look(channel)
    channel.too_many = True
    for _ in range(2):
        watch.begin(channel)
        channel.wait_until(lambda: True, 0.0)
        watch.end(channel)
        activity = watch.activities(channel)["far"]
        assert activity.others is None
        assert activity.pinned == {"publisher": "2-3"}
    assert sum(channel.looks) == 1


def test_before_is_the_time_since_the_last_stored_step_or_the_start(
    watch: MachineWatch, far: Host, tmp_path: Path
) -> None:
    channel: Any = Channel(far)
    root = tmp_path / "here"

    def step(ticks: int) -> float | None:
        write(root, stat(9, 1, "busy", ticks))
        watch.begin(channel)
        write(root, stat(9, 1, "busy", ticks + 100))
        watch.end(channel)
        activity = watch.activities(channel)[platform.node()]
        assert activity.others == {"busy": 1.0}
        assert activity.before is not None
        return activity.before.get("busy")

    warm_up = step(50)
    assert warm_up == 0.5
    assert step(200) == 2.0
    watch.step_stored()
    assert step(400) == 1.0


def test_a_host_that_does_not_answer_is_not_known_and_is_not_waited_for_again(watch: MachineWatch, far: Host) -> None:
    channel: Any = Channel(far)
    channel.answers = False
    assert watch.look(channel)
    channel.answers = True
    assert not watch.look(channel)
    watch.begin(channel)
    watch.end(channel)
    assert watch.activities(channel).keys() == {platform.node()}
