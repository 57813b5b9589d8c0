"""Service accounts as users of tests: as many as they like, each with its own rights, without a restart of anything."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.kubernetes import identity
from tests.kubernetes.api import Api
from tests.kubernetes.rig import Rig

_LEEWAY_S: Final = 60
"""For so long the apiserver accepts a token after its end."""
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_EXEC: Final = "client.authentication.k8s.io/v1"


class Account:
    """A service account without rights, and a kubeconfig with a token of its own.

    Attributes:
        user: its name in roles and in the audit log.
        kubeconfig: the file.
    """

    def __init__(self, rig: Rig, namespace: str, name: str) -> None:
        """Makes the account; the namespace is there."""
        self.user = f"system:serviceaccount:{namespace}:{name}"
        self.kubeconfig = rig.place.run / f"{namespace}-{name}.kubeconfig"
        self._rig, self._namespace, self._name = rig, namespace, name
        self._path = f"/api/v1/namespaces/{namespace}"
        made = rig.api().create(f"{self._path}/serviceaccounts", {"metadata": {"name": name}})
        self._uid = made["metadata"]["uid"]
        self.renew()

    def renew(self, lasts_s: int = 3600) -> None:
        """Writes a new token into the kubeconfig."""
        self._token = self.signed(lasts_s)
        self.uses(token=self._token)

    def signed(self, lasts_s: float) -> str:
        """A new token that is accepted for so long, and up to ten seconds longer by an apiserver that remembers it.

        It is signed here, as the API gives none for less than ten minutes.
        """
        now = int(time.time())
        account = {"namespace": self._namespace, "serviceaccount": {"name": self._name, "uid": self._uid}}
        who = {"iss": identity.ISSUER, "aud": [identity.ISSUER], "sub": self.user, "kubernetes.io": account}
        when = {"iat": now - _LEEWAY_S, "nbf": now - _LEEWAY_S, "exp": now - _LEEWAY_S + round(lasts_s)}
        return identity.signed(self._rig.place.run, {**who, **when})

    def uses(self, **credentials: Any) -> None:
        """Writes a kubeconfig with other credentials: ``token``, ``tokenFile`` or ``exec``."""
        self._rig.users.write(self.kubeconfig, self._name, credentials, self._namespace)

    @contextmanager
    def renewing(self, folder: Path, lasts_s: float) -> Iterator[Path]:
        """Has a program give the credentials; its token is always a new one, which ends so soon.

        Args:
            folder: for the program's files.
            lasts_s: how long a token is accepted.

        Yields a file with a line for each time that the program was asked.
        """
        token, requests, over = folder / "token", folder / "asked", threading.Event()

        def renew() -> None:
            draft = folder / "token.new"
            draft.write_text(self.signed(lasts_s))
            draft.rename(token)

        def keep_new() -> None:
            while not over.wait(lasts_s / 3):
                renew()

        renew()
        expected = json.dumps({"apiVersion": _EXEC, "kind": "ExecCredential", "status": {"token": "TOKEN"}})
        script = f"""echo >>'{requests}'; sed "s/TOKEN/$(cat '{token}')/" <<END\n{expected}\nEND"""
        self.uses(exec={"apiVersion": _EXEC, "command": "sh", "args": ["-c", script], "interactiveMode": "Never"})
        thread = threading.Thread(target=keep_new)
        thread.start()
        try:
            yield requests
        finally:
            over.set()
            thread.join()

    def api(self) -> Api:
        """The API, as this account, with the token of now."""
        return Api(self._rig.place.server, self._rig.place.run / "ca.crt", self._token)

    def may(self, role: str, rules: list[dict[str, Any]], *, everywhere: bool = False) -> None:
        """Grants rights in the namespace by a Role of that name, or in the whole cluster by a ClusterRole."""
        path, kind = (RBAC, "ClusterRole") if everywhere else (f"{RBAC}/namespaces/{self._namespace}", "Role")
        subject = {"kind": "ServiceAccount", "name": self._name, "namespace": self._namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        named = {"metadata": {"name": role}}
        self._rig.api().create(f"{path}/{kind.lower()}s", {**named, "rules": rules})
        binding = {**named, "subjects": [subject], "roleRef": reference}
        self._rig.api().create(f"{path}/{kind.lower()}bindings", binding)
