"""The keeper's Pod: proves that Pods reach the controller, reports the image's contents, and ends with the controller.

Hydra starts it as ``python3 -c``, with HYDRA_DOOR=HOST:PORT and HYDRA_DOOR_TOKEN. The run's objects stay while the
connection lasts. If it is lost for 20 s, this process ends with 0; its Job is then finished, and the cluster removes
the Job with all objects that it owns.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import signal
import socket
import sys
import time

FIRST_WITHIN_S = 5.0
"""How long the keeper tries its first connection: the controller waits 10 s for it."""
AGAIN_WITHIN_S = 20.0
EVERY_S = 0.5
UNREACHABLE = 3
DRAINED = 143
"""The exit code after SIGTERM: not 0, so the Job creates another Pod."""
WELCOMED_WITHIN_S = 10.0


def image() -> dict[str, str]:
    """The versions in this image on which groups depend."""
    found = {"python": "{}.{}".format(*sys.version_info), "machine": platform.machine(), "hydra": "", "digest": ""}
    try:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found["hydra"] = version("hydra-scale")
        except PackageNotFoundError:
            return found
        import importlib.util

        spec = importlib.util.find_spec("hydra")
        if spec is not None and spec.submodule_search_locations:
            found["digest"] = digest(next(iter(spec.submodule_search_locations)))
    except ImportError:  # an older Python
        pass
    return found


def digest(package: str) -> str:
    """A digest of a package's sources, which is equal for equal installations."""
    names = []
    for folder, _, files in os.walk(package):
        names += [os.path.relpath(os.path.join(folder, name), package) for name in files if name.endswith(".py")]
    total = hashlib.sha256()
    for name in sorted(names):
        with open(os.path.join(package, name), "rb") as file:
            total.update(name.encode() + b"\0" + file.read() + b"\0")
    return total.hexdigest()[:16]


def limits() -> str:
    """How many processes a Pod may have; "" if the kernel does not report it."""
    for path in ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"):
        with contextlib.suppress(OSError), open(path) as file:
            return file.read().strip()
    return ""


def dialled(host: str, port: int, within_s: float) -> socket.socket | str:
    """A connection to the controller, or the reason why there is none."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return socket.create_connection((host, port), timeout=max(0.5, min(5.0, deadline - time.monotonic())))
        except OSError as e:
            why = "no answer" if isinstance(e, socket.timeout) else (e.strerror or str(e))
            if time.monotonic() + EVERY_S >= deadline:
                return why
        time.sleep(EVERY_S)


def hold(connection: socket.socket, hello: bytes) -> bytes:
    """Sends ``hello`` and waits until the connection ends; returns the controller's last message or b""."""
    last = b""
    with connection:
        connection.settimeout(WELCOMED_WITHIN_S)
        for option, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        with contextlib.suppress(OSError):
            connection.sendall(hello)
            while True:
                data = connection.recv(64)
                if not data:
                    break
                last = data
                connection.settimeout(None)
    return last


def main() -> int:
    """Keeps the run until its controller has ended; returns the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(DRAINED))
    host, _, port = os.environ["HYDRA_DOOR"].rpartition(":")
    facts = {"token": os.environ["HYDRA_DOOR_TOKEN"], "node": os.environ.get("HYDRA_AGENT", ""), "pids_max": limits()}
    facts.update(image())
    hello = json.dumps(facts).encode() + b"\n"
    deadline = time.monotonic() + FIRST_WITHIN_S
    kept = False
    while True:
        connection = dialled(host, int(port), deadline - time.monotonic())
        if isinstance(connection, str):
            why = connection
            break
        last = hold(connection, hello)
        if last.endswith(b"bye"):
            return 0
        if last:
            kept, deadline = True, time.monotonic() + AGAIN_WITHIN_S
        elif time.monotonic() >= deadline:
            why = "another program answers there"
            break
        time.sleep(EVERY_S)
    if kept:
        return 0  # the controller has ended, and its run is to be removed
    sys.stderr.write(f"{host}:{port} cannot be reached from a Pod: {why}\n")
    return UNREACHABLE


if __name__ == "__main__":
    sys.exit(main())
