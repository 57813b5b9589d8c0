"""What of a cluster file goes along with a command to the cluster."""

from __future__ import annotations

import tomllib

import pytest

from hydra.cluster.kubernetes.in_cluster.cluster_file import needed
from hydra.config.places import conf_dir

ODD = """
[mesos]
secret = "s3cret"
[kubernetes.annotations]
"a.b/c d" = "quote \\" backslash \\\\ tab \\t line \\n del \\u007f \\U0001F40D"
[[kubernetes.tolerations]]
key = 'x'
tolerationSeconds = 30
[kubernetes.pod]
hostAliases = [{ip = "10.0.0.1", hostnames = []}, {}]
empty = {}
on = true
half = 0.5
large = 1e300
nothing = inf
"""


@pytest.mark.parametrize("text", [ODD, (conf_dir() / "hydra.toml").read_text(), ""])
def test_the_tables_that_are_needed_go_along_unchanged_and_no_others(text: str) -> None:
    whole = tomllib.loads(text)
    shipped = tomllib.loads(needed(text))
    assert shipped == {name: whole[name] for name in whole if name != "mesos"}
    assert "s3cret" not in needed(text)
