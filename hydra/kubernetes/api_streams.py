"""What the API server streams: the log of a container, and the output of a command in it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hydra.kubernetes.api_client import Api, ApiError, errors, refused

_SILENT_S: Final = 60.0
"""How long a log may be silent before Hydra requests it again, as the connection may be dead."""
_OUT, _ERR, _STATUS = 1, 2, 3
"""Channels of a command's connection."""


def log(api: Api, namespace: str, pod: str, container: str, since: str = "") -> Iterator[str]:
    """The lines of a container's log as they arrive, each after its time; ends with the container.

    Args:
        api: the API of the cluster.
        namespace: the Pod's namespace.
        pod: the Pod's name.
        container: the container's name.
        since: the time of an earlier line; the lines of its second are returned again.

    Raises:
        ApiError: the API server rejected the request, the connection broke, or the log was silent for a minute.
    """
    query: dict[str, str | bool] = {"container": container, "follow": True, "timestamps": True}
    if since:
        query["sinceTime"] = since
    yield from api.lines(f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query, _SILENT_S)


def execute(
    api: Api, namespace: str, pod: str, container: str, command: Sequence[str], silent_s: float = _SILENT_S
) -> Iterator[bytes]:
    """What a command in a container writes to its standard output, piece by piece.

    Args:
        api: the API of the cluster.
        namespace: the Pod's namespace.
        pod: the Pod's name.
        container: the container in which the command runs.
        command: program and arguments.
        silent_s: how long the command may write nothing.

    Raises:
        ApiError: the API server rejected the request, the connection broke, or the command failed; the message is the
            last line of its standard error.
    """
    # The client's own reader is not used: it collects the whole output before it returns a byte.
    from kubernetes.stream.ws_client import create_websocket, get_websocket_url
    from websocket import ABNF

    query = [("container", container), ("stdout", "true"), ("stderr", "true"), ("command", list(command))]

    def connect(configuration: Any) -> Any:
        url = get_websocket_url(f"{configuration.host}/api/v1/namespaces/{namespace}/pods/{pod}/exec", query)
        headers = {auth["key"]: auth["value"] for auth in configuration.auth_settings().values()}
        with _broken():
            return create_websocket(configuration, url, headers)

    errors, status_text = b"", b""
    connection = api.connected(connect)
    with _broken():
        try:
            connection.settimeout(silent_s)
            while True:
                kind, frame = connection.recv_data_frame(control_frame=True)
                if kind == ABNF.OPCODE_CLOSE:
                    break
                if kind not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
                    continue
                channel, piece = frame.data[0], bytes(frame.data[1:])
                if channel == _OUT and piece:
                    yield piece
                elif channel == _ERR:
                    errors += piece
                elif channel == _STATUS:
                    status_text += piece
        finally:
            connection.close(timeout=1)
    if not status_text:
        raise ApiError(0, "", "the connection ended before the command did")
    status: Any = json.loads(status_text)
    if status.get("status") != "Success":
        last = next(reversed(errors.decode(errors="replace").strip().splitlines()), "")
        # A command that fails has no HTTP status; 0 would mean that there was no answer.
        raise ApiError(int(status.get("code") or 400), str(status.get("reason")), last or str(status.get("message")))


@contextlib.contextmanager
def _broken() -> Iterator[None]:
    """Turns every error of a WebSocket into an :class:`ApiError`."""
    from websocket import WebSocketBadStatusException, WebSocketException

    try:
        with errors():
            yield
    except WebSocketBadStatusException as e:
        raise refused(e.status_code, e.resp_body or b"") from None
    except WebSocketException as e:
        raise ApiError(0, "", str(e) or type(e).__name__) from None
