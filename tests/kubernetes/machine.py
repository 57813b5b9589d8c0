"""What an instance changes of the machine as a whole: put back when the last one ends."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Final

from tests.kubernetes.locks import MACHINE, locked
from tests.kubernetes.places import RUNNING, Place

_KERNEL: Final = Path("/proc/sys")
_SETTINGS: Final = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
                    "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")  # fmt: skip
"""What a kubelet sets."""
_NOTED: Final = RUNNING / "kernel.json"
_FOLDERS: Final = ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet", "/var/lib/cni/results", "/var/lib/cni",
                   "/run/containerd/s", "/run/containerd", "/var/log/containers")  # fmt: skip
"""What a kubelet and containerd make wherever their own folders are."""


def enter(place: Place) -> None:
    """Makes the folder of an instance, after it has noted how the machine was."""
    with locked(MACHINE / "machine"):
        RUNNING.mkdir(parents=True, exist_ok=True)
        if not _NOTED.exists():
            _NOTED.write_text(json.dumps({name: (_KERNEL / name).read_text().strip() for name in _SETTINGS}))
        place.run.mkdir(mode=0o700)


def leave(place: Place) -> None:
    """Removes the folder of an instance; after the last one, the machine is as it was."""
    with locked(MACHINE / "machine"):
        shutil.rmtree(place.run, ignore_errors=True)
        if not _NOTED.exists() or any(each.is_dir() for each in RUNNING.iterdir()):
            return
        for name, value in json.loads(_NOTED.read_text()).items():
            (_KERNEL / name).write_text(value)
        _NOTED.unlink()
        for folder in (*map(Path, _FOLDERS), RUNNING):
            for file in ("kubelet.sock", "kubelet_internal_checkpoint"):
                (folder / file).unlink(missing_ok=True)
            # One that somebody else uses is not empty.
            with contextlib.suppress(OSError):
                folder.rmdir()
