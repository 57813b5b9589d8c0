"""Calls of a Kubernetes API server, made with the official client.

Objects are the JSON of the API, never the client's models: models are slow to make, and an older client's models lose
the fields of a newer cluster.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from hydra.errors import ClusterError, HydraError, MissingDependencyError, UsageError, pip_install

Json = dict[str, Any]
Query = Mapping[str, str | int | bool]
_T = TypeVar("_T")

INSTALL: Final = pip_install("kubernetes>=37")
IN_CLUSTER: Final = "in-cluster"
"""The context of a process in a Pod: the Pod's service account."""
UNKNOWN: Final = 401
"""The status code for a request whose credentials the API server does not accept."""
ANSWER_S: Final = 10.0
_CONNECT_S: Final = 5.0
_CONNECTIONS: Final = 16
_ANONYMOUS: Final = 'User "system:anonymous"'
_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""A dead connection of a watch is detected within 25 s."""


class ApiError(Exception):
    """A request that the API server rejected or did not answer.

    Attributes:
        status: the HTTP status; 0 if there was no answer.
        reason: the API's reason, such as ``AlreadyExists``; "" if the answer has none.
        message: a text for people.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


def context_of(master: str) -> str:
    """The context that ``--master`` names: ``k8s://CONTEXT``; "" is the kubeconfig's current one.

    Raises:
        UsageError: ``master`` is not written so.
    """
    name, slashes, context = master.partition("://")
    if not slashes and ":" in name:
        raise UsageError(
            f"--master {master} names no context", "write k8s://CONTEXT, or kubernetes for the current one"
        )
    return context


def require_client() -> None:
    """Checks that the official client is installed.

    Raises:
        MissingDependencyError: it is not installed.
    """
    if importlib.util.find_spec("kubernetes") is None:
        raise MissingDependencyError("Kubernetes needs its official client, which is not installed", INSTALL)


class Api:
    """The API of the cluster that a context of the kubeconfig names. Several threads may call it.

    Attributes:
        context: the context's name.
        namespace: the context's namespace, "default" if it has none.
        server: the URL of the API server.
    """

    def __init__(self, context: str) -> None:
        """Reads the kubeconfig (``KUBECONFIG``, ``~/.kube/config``) or the Pod's service account; makes no call yet.

        Args:
            context: "" is the current context, ``in-cluster`` the Pod's service account.

        Raises:
            UsageError: there is no such context, or no kubeconfig.
        """
        self._lock = threading.Lock()
        self.context, self.namespace = context, "default"
        self._client = self._load()
        self.server = str(self._client.configuration.host)

    def call(
        self, method: str, path: str, body: Json | None = None, query: Query | None = None, timeout_s: float = ANSWER_S
    ) -> Json:
        """Makes one request and returns the object of the answer.

        Raises:
            ApiError: the API server rejected the request, or did not answer within ``timeout_s``.
        """
        response = self._renewing(lambda client: self._request(client, method, path, body, query, timeout_s))
        return response if isinstance(response, dict) else {}

    def watch(self, path: str, query: Query, timeout_s: int) -> Iterator[Json]:
        """The events of a watch, each with ``type`` and ``object``, until the server ends it after ``timeout_s``.

        Raises:
            ApiError: the API server rejected the request, or the connection broke.
        """
        watched = {**query, "watch": "true", "timeoutSeconds": timeout_s, "allowWatchBookmarks": "true"}
        for line in self.lines(path, watched, timeout_s + ANSWER_S):
            if line:
                yield json.loads(line)

    def lines(self, path: str, query: Query, silent_s: float) -> Iterator[str]:
        """The lines of an answer as they arrive.

        Args:
            path: the path of the request.
            query: the parameters of the request.
            silent_s: the longest time between two pieces of the answer.

        Raises:
            ApiError: the API server rejected the request, or the connection broke.
        """
        from kubernetes.watch.watch import iter_resp_lines

        def streamed(client: Any) -> Any:
            response = self._open(client, "GET", path, None, query, silent_s)
            if response.status != 200:
                try:
                    raise refused(response.status, response.response.read())
                finally:
                    response.response.close()
            return response.response

        with errors():
            response = self._renewing(streamed)
            try:
                yield from iter_resp_lines(response)
            finally:
                response.close()

    def connected(self, connect: Callable[[Any], _T]) -> _T:
        """What ``connect`` returns, given the official client's configuration: the server's URL and the credentials.

        Raises:
            ApiError: ``connect`` raised it.
        """
        return self._renewing(lambda client: connect(client.configuration))

    def _renewing(self, ask: Callable[[Any], _T]) -> _T:
        """Makes the call; reads the credentials again and repeats it once if the server rejected the token."""
        client = self._client
        try:
            return ask(client)
        except ApiError as e:
            if e.status != UNKNOWN:
                raise
            return ask(self._renewed(client))

    def _request(
        self, client: Any, method: str, path: str, body: Json | None, query: Query | None, timeout_s: float
    ) -> Any:
        with errors():
            response = self._open(client, method, path, body, query, timeout_s)
            data = response.read()
        if not 200 <= response.status < 300:
            raise refused(response.status, data)
        try:
            return json.loads(data)
        except ValueError:
            raise ApiError(response.status, "", f"the answer of {self.server} is no JSON") from None

    def _open(
        self, client: Any, method: str, path: str, body: Json | None, query: Query | None, timeout_s: float
    ) -> Any:
        url = f"{client.configuration.host}{path}"
        if query:
            url += "?" + urlencode({k: str(v).lower() if isinstance(v, bool) else v for k, v in query.items()})
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        headers.update({auth["key"]: auth["value"] for auth in client.configuration.auth_settings().values()})
        return client.call_api(method, url, headers, body, _request_timeout=(_CONNECT_S, timeout_s))

    def _renewed(self, refused: Any) -> Any:
        with self._lock:
            if self._client is refused:
                try:
                    self._client = self._load()
                except HydraError as e:  # another process is writing the file, or has removed it
                    raise ApiError(UNKNOWN, "", e.what) from None
            return self._client

    def _load(self) -> Any:
        from kubernetes.client import ApiClient, Configuration
        from kubernetes.config import kube_config, load_incluster_config

        configuration = Configuration()
        # The callers decide which calls to repeat, and for how long.
        configuration.retries = False
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.socket_options = list(_KEEPALIVE)
        with _refusing(self.context):
            if self.context == IN_CLUSTER:
                load_incluster_config(client_configuration=configuration)
                self.namespace = _OWN_NAMESPACE.read_text().strip()
            else:
                named = _named(self.context)
                self.context, self.namespace = named["name"], named["context"].get("namespace") or "default"
                kube_config.load_kube_config(
                    context=self.context, client_configuration=configuration, persist_config=False
                )
        return ApiClient(configuration)


