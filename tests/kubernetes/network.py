"""The bridge of an instance, with the addresses of its apiserver and nodes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.kubernetes.places import Place


def up(place: Place, nodes: int) -> None:
    """Makes the bridge; it must not exist."""
    _ip("link", "add", place.name, "address", f"02:48:79:64:72:{place.number:02x}", "type", "bridge")
    for address in (place.gateway, place.api, *(place.node_address(n + 1) for n in range(nodes))):
        _ip("address", "add", f"{address}/16", "dev", place.name)
    _ip("link", "set", place.name, "up")


def down(place: Place) -> None:
    """Removes the bridge, if there is one, and what the CNI plugins remember of its Pods."""
    if Path("/sys/class/net", place.name).exists():
        for port in Path("/sys/class/net", place.name, "brif").iterdir():
            subprocess.run(["ip", "link", "del", port.name], check=False, capture_output=True)
        _ip("link", "del", place.name)
    for result in Path("/var/lib/cni/results").glob(f"{place.name}-*"):
        result.unlink(missing_ok=True)


def cni(place: Place, node: int) -> str:
    """The CNI configuration of a node: its Pods are on the bridge and reach whatever has an address of this machine."""
    first, last = place.pods(node)
    subnet = f"{place.prefix}.0.0/16"
    pods = {"subnet": subnet, "rangeStart": first, "rangeEnd": last, "gateway": place.gateway}
    its = {"dataDir": str(place.folder(node) / "addresses"), "ranges": [[pods]], "routes": [{"dst": "0.0.0.0/0"}]}
    addresses = {"type": "host-local", **its}
    bridge = {"type": "bridge", "bridge": place.name, "ipam": addresses}
    return json.dumps({"cniVersion": "0.4.0", "name": place.name, "plugins": [bridge]})


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
