"""What an instance changes of the machine as a whole: put back when the last one ends."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kubernetes.places import MACHINE, RUNNING, locked

_SETTINGS: Final = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
                    "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")  # fmt: skip
"""What a kubelet sets."""
_FOLDERS: Final = ("var/lib/kubelet/device-plugins", "var/lib/kubelet", "var/lib/cni/results", "var/lib/cni",
                   "run/containerd/s", "run/containerd", "var/log/containers")  # fmt: skip
"""What a kubelet and containerd make wherever their own folders are."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine.

    Attributes:
        root: its root folder.
        running: the folder for instances that are up.
        locks: the folder for locks.
    """

    root: Path = Path("/")
    running: Path = RUNNING
    locks: Path = MACHINE

    def enter(self, run: Path) -> None:
        """Makes the folder of an instance, after it has noted how the machine was."""
        with locked(self.locks / "machine"):
            self.running.mkdir(parents=True, exist_ok=True)
            if not self._noted.exists():
                found = {name: (self._kernel / name).read_text().strip() for name in _SETTINGS}
                self._noted.write_text(json.dumps(found))
            run.mkdir(mode=0o700)

    def leave(self, run: Path) -> None:
        """Removes the folder of an instance; after the last one, the machine is as it was."""
        with locked(self.locks / "machine"):
            shutil.rmtree(run, ignore_errors=True)
            if not self._noted.exists() or any(each.is_dir() for each in self.running.iterdir()):
                return
            for name, value in json.loads(self._noted.read_text()).items():
                (self._kernel / name).write_text(value)
            self._noted.unlink()
            for folder in (*(self.root / each for each in _FOLDERS), self.running):
                for file in ("kubelet.sock", "kubelet_internal_checkpoint"):
                    (folder / file).unlink(missing_ok=True)
                # An instance in use is not empty.
                with contextlib.suppress(OSError):
                    folder.rmdir()

    @property
    def _kernel(self) -> Path:
        return self.root / "proc" / "sys"

    @property
    def _noted(self) -> Path:
        return self.running / "kernel.json"
