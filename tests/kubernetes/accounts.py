"""Service accounts as users of tests: as many as they like, each with its own rights, without a restart of anything."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.api import Api
from tests.kubernetes.rig import Rig


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
        rig.api().create(f"{self._path}/serviceaccounts", {"metadata": {"name": name}})
        self.renew()

    def renew(self, expires_s: int = 3600) -> None:
        """Writes a new token into the kubeconfig, valid for 600 s or more."""
        api = self._rig.api()
        # The token ends with the Secret: that is quicker than any time that may be asked for.
        held = api.create(f"{self._path}/secrets", {"metadata": {"generateName": f"{self._name}-"}})["metadata"]
        bound = {"apiVersion": "v1", "kind": "Secret", "name": held["name"], "uid": held["uid"]}
        spec = {"expirationSeconds": expires_s, "boundObjectRef": bound}
        token = api.create(f"{self._path}/serviceaccounts/{self._name}/token", {"spec": spec})["status"]["token"]
        self._secret, self._token = held["name"], token
        self._rig.users.write(self.kubeconfig, self._name, token, self._namespace)

    def revoke(self) -> None:
        """Ends the token as if it had expired: within ten seconds the apiserver answers 401."""
        self._rig.api().delete(f"{self._path}/secrets/{self._secret}")

    def api(self) -> Api:
        """The API, as this account, with the token of now."""
        return Api(self._rig.place.server, self._rig.place.run / "ca.crt", self._token)

    def may(self, role: str, rules: list[dict[str, Any]]) -> None:
        """Grants rights in the namespace by a Role of that name."""
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self._namespace}"
        subject = {"kind": "ServiceAccount", "name": self._name, "namespace": self._namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
        self._rig.api().create(f"{path}/roles", {"metadata": {"name": role}, "rules": rules})
        self._rig.api().create(
            f"{path}/rolebindings", {"metadata": {"name": role}, "subjects": [subject], "roleRef": reference}
        )
