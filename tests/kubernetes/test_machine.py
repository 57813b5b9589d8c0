"""What the rig changes of the machine as a whole, on a machine that is a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.machine import _SETTINGS, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for name in _SETTINGS:
        file = tmp_path / "proc" / "sys" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("0\n")
    return Machine(tmp_path, tmp_path / "running", tmp_path / "locks")


def test_the_machine_is_as_it_was_when_the_last_instance_has_ended(machine: Machine) -> None:
    one, two = machine.running / "1", machine.running / "2"
    setting = machine.root / "proc/sys/vm/overcommit_memory"
    plugins = machine.root / "var/lib/kubelet/device-plugins"
    machine.enter(one)
    setting.write_text("1")
    plugins.mkdir(parents=True)
    (plugins / "kubelet.sock").touch()
    machine.enter(two)
    machine.leave(one)
    assert setting.read_text() == "1"
    machine.leave(two)
    assert setting.read_text() == "0"
    assert not plugins.parent.exists()
    assert not machine.running.exists()


def test_folders_that_somebody_else_uses_stay(machine: Machine) -> None:
    others = machine.root / "run/containerd/containerd.sock"
    others.parent.mkdir(parents=True)
    others.touch()
    machine.enter(machine.running / "1")
    machine.leave(machine.running / "1")
    assert others.exists()
