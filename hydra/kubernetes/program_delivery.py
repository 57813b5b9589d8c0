"""Delivers the groups' programs: they are in the image, or an init container fetches the archive."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hydra.engine.artifacts.archive import Artifact, build
from hydra.engine.artifacts.archive_server import ArtifactServer
from hydra.engine.artifacts.start_script import rewritten
from hydra.kubernetes.settings import KubernetesSettings
from hydra.model import Group
from hydra.system import Program

_PYTHON: Final = "python3"
"""Python in Hydra's own image, which has it and the native client on PATH."""


class ProgramDelivery:
    """The programs of a run, ready for its Pods; serves the archive, if there is one, until it is closed.

    Attributes:
        every: whether every group gets the archive, as the image has Python only.
    """

    def __init__(self, programs: Sequence[Program], settings: KubernetesSettings, address: str) -> None:
        """Makes the archive and serves it, if some program needs it.

        Args:
            programs: the programs of the groups that will be launched.
            settings: the engine's settings, with the image and the URL of the archive.
            address: the address at which Pods reach this machine.

        Raises:
            ClusterError: the archive cannot be made or served.
        """
        self.every = bool(settings.python_image)
        # No image contains a program's own files, such as Kafka's jars.
        self._archived = [p for p in programs if self.every or p.files]
        self._artifact: Artifact | None = build(self._archived) if self._archived else None
        self._server: ArtifactServer | None = None
        self._url = settings.artifact
        if self._artifact is not None and not self._url:
            self._server = ArtifactServer(self._artifact, address)
            self._url = self._server.url

    def is_archived(self, group: Group) -> bool:
        """Whether the group's program is in the archive."""
        return any(group.command[: len(p.command)] == p.command for p in self._archived)

    def prepared(self, group: Group) -> Group:
        """The group with the command and the environment for its Pod."""
        program, *arguments = rewritten(group.command)
        if not self.is_archived(group) or self._artifact is None:
            here = group.command[0] == sys.executable
            return replace(group, command=(_PYTHON if here else program, *arguments))
        return replace(
            group,
            command=(program, *arguments),
            environment={
                **group.environment,
                "HYDRA_ARCHIVE_URL": self._url,
                "HYDRA_ARCHIVE_SHA256": self._artifact.sha256,
                "HYDRA_ARTIFACT": self._artifact.digest,
            },
        )

    def close(self) -> None:
        """Stops serving."""
        if self._server is not None:
            self._server.close()
            self._server = None


def sources() -> Path:
    """The folder of the sources that this process runs; the image must have sources with the same digest."""
    import hydra

    return Path(hydra.__file__).parent
