"""Calls of the API for assertions, apart from the client that Hydra uses."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.suite.waiting import SOON_S


class ApiError(Exception):
    """The API's refusal."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


class Api:
    """The apiserver, as one user."""

    def __init__(self, server: str, authority: Path, token: str) -> None:
        self._server = server
        self._token = token
        https = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(authority)))
        # The empty one keeps a proxy of the environment out.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)

    def get(self, path: str) -> Any:
        """The JSON at a path such as /api/v1/nodes; text where it is not JSON, as a Pod's log."""
        return self.call("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list."""
        answer: list[dict[str, Any]] = self.get(path)["items"]
        return answer

    def create(self, path: str, body: dict[str, Any]) -> Any:
        """The object that was created."""
        return self.call("POST", path, body)

    def delete(self, path: str, **options: Any) -> Any:
        """Deletes an object, or all of a list; options are those of DeleteOptions."""
        return self.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})

    def call(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """The answer of any call.

        Raises:
            ApiError: the API refused it.
            OSError: there is no answer.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._server + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=SOON_S) as answer:
                text = answer.read().decode()
                kind = answer.headers.get("Content-Type", "")
        except urllib.error.HTTPError as e:
            raise ApiError(e.code, e.read().decode(errors="replace")) from e
        return json.loads(text) if kind.startswith("application/json") else text
