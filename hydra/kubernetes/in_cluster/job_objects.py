"""The Job that runs a whole command, and the Secret with the files that the command needs. Pure."""

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
"""The folder of run directories in the Pod."""
FILES: Final = "/etc/hydra/files"
"""The folder of the shipped files in the Pod."""
COMMAND_FILE: Final = f"{FILES}/command"
"""The shipped file with the command to run."""
PART: Final = "controller"
"""The value of the label ``object_names.PART`` of Job and Secret."""
COMMAND_ID: Final = "hydra/command"
"""The annotation with an id that is different for every command."""
COMMAND: Final = "hydra"
"""The container in which the command runs."""
KEEPING: Final = "files"
"""The container that keeps the run directory until it has been fetched."""
SOON: Final = "soon"
WAITING: Final = "begin"
"""The init containers that wait for the Secret's files, one after another: a node looks for a Secret that was created
after its Pod whenever a container ends, and otherwise after up to 90 s."""
SOON_S: Final = 3
FILES_WITHIN_S: Final = 150
"""How long the second container waits for the Secret's files."""
MOUNTED: Final = FILES.rpartition("/")[0]
"""The folder in which the Secret is mounted."""
GRACE_S: Final = 60
"""How long a command has to end cleanly when its Pod is deleted."""
LOG_KEPT_S: Final = 3600
"""How long the Job and its log stay after its end."""
_KEEPING_NEEDS: Final = ResourceNeed(cpus=0.05, mem=128)
_BYTES: Final = 1024 * 1024
"""The largest size of a Secret."""
_ORDER: Final = "order.json"
_SCRIPTS: Final = {COMMAND: "job_command", KEEPING: "run_files"}
_SHIPPED: Final = (*_SCRIPTS.values(), "keeper_pod")
"""The scripts of the containers, and the script that they use."""
_VARIABLE: Final = "variable."


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The request for ``pod_scripts/job_command.py``.

    Attributes:
        words: the program in the Pod, and its arguments.
        typed: the command's arguments as the user typed them.
        version: the version of the Hydra that makes the request.
        digest: the digest of that Hydra's sources.
        image: the image in which the command runs.
        terminal: the environment variables of the user's terminal; empty if standard output is no terminal.
    """

    words: tuple[str, ...]
    typed: tuple[str, ...]
    version: str
    digest: str
    image: str
    terminal: Mapping[str, str] = field(default_factory=dict)


def secret_data(order: JobRequest, files: Mapping[str, bytes], environment: Mapping[str, str]) -> dict[str, bytes]:
    """The Secret's contents by key: the command, the scripts, the files, and the environment variables.

    Args:
        order: the command.
        files: the files' contents by their path in the Pod.
        environment: environment variables that the command needs.

    Raises:
        UsageError: the contents are larger than a Secret may be.
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
    """The Secret; the owner in ``family`` is the Job."""
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
        family: what the run's objects have in common, without an owner.
        files: the files' paths in the Pod.
        environment: the names of the environment variables.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(family, object_names.object_name(family.run, PART), PART),
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": LOG_KEPT_S,
            "template": with_user_settings(family, _template(family, files, environment)),
        },
    }


def _template(family: RunObjects, files: Sequence[str], environment: Sequence[str]) -> Json:
    """The Pod of the Job: its containers wait for the files, run the command, and keep the run directory."""
    items = [
        {"key": _ORDER, "path": _ORDER},
        *({"key": f"{script}.py", "path": f"{script}.py"} for script in _SHIPPED),
        *({"key": _key(path), "path": path.removeprefix(f"{MOUNTED}/")} for path in files),
    ]
    return {
        "metadata": {
            "labels": object_names.labels(family.run, PART),
            "annotations": {object_names.RUN_NAME: family.run, MAIN: COMMAND},
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": family.settings.service_account,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE_S,
            "securityContext": security()[0],
            "initContainers": _waiting(family),
            "containers": [_command(family, environment), _keeping(family)],
            "volumes": [
                {"name": "runs", "emptyDir": {}},
                {"name": "tmp", "emptyDir": {}},
                # Otherwise the Pod, and with it the Job, would wait for ever if the Secret is never created.
                {"name": "shipped", "secret": {"secretName": _secret_name(family), "items": items, "optional": True}},
            ],
        },
    }


def _container(family: RunObjects, name: str, need: ResourceNeed, command: Sequence[str]) -> Json:
    """A container of the Pod, with the folders that all of them share."""
    return {
        "name": name,
        "command": [*command],
        "resources": resources(family.settings, need),
        "image": family.image,
        "imagePullPolicy": family.settings.pull_policy,
        "workingDir": RUNS,
        "securityContext": security()[1],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "runs", "mountPath": RUNS},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  # the Pod's own
            {"name": "shipped", "mountPath": MOUNTED, "readOnly": True},
        ],
    }


def _command(family: RunObjects, environment: Sequence[str]) -> Json:
    need = ResourceNeed(cpus=family.settings.controller_cpus, mem=family.settings.controller_mem)
    secrets = {name: {"name": _secret_name(family), "key": f"{_VARIABLE}{name}"} for name in environment}
    variables: list[Json] = [
        {"name": "HYDRA_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "HOME", "value": "/tmp"},  # noqa: S108  # the Pod's own
        {"name": "XDG_CACHE_HOME", "value": "/tmp/cache"},  # noqa: S108  # the Pod's own
        *({"name": name, "valueFrom": {"secretKeyRef": key}} for name, key in secrets.items()),
    ]
    words = ["python3", _script(COMMAND), f"{MOUNTED}/{_ORDER}", RUNS]
    return {**_container(family, COMMAND, need, words), "env": variables}


def _keeping(family: RunObjects) -> Json:
    words = ["python3", _script(KEEPING), "keep", RUNS, str(family.settings.keep_s)]
    return _container(family, KEEPING, _KEEPING_NEEDS, words)


def _waiting(family: RunObjects) -> list[Json]:
    """The containers that wait for the files of the Secret: first a moment, then as long as needed."""
    begin = ["python3", "-c"]
    words = [source("wait_for_files"), f"{MOUNTED}/{_ORDER}"]
    return [
        _container(family, name, _KEEPING_NEEDS, [*begin, *verbatim([*words, str(within_s), str(late)])])
        for name, within_s, late in ((SOON, SOON_S, 0), (WAITING, FILES_WITHIN_S, 1))
    ]


def packing(run: str) -> list[str]:
    """The command that writes a run's directory as an archive; it runs in the container ``files``."""
    return ["python3", _script(KEEPING), "pack", RUNS, run]


def stopping() -> list[str]:
    """The command that asks for a clean end; it runs in the container ``hydra``."""
    return ["python3", "-c", "import os, signal; os.kill(1, signal.SIGINT)"]


def releasing() -> list[str]:
    """The command that ends the keeping of the run directory; it runs in the container ``files``."""
    return ["python3", "-c", "import os, signal; os.kill(1, signal.SIGTERM)"]


def _script(container: str) -> str:
    return f"{MOUNTED}/{_SCRIPTS[container]}.py"


def _secret_name(family: RunObjects) -> str:
    return object_names.object_name(family.run, "files")


def _key(path: str) -> str:
    """The key of a file in the Secret, with the file's number."""
    return f"file.{path.removeprefix(f'{FILES}/').partition('/')[0]}"
