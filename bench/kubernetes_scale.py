"""How long groups take on Kubernetes: `hydra zmqfixed --client native` on the tests' cluster (make kubernetes-rig).

A row for each number of Pods that a thousand clients are divided into:

- created: from the first request for a Pod until the last was answered, by the API server's audit log;
- present: from the launch until every client has dialled in;
- calls: requests of the whole run, but for those that end each Pod by itself.

The last two rows have as many Pods and ten times as many clients: their calls are the same.

Run: python bench/kubernetes_scale.py [PODS …]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.store.database import RunStore

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.kubernetes.building import reason_not_built
from tests.kubernetes.identity import ADMIN
from tests.kubernetes.rig import Rig
from tests.kubernetes.sharing import own

SMALL = (
    *("--set", "publisher.demand.base_cpus=0.1", "--set", "subscriber.demand.base_cpus=0.005"),
    *("--set", "subscriber.demand.cpus_per_client=0.0005", "--set", "subscriber.demand.base_mem=40"),
    *("--set", "subscriber.demand.mem_per_client=1", "--set", "subscriber.constraints=[]"),
    *("--set", "ready_timeout_s=300", "--set", "warmup_s=0"),
)
"""Two hosts of two cores hold a thousand clients only if these ask for little."""


def run(rig: Rig, clients: int, pods: int) -> tuple[float, list[dict[str, Any]]]:
    """The seconds until all were present, and what the run called."""
    with tempfile.TemporaryDirectory() as folder:
        out, config = Path(folder) / "run", Path(folder) / "cluster.toml"
        config.write_text(
            f'[cluster]\nmax_group = {clients // pods}\n[[agents]]\nid = "here"\n'
            f'[kubernetes]\nimage = "{rig.image}"\npull_policy = "Never"\n'
        )
        before = len(rig.audited(ADMIN))
        command = [str(Path(sys.executable).with_name("hydra")), "zmqfixed", "--client", "native", "--master", "k8s://"]
        command += ["--config", str(config), "--clients", str(clients), "--rate", "10", "--duration", "1", *SMALL]
        done = subprocess.run(
            [*command, "--out", str(out), "--quiet"],
            env={"KUBECONFIG": str(rig.kubeconfig()), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        with RunStore.open(out) as store:
            told = " ".join(str(event) for event in store.events())
        found = re.search(r"clients after ([\d.]+) s", told)
        if found is None:
            raise RuntimeError("the run does not tell when its clients were present")
        return float(found[1]), rig.audited(ADMIN)[before:]


def created_s(calls: Sequence[dict[str, Any]]) -> float:
    """From the first request for a Pod until the last was answered."""
    pods = [c for c in calls if c["verb"] == "create" and c["objectRef"].get("resource") == "pods"]
    first = min(datetime.fromisoformat(c["requestReceivedTimestamp"]) for c in pods)
    last = max(datetime.fromisoformat(c["stageTimestamp"]) for c in pods)
    return (last - first).total_seconds()


def main() -> None:
    """Prints the rows."""
    if reason := reason_not_built():
        print(f"{reason}; nothing was measured")
        return
    counts = [int(word) for word in sys.argv[1:]] or [20, 200]
    print("clients  pods  created s  present s  calls")
    with own() as rig:
        for clients, pods in [(1000, pods) for pods in counts] + [(20, 10), (200, 10)]:
            present_s, calls = run(rig, clients, pods)
            counted = sum(call["verb"] != "deletecollection" for call in calls)
            print(f"{clients:7}  {pods:4}  {created_s(calls):9.2f}  {present_s:9.2f}  {counted:5}", flush=True)


if __name__ == "__main__":
    main()
