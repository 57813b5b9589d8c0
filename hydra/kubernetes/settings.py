"""The table ``[kubernetes]`` of the cluster file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hydra.engine.resources import parse_resources
from hydra.model import Bounded, FieldError, setting

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_VALUES: Final = "at most 63 letters, digits, -, _ and ., of which the first and the last is a letter or digit"
_TOLERATION: Final = {"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}
_HYDRAS_OWN: Final = ("containers", "initContainers", "volumes", "restartPolicy", "affinity", "tolerations")
"""Fields of a Pod's ``spec`` that a merge patch would replace."""
OWN_IMAGE: Final = "hydra"
"""The name of Hydra's own image if the settings have none; its tag is the version."""


@dataclass(frozen=True, slots=True)
class KubernetesSettings(Bounded):
    """The table's keys, never stored with a run. TOML tables and lists have the form of a Pod's YAML.

    Attributes:
        namespace: the namespace of all objects of a run; "" is the context's namespace.
        image: Hydra's own image for every Pod; "" is ``hydra:VERSION``.
        python_image: any image with Python instead; an init container fetches the archive into it. "" is none.
        pull_policy: the pull policy of all images.
        advertise: the address at which Pods reach this machine; "" is the address that routes to the nodes.
        artifact: the URL of a copy of the archive on another server; "" has the controller serve it.
        in_cluster: whether the whole command runs in the cluster.
        service_account: the service account with which a controller in the cluster calls the API.
        controller_cpus, controller_mem: the CPUs and MB that a controller in the cluster requests.
        keep_s: how long the run directory of an ended controller in the cluster stays for hydra fetch, in s.
        priority_class: the priority class of all Pods; "" is none.
        ports: the range of the servers' ports, ``31000-32000``.
        cpu_limit_ratio: a Pod's CPU limit over its request; 0 sets no limit, as one would stop clients within a burst.
        memory_limit_ratio: a Pod's memory limit over its request; 0 sets no limit.
        node_lost_s: how long a Pod stays on a node that does not answer, in s.
        tolerations: the tolerations of all Pods, as in a Pod's ``spec.tolerations``.
        labels, annotations: labels and annotations of all Pods, in addition to Hydra's own.
        pod: further fields of a Pod's ``spec``, merged into it (a JSON merge patch, RFC 7386); none of Hydra's own.
    """

    namespace: str = ""
    image: str = ""
    python_image: str = ""
    pull_policy: str = "IfNotPresent"
    advertise: str = ""
    artifact: str = ""
    in_cluster: bool = False
    service_account: str = "hydra"
    controller_cpus: float = setting(0.5, least=0.01, most=1000)
    controller_mem: float = setting(512.0, least=64, most=1e6)
    keep_s: int = setting(3600, least=0, most=7 * 86_400)
    priority_class: str = ""
    ports: str = "31000-32000"
    cpu_limit_ratio: float = setting(0.0, least=0, most=100)
    memory_limit_ratio: float = setting(2.0, least=0, most=100)
    node_lost_s: int = setting(30, least=1, most=3600)
    tolerations: tuple[Mapping[str, object], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pod: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        if self.pull_policy not in _PULL_POLICIES:
            raise FieldError(f"must be one of {', '.join(_PULL_POLICIES)}, not {self.pull_policy!r}", "pull_policy")
        if self.namespace and not _LABEL.fullmatch(self.namespace):
            raise FieldError(f"must be lower-case letters, digits and -, not {self.namespace!r}", "namespace")
        try:
            parse_resources(f"ports:[{self.ports}]")
        except ValueError:
            what = f"must be a range within 1-65535, as in '31000-32000', not {self.ports!r}"
            raise FieldError(what, "ports") from None
        for name in ("cpu_limit_ratio", "memory_limit_ratio"):
            ratio = getattr(self, name)
            if ratio and ratio < 1:
                raise FieldError(f"must be 0 for no limit, or 1 or more, not {ratio}", name)
        for key, value in self.labels.items():
            if not _VALUE.fullmatch(value):
                raise FieldError(f"must be {_VALUES}", f"labels.{key}")
        for key in _HYDRAS_OWN:
            if key in self.pod:
                raise FieldError("would replace what Hydra writes there", f"pod.{key}")
        for number, toleration in enumerate(self.tolerations):
            for key, its in toleration.items():
                # The API would ignore an unknown key.
                if key not in _TOLERATION:
                    what = f"is no key of a toleration: {', '.join(_TOLERATION)}"
                    raise FieldError(what, f"tolerations.{number}.{key}")
                if type(its) is not _TOLERATION[key]:
                    kind = "a whole number" if _TOLERATION[key] is int else "a text in quotes"
                    raise FieldError(f"must be {kind}, not {its!r}", f"tolerations.{number}.{key}")