def check_context(context: str) -> None:
    """Checks that the kubeconfig has the context; makes no call.

    Raises:
        UsageError, ClusterError: as for :class:`Api`.
    """
    if context != IN_CLUSTER:
        with _refusing(context):
            _named(context)


def forget_credentials() -> None:
    """Removes the files with keys of the kubeconfig that the client has written; for a process that skips atexit."""
    from kubernetes.config import kube_config

    kube_config._cleanup_temp_files()


def _named(context: str) -> Json:
    """The kubeconfig's entry of a context; "" is the current one."""
    from kubernetes.config import kube_config

    contexts, current = kube_config.list_kube_config_contexts()
    named = next((c for c in contexts if c["name"] == context), None) if context else current
    if named is None:
        known = ", ".join(c["name"] for c in contexts) or "none"
        raise UsageError(
            f"the kubeconfig has no context {context!r}; it has: {known}",
            "write --master k8s://CONTEXT, or set KUBECONFIG",
        )
    return dict(named)


@contextlib.contextmanager
def _refusing(context: str) -> Iterator[None]:
    """Turns every error about a kubeconfig into one line."""
    import yaml
    from kubernetes.config import ConfigException

    try:
        yield
    except ConfigException as e:
        what = (str(e).strip().splitlines() or [type(e).__name__])[0].rstrip(".")
        remedy = "set KUBECONFIG, or put the cluster's file at ~/.kube/config"
        if (named := os.environ.get("KUBECONFIG")) and not any(map(os.path.exists, named.split(os.pathsep))):
            what, remedy = f"KUBECONFIG is {named}, and nothing is there", "name the cluster's file"
        if context == IN_CLUSTER:
            remedy = "that context is for a controller in a Pod, which --in-cluster makes"
        raise UsageError(f"no cluster to ask: {what}", remedy) from None
    except OSError as e:
        raise ClusterError(f"the kubeconfig cannot be read: {e}", "set KUBECONFIG") from None
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as e:
        what = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise UsageError(f"the kubeconfig is none: {what}", "look at it with kubectl config view") from None


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Turns every error of a connection into an :class:`ApiError` of status 0."""
    import urllib3
    from kubernetes.client import ApiException

    try:
        yield
    except (ApiException, urllib3.exceptions.HTTPError, OSError) as e:
        reason = str(getattr(e, "reason", "") or e).splitlines()
        # Only the system's own text, without the library's prefix, is of use to people.
        text = reason[-1].rpartition("[Errno ")[2].partition("] ")[2] or reason[-1] if reason else type(e).__name__
        raise ApiError(0, "", text) from None


def refused(status: int, data: bytes) -> ApiError:
    """The error in an answer other than 200: a Status object, or any text if a proxy has answered."""
    try:
        content = json.loads(data)
        message = str(content.get("message") or "")
        # An API server that admits anonymous users rejects unknown credentials with 403 for "system:anonymous".
        return ApiError(UNKNOWN if _ANONYMOUS in message else status, str(content.get("reason") or ""), message)
    except (ValueError, AttributeError):
        return ApiError(status, "", data[:300].decode(errors="replace").strip() or f"HTTP {status}")
