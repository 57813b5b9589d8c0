"""Rules of admission that a test needs for a while."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.kubernetes.rig import Rig

_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@contextmanager
def unanswered(rig: Rig, namespace: str, resource: str) -> Iterator[Callable[[], bool]]:
    """The API server answers nobody who creates objects of a kind in a namespace: it waits for one that says nothing.

    Yields whether somebody waits. What waits at the end is refused.
    """
    with socket.create_server((rig.place.gateway, 0)) as silent:
        silent.setblocking(False)
        asking: list[socket.socket] = []

        def is_asked() -> bool:
            with suppress(BlockingIOError):
                asking.append(silent.accept()[0])
            return bool(asking)

        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
        webhook = {
            "name": "silent.rig.local",
            "clientConfig": {"url": f"https://{rig.place.gateway}:{silent.getsockname()[1]}/"},
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail",
            "timeoutSeconds": 30,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        name = f"silent-{namespace}"
        rig.api().create(_WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})
        try:
            yield is_asked
        finally:
            rig.api().delete(f"{_WEBHOOKS}/{name}")
            for each in asking:
                each.close()
