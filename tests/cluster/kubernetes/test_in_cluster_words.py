"""The words of a command that runs in the cluster, and the files that it takes along."""

from __future__ import annotations

import tomllib

import pytest

from hydra.config.file_locations import conf_dir
from hydra.errors import UsageError
from hydra.kubernetes.in_cluster.cluster_file import needed
from hydra.kubernetes.in_cluster.job_arguments import FILES, Words, config_among, rewritten, with_files

LOCAL = {"mine.toml", "./odd", "/home/me/trace.csv", "trace.csv", "30", "zmqrate", "1.5", "client.properties", "pw.txt"}
OWN = ["--master", "k8s://in-cluster", "--config", f"{FILES}/{{}}/hydra.toml", "--out", "/runs/first"]


def words(text: str) -> Words:
    return rewritten(text.split(), "first", "/conf/hydra.toml", LOCAL.__contains__)


@pytest.mark.parametrize(
    ("typed", "kept", "files"),
    [
        ("zmqrate --in-cluster --master k8s://kind", "zmqrate", []),
        ("zmqrate --master=k8s://kind --in-cluster --clients 30 --rate 1.5", "zmqrate --clients 30 --rate 1.5", []),
        ("run zmqrate --in-cluster --namespace lab", "run zmqrate --namespace lab", []),
        ("run mine.toml --in-cluster", f"run {FILES}/0/mine.toml", ["mine.toml"]),
        ("run ./odd --engine kubernetes --out runs/first", f"run {FILES}/0/odd", ["./odd"]),
        ("run mine.toml --out=runs/first --advertise 10.0.0.1", f"run {FILES}/0/mine.toml", ["mine.toml"]),
        (
            "kafka-batch --kafka-prop-file client.properties --image python:3.13",
            f"kafka-batch --kafka-prop-file {FILES}/0/client.properties --image python:3.13",
            ["client.properties"],
        ),
        ("mqtt-rate --password-file=pw.txt", f"mqtt-rate --password-file {FILES}/0/pw.txt", ["pw.txt"]),
        (
            "run mine.toml --set load.file=trace.csv --set sweep.clients=[30]",
            f"run {FILES}/0/mine.toml --set load.file={FILES}/1/trace.csv --set sweep.clients=[30]",
            ["mine.toml", "trace.csv"],
        ),
        (
            "run mine.toml --set=load.file='/home/me/trace.csv'",
            f"run {FILES}/0/mine.toml --set load.file={FILES}/1/trace.csv",
            ["mine.toml", "/home/me/trace.csv"],
        ),
        ("mqtt-rate --password-file 30 --clients 30", f"mqtt-rate --password-file {FILES}/0/30 --clients 30", ["30"]),
        ("mqtt-rate --set mqtt.password_file=30", f"mqtt-rate --set mqtt.password_file={FILES}/0/30", ["30"]),
        ("mqtt-rate --set load.rate=30 --password-file no", "mqtt-rate --set load.rate=30 --password-file no", []),
        ("zmqfixed --payload-file trace.csv", "zmqfixed --payload-file trace.csv", []),
        ("zmqfixed --set settings.payload_file=trace.csv", "zmqfixed --set settings.payload_file=trace.csv", []),
        ("zmqfixed --otlp http://collector:4318", "zmqfixed --otlp http://collector:4318", []),
        ("zmqfixed --prometheus 0.0.0.0:9464 --json", "zmqfixed --prometheus 0.0.0.0:9464 --json", []),
        ("run mine.toml --set load.file=no.csv", f"run {FILES}/0/mine.toml --set load.file=no.csv", ["mine.toml"]),
        ("run mine.toml --config mine.toml --fail-if", f"run {FILES}/0/mine.toml --fail-if", ["mine.toml"]),
    ],
)
def test_words_are_those_of_the_pod(typed: str, kept: str, files: list[str]) -> None:
    done = words(typed)
    own = [word.format(len(files)) for word in OWN]
    assert list(done.arguments) == [*kept.split(), *own]
    assert list(done.files) == [*files, "/conf/hydra.toml"]
    assert all(path in FILES or path.startswith(FILES) for path in done.files.values())


def test_what_follows_two_dashes_stays_last() -> None:
    done = words("run --in-cluster -- mine.toml")
    assert done.arguments[-2:] == ("--", f"{FILES}/0/mine.toml")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("zmqrate --resume runs/first", "--resume goes on with a run of this machine; leave out --in-cluster"),
        ("zmqrate --resume=runs/first", "--resume"),
        ("zmqrate --prometheus :9464", "0.0.0.0:9464"),
        ("zmqrate --prometheus 9464", "0.0.0.0:9464"),
        ("zmqrate --prometheus [::1]:9464", "0.0.0.0:9464"),
        ("zmqrate --prometheus=127.0.0.1:9464", "is the Pod itself"),
        ("zmqrate --otlp http://[::1]:4318/v1", "is the Pod itself"),
        ("zmqrate --otlp http://127.0.0.1", "is the Pod itself"),
        ("zmqrate --otlp http://localhost:4318", "name the receiver as Pods reach it"),
    ],
)
def test_what_makes_no_sense_in_a_pod_is_refused(typed: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        words(typed)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("run --config a.toml --config=b.toml", "b.toml"),
        ("run --config=b.toml --config a.toml x", "a.toml"),
        ("run -- --config a.toml", ""),
        ("run x", ""),
    ],
)
def test_the_last_cluster_file_counts(typed: str, named: str) -> None:
    assert config_among(typed.split()) == named


SCENARIO = """
system = "mqtt"
[settings]
payload_file = "trace.csv"
[load]
file = "trace.csv"
[mqtt]
password_file = '{0}'  # a secret
broker = "pw.txt"
"""


def test_files_that_a_scenario_names_are_shipped_too() -> None:
    text, files = with_files(SCENARIO.format("/home/me/trace.csv"), LOCAL.__contains__, 5)
    data = tomllib.loads(text)
    assert files == {"trace.csv": f"{FILES}/5/trace.csv", "/home/me/trace.csv": f"{FILES}/6/trace.csv"}
    assert data["load"]["file"] == f"{FILES}/5/trace.csv"
    assert data["mqtt"] == {"password_file": f"{FILES}/6/trace.csv", "broker": "pw.txt"}
    assert data["settings"]["payload_file"] == "trace.csv"


def test_a_path_that_cannot_be_replaced_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the file of load\.file cannot be shipped"):
        with_files('[load]\nfile = "tr\\u0061ce.csv"\n', LOCAL.__contains__, 0)


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
