"""The rig's command for humans: see tests/kubernetes/rig.py."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext

from tests.kubernetes import building
from tests.kubernetes.processes import RigError
from tests.kubernetes.rig import Rig
from tests.kubernetes.sharing import by_hand

_ROLES = ("etcd", "apiserver", "controller-manager", "scheduler")


def main() -> None:
    """up, down, status or env."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.kubernetes.rig", description="A Kubernetes of one's own, on this machine."
    )
    parser.add_argument("--instance", type=int, choices=range(1, 10), default=1, help="default: 1", metavar="1…9")
    does = parser.add_subparsers(dest="does", required=True)
    for name, what in (
        ("up", "start it anew, with the Hydra of this tree in its image"),
        ("image", "bring the Hydra of this tree, as it is now, to the nodes of one that is up; gives the image's name"),
        ("down", "end it, and remove all that it made"),
        ("status", "what runs"),
        ("env", "where its kubeconfig is, for a shell: eval $(… env)"),
    ):
        does.add_parser(name, help=what)
    options = parser.parse_args()
    if reason := building.reason_not_built():
        sys.exit(reason)
    rig = Rig(options.instance)
    try:
        with by_hand(options.instance) if options.does in ("up", "down") else nullcontext():
            _do(options.does, rig)
    except RigError as e:
        sys.exit(str(e))


def _do(what: str, rig: Rig) -> None:
    if what == "up":
        rig.up()
    if what == "down":
        rig.down()
        return
    if not rig.is_up:
        raise RigError(f"instance {rig.place.number} is not up")
    if what == "image":
        sys.stdout.write(f"{rig.bring()}\n")
    elif what == "status":
        roles = [*_ROLES, *(f"{each}{n + 1}" for n in range(len(rig.nodes)) for each in ("containerd", "kubelet"))]
        for role in roles:
            sys.stdout.write(f"{role:<20} {' '.join(map(str, rig.pids(role))) or 'does not run'}\n")
        sys.stdout.write(f"nodes that are ready: {' '.join(rig.ready()) if rig.answers() else 'unknown'}\n")
    else:
        sys.stdout.write(f"export KUBECONFIG={rig.kubeconfig()} HYDRA_RIG_IMAGE={rig.image}\n")
