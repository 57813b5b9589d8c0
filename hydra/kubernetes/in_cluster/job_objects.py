"""The Job that runs a whole command, and the Secret with all that it takes along. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from hydra.engine.resources import ResourceNeed
from hydra.errors import UsageError
from hydra.kubernetes import object_names
from hydra.kubernetes.pod_status import MAIN
from hydra.kubernetes.pods import RunObjects, metadata, resources, security, source, verbatim, with_user_settings

Json = dict[str, Any]

RUNS: Final = "/runs"
"""Where run directories are made in the Pod."""
FILES: Final = "/etc/hydra/files"
"""Where the shipped files are in the Pod."""
COMMAND_FILE: Final = f"{FILES}/command"
"""The one of them that says what is to be done there."""
PART: Final = "controller"
"""What names.PART says of both."""
COMMAND_ID: Final = "hydra/command"
"""The annotation that tells one command from every other."""
COMMAND: Final = "hydra"
"""The container in which the command runs."""
KEEPING: Final = "files"
"""The container that keeps its run directory until it has been fetched."""
SOON: Final = "soon"
WAITING: Final = "begin"
"""The init containers that wait for the Secret's files, one after the other: a node looks again for a Secret that came
behind its Pod when a container ends, and otherwise after up to 90 s."""
SOON_S: Final = 3
FILES_WITHIN_S: Final = 150
"""How long the Secret may take."""
MOUNTED: Final = FILES.rpartition("/")[0]
"""Where the Secret's files are."""
GRACE_S: Final = 60
"""How long a command has to end cleanly where its Pod is deleted."""
LOG_KEPT_S: Final = 3600
"""How long the Job stays after its end, and with it the log."""
_KEEPING_NEEDS: Final = ResourceNeed(cpus=0.05, mem=128)
_BYTES: Final = 1024 * 1024
"""Of a Secret at most."""
_ORDER: Final = "order.json"
_SCRIPTS: Final = {COMMAND: "job_command", KEEPING: "run_files"}
_SHIPPED: Final = (*_SCRIPTS.values(), "owner_pod")
"""Those of containers, and what they use."""
_VARIABLE: Final = "variable."


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What ``pod_scripts/job_command.py`` is to start.

    Attributes:
        words: the program in the Pod, and its arguments.
        typed: the command's arguments as its user typed them.
        version: of the Hydra that gives the order.
        digest: of its sources.
        image: that the command runs in.
        terminal: the variables of the terminal that its standard output goes to in the end; empty where that is none.
    """

    words: tuple[str, ...]
    typed: tuple[str, ...]
    version: str
    digest: str
    image: str
    terminal: Mapping[str, str] = field(default_factory=dict)


def secret_data(order: JobRequest, files: Mapping[str, bytes], environment: Mapping[str, str]) -> dict[str, bytes]:
    """The Secret's contents by key: the command, the scripts, the files, and what the environment holds.

    Args:
        order: the command.
        files: by their path in the Pod.
        environment: variables that the command needs.

    Raises:
        UsageError: it is more than a Secret may hold.
    """
    data = {
        _ORDER: json.dumps(asdict(order)).encode(),
        **{f"{script}.py": source(script).encode() for script in _SHIPPED},
        **{_key(path): content for path, content in files.items()},
        **{f"{_VARIABLE}{name}": value.encode() for name, value in environment.items()},
    }
    if sum(map(len, data.values())) > _BYTES:
        largest = max(files, key=lambda path: len(files[path]), default="")
        raise UsageError(
            f"the files of this command have more than 1 MiB, which is all that a Secret holds; the largest is "
            f"{largest.rpartition('/')[2]} with {len(files.get(largest, b'')) / 1e6:.1f} MB",
            "leave out --in-cluster, or shorten it",
        )
    return data


def secret(family: RunObjects, data: Mapping[str, bytes]) -> Json:
    """The Secret; ``family`` has the Job as its owner."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(family, _secret_name(family), PART),
        "type": "Opaque",
        "immutable": True,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def job(family: RunObjects, files: Sequence[str], environment: Sequence[str]) -> Json:
    """The Job; its one Pod is never replaced.

    Args:
        family: what the run's objects have in common; there is no owner yet.
        files: paths in the Pod.
        environment: names of variables.
    """
    settings = family.settings
    pod_security, container_security = security()
    need = ResourceNeed(cpus=settings.controller_cpus, mem=settings.controller_mem)
    same: Json = {
        "image": family.image,
        "imagePullPolicy": settings.pull_policy,
        "workingDir": RUNS,
        "securityContext": container_security,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "runs", "mountPath": RUNS},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # the Pod's own
            {"name": "shipped", "mountPath": MOUNTED, "readOnly": True},
        ],
    }
    command: Json = {
        "name": COMMAND,
        "command": ["python3", _script(COMMAND), f"{MOUNTED}/{_ORDER}", RUNS],
        "env": [
            {"name": "HYDRA_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "HOME", "value": "/tmp"},  # noqa: S108  # likewise
            {"name": "XDG_CACHE_HOME", "value": "/tmp/cache"},  # noqa: S108  # likewise
            *({"name": name, "valueFrom": _of_secret(family, name)} for name in environment),
        ],
        "resources": resources(settings, need),
        **same,
    }
    keeping: Json = {
        "name": KEEPING,
        "command": ["python3", _script(KEEPING), "keep", RUNS, str(settings.keep_s)],
        "resources": resources(settings, _KEEPING_NEEDS),
        **same,
    }
    script = source("wait_for_files")
    waiting: list[Json] = [
        {
            "name": name,
            "command": ["python3", "-c", *verbatim([script, f"{MOUNTED}/{_ORDER}", str(within_s), str(late)])],
            "resources": resources(settings, _KEEPING_NEEDS),
            **same,
        }
        for name, within_s, late in ((SOON, SOON_S, 0), (WAITING, FILES_WITHIN_S, 1))
    ]
    items = [
        {"key": _ORDER, "path": _ORDER},
        *({"key": f"{script}.py", "path": f"{script}.py"} for script in _SHIPPED),
        *({"key": _key(path), "path": path.removeprefix(f"{MOUNTED}/")} for path in files),
    ]
    template = {
        "metadata": {
            "labels": object_names.labels(family.run, PART),
            "annotations": {object_names.RUN_NAME: family.run, MAIN: COMMAND},
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": settings.service_account,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE_S,
            "securityContext": pod_security,
            "initContainers": waiting,
            "containers": [command, keeping],
            "volumes": [
                {"name": "runs", "emptyDir": {}},
                {"name": "tmp", "emptyDir": {}},
                # Without its Secret the Pod would wait for ever, and with it the Job.
                {"name": "shipped", "secret": {"secretName": _secret_name(family), "items": items, "optional": True}},
            ],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(family, object_names.object_name(family.run, PART), PART),
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": LOG_KEPT_S,
            "template": with_user_settings(family, template),
        },
    }


def packing(run: str) -> list[str]:
    """The command that writes a run's directory as an archive, in the container ``files``."""
    return ["python3", _script(KEEPING), "pack", RUNS, run]


def stopping() -> list[str]:
    """The command that asks for a clean end, in the container ``hydra``."""
    return ["python3", "-c", "import os, signal; os.kill(1, signal.SIGINT)"]


def releasing() -> list[str]:
    """The command that says that nobody needs the files any more, in the container ``files``."""
    return ["python3", "-c", "import os, signal; os.kill(1, signal.SIGTERM)"]


def _script(container: str) -> str:
    return f"{MOUNTED}/{_SCRIPTS[container]}.py"


def _secret_name(family: RunObjects) -> str:
    return object_names.object_name(family.run, "files")


def _key(path: str) -> str:
    """The key of a file in the Secret: its number, which no other has."""
    return f"file.{path.removeprefix(f'{FILES}/').partition('/')[0]}"


def _of_secret(family: RunObjects, variable: str) -> Json:
    return {"secretKeyRef": {"name": _secret_name(family), "key": f"{_VARIABLE}{variable}"}}
