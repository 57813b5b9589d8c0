"""What a user may get wrong: one line with what, where and what to try, exit code 2, and nothing is made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest

from hydra.cli import main
from hydra.errors import EXIT_UNREAD, EXIT_USAGE
from hydra.run import launcher
from tests.suite.waiting import LONG_S

Refused = Callable[[Sequence[str]], str]
"""The output of the command, in this process: that takes milliseconds where a command of its own takes a second."""
LONG = "x" * 300
ZMQ = ("zmqfixed", "--clients", "2")
KAFKA = ("kafka-fixed", "--clients", "2", "--bootstrap", "127.0.0.1:1")
MESOS = (*ZMQ, "--master", "127.0.0.1:1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command runs; it must be empty afterwards."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    return empty


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files that are no scenarios, in the folder above."""
    texts = {"deep": "a = " + "[" * 20_000, "digits": "a = " + "9" * 5000, "huge": "#" * 1_000_001}
    for name, text in {**texts, "scenario": 'system = "zmq"\n'}.items():
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "latin.toml").write_bytes(b'system = "zmq"\n# \xe4')
    (tmp_path / "bom.toml").write_bytes(b'\xef\xbb\xbfsystem = "zmq"\n')
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\0")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "file").touch()
    return tmp_path


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    # This process keeps its limits and its signals.
    monkeypatch.setattr(main, "interrupt_on_the_first", lambda: None)
    monkeypatch.setattr(launcher, "raise_open_files", lambda: None)

    def by(words: Sequence[str]) -> str:
        monkeypatch.setattr(sys, "argv", ["hydra", *words])
        with pytest.raises(SystemExit) as end:
            main.main()
        return checked(end.value.code, *capsys.readouterr())

    return by


def checked(code: object, out: str, err: str) -> str:
    assert code == EXIT_USAGE, out + err
    assert out == ""
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1, err
    assert err.startswith("hydra")
    assert len(err) < 1000
    return err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        # numbers
        ((*ZMQ, "--rate", "abc"), "neither messages per second nor max"),
        ((*ZMQ, "--rate", "-5"), "'--rate': must be 1e-06 to 1000000000 messages/s, not -5 messages/s"),
        ((*ZMQ, "--rate", "1e30"), "'--rate': must be 1e-06 to 1000000000 messages/s, not 1e+30"),
        ((*ZMQ, "--rate", "inf"), "'inf' is neither messages per second nor max"),
        ((*ZMQ, "--sndhwm", "99999999999999"), "--sndhwm: must be 0 to 2147483647"),
        ((*ZMQ, "--rcvhwm", "99999999999999"), "--rcvhwm: must be 0 to 2147483647"),
        ((*ZMQ, "--burst", "99999999999"), "'--burst': must be 1 to 1000000"),
        ((*ZMQ, "--set", "settings.burst=0"), "--set settings.burst: must be 1 to 1000000, not 0"),
        ((*ZMQ, "--message-size", "3"), "message_size must be 24"),
        ((*ZMQ, "--set", "settings.message_size_min=129"), "_min must be 24 (the header) to --message-size, 128"),
        ((*ZMQ, "--set", "settings.message_size_min=3"), "message_size_min must be 24"),
        ((*ZMQ, "--payload", "noise"), "--payload"),
        (("kafka-batch", "--payload", "json"), "'json' has no room in messages of 24 bytes"),
        ((*ZMQ, "--payload", "lines", "--message-size", "99"), "'lines' needs --payload-file"),
        (
            (*ZMQ, "--payload", "lines", "--message-size", "99", "--payload-file", "nosuch"),
            "--payload-file: cannot read payload_file nosuch: No such file or directory; name a file of lines on this",
        ),
        (("kafka-batch", "--payload", "lines"), "which are the header; set --message-size"),
        (
            ("nats-rate", "--start-rate", "0.5"),
            "start_rate must be 1/s (floor_rate) or more, not 0.5/s; for a slower search add --set sweep.search.floor",
        ),
        ((*ZMQ, "--payload-file", ""), "--payload-file"),
        ((*ZMQ, "--payload-ratio", "0.5"), "'--payload-ratio': must be 1 to 1000, not 0.5"),
        ((*ZMQ, "--payload-ratio", "nan"), "'--payload-ratio': 'nan' is not a finite number"),
        ((*ZMQ, "--set", "settings.payload_seed=-1"), "settings.payload_seed: must be 0 to"),
        ((*ZMQ, "--set", "settings.payload_seed=9223372036854775808"), "settings.payload_seed"),
        ((*ZMQ, "--repeat", "99999999999"), "'--repeat': must be 1 to 10000, not 99999999999"),
        ((*ZMQ, "--repeat", "9" * 5000), "--repeat"),
        ((*ZMQ, "--duration", "0"), "'--duration': must be 0.001 to 86400 s, not 0 s"),
        ((*ZMQ, "--duration", "100h"), "must be 0.001 to 86400 s, not 360000 s"),
        ((*ZMQ, "--duration", "nan"), "'--duration': 'nan' is no time like"),
        ((*ZMQ, "--set", "warmup_s=1e300"), "warmup_s: must be 0 to 3600"),
        ((*ZMQ, "--set", "drain_max_s=1e300"), "drain_max_s: must be above 0 and at most 86400 s"),
        ((*ZMQ, "--set", "ready_timeout_s=1e300"), "ready_timeout_s: must be above 0 and at most 86400 s"),
        ((*ZMQ, "--set", "publishers=99999999999"), "publishers: must be 1 to 10000"),
        (
            (*ZMQ, "--set", "publisher_memory_mb=1e300"),
            "publisher_memory_mb: must be above 0 and at most 1000000000 MB",
        ),
        ((*ZMQ, "--set", "settings.receive_rate=1e30"), "settings.receive_rate: must be"),
        ((*ZMQ, "--set", "settings.rate=" + "9" * 400), "settings.rate: must be"),
        ((*ZMQ, "--set", "settings.rate=" + "9" * 5000), "settings.rate: must be"),
        ((*ZMQ, "--set", "subscriber.demand.mem_per_client=1e300"), "mem_per_client: must be 0 to"),
        ((*ZMQ, "--client", "native", "--sndbuf", "99999999999"), "--sndbuf: must be 0 to 2147483647"),
        ((*ZMQ, "--client", "native", "--clients-per-process", "99999999999"), "must be 1 to 100000"),
        # what a subscriber without a queue, or without CURVE, cannot do
        ((*ZMQ, "--client", "zmtp", "--rcvhwm", "0"), "--rcvhwm: has no effect in this run: it needs client = "),
        (
            (*ZMQ, "--client", "zmtp", "--set", "sweep.vary.rcvhwm=[1000,5]"),
            "--set sweep.vary.rcvhwm: has no effect in this run",
        ),
        ((*ZMQ, "--client", "zmtp", "--secure"), "--secure: client zmtp speaks ZMTP with the mechanism NULL only"),
        ((*ZMQ, "--client", "zmtp", "--set", "settings.receive_rate=5"), "settings.receive_rate: client zmtp has no"),
        (("zmqrate", "--published", "--client", "zmtp"), "--published: client zmtp has no queue of its own"),
        ((*ZMQ, "--client", "zmtp", "--publisher", "pyzmq", "--transport", "ipc"), "--transport: publishers of pyzmq"),
        ((*ZMQ, "--client", "native", "--publisher", "pyzmq", "--pacing", "bursty"), "--pacing: publishers of pyzmq"),
        (
            (*ZMQ, "--client", "native", "--pacing", "bursty", "--rate", "max"),
            'it needs rate other than "max"; choose --rate other than max, or remove this setting',
        ),
        ((*ZMQ, "--subscriptions", "some"), "'some' is not one of 'all', 'one'"),
        ((*ZMQ, "--publishers", "0"), "'--publishers': must be 1 to 10000, not 0"),
        (("zmqrate", "--start-rate", "1e30"), "'--start-rate': must be"),
        (("zmqrate", "--search-width", "1e300"), "'--search-width': must be above 1 and at most 1000"),
        (("zmqrate", "--set", "sweep.search.reconnect_rate=-1"), "reconnect_rate: must be 0.001 to 100"),
        (("zmqrate", "--set", "sweep.search.gain_target=-1"), "gain_target: must be 0 to 1"),
        (("zmqrate", "--sndhwm", "99999999999,5"), "'--sndhwm': must be 0 to 2147483647"),
        ((*KAFKA, "--partitions", "1000000"), "--partitions: must be 1 to 10000, not 1000000"),
        ((*KAFKA, "--replication-factor", "1000000"), "--replication-factor: must be 1 to 32767"),
        # the flag is blamed that brought it, wherever that is found out
        (("zmqrate", "--loss-target", "200"), "'--loss-target': '200' is no percentage from 0 to below 100"),
        (("zmqrate", "--sndhwm", "5,5"), "hydra: --sndhwm: a mark stands twice in sndhwms"),
        (("zmqfixed", "--clients"), "hydra zmqfixed: Option '--clients' requires an argument"),
        ((*ZMQ, "--set", "settings.rate=0"), "hydra: --set settings.rate: must be 1e-06 to 1000000000 messages/s"),
        ((*ZMQ, "--payload", "json", "--message-size", "24"), "hydra: --message-size: payload 'json' has no room"),
        (
            ("mqtt-fixed", "--password-file", "nosuch", "--servers", "h:1", "--username", "u"),
            "--password-file: nosuch cannot be read",
        ),
        (("nats-fixed", "--replicas", "0"), "hydra: --replicas: must be 1 to 5, not 0"),
        (
            ("mqtt-fixed", "--password-file", "nosuch"),
            "--password-file: has no effect in this run: it needs mqtt.broker",
        ),
        ((*ZMQ, "--io-threads", "2", "--sndbuf", "5"), "--io-threads: client pyzmq has no such option"),
        (
            ("slo", "zmqrate", "--clients", "5", "--p99", "9ms"),
            "with rate 'max' messages have no due times from which latency",
        ),
        (("kafka-fixed", "--linger", "20min"), "hydra: --linger: must be 0 to 900000 ms, not 1200000 ms"),
        ((*ZMQ, "--duration", "1q"), "'--duration': '1q' is no time like"),
        # two values for one setting
        (
            (*ZMQ, "--rate", "6", "--set", "settings.rate=5"),
            "--rate and --set settings.rate both set settings.rate; le",
        ),
        ((*ZMQ, "--rate", "6", "--set", "settings={rate=5}"), "--rate and --set settings both set settings.rate"),
        (("zmq-rate", "--sndhwm", "6", "--set", "settings.sndhwm=5"), "--sndhwm and --set settings.sndhwm both set"),
        (
            ("zmq-rate", "--published", "--no-flaky", "--set", 'sweep.search.series=["loss"]'),
            "--no-flaky and --set sweep.",
        ),
        (
            (*KAFKA, "--kafka-prop", "client.rack=a", "--set", "kafka.properties.client.rack=b"),
            "--kafka-prop and --set kafka.properties.client.rack both set kafka.properties",
        ),
        # flags of something else
        (
            ("kafka-fixed", "--acks", "7"),
            "--acks: hydra kafka-fixed has no such flag, but the scenario has the key set",
        ),
        (("zmq-rate", "--floor-rate=7"), "use --set sweep.search.floor_rate=VALUE"),
        (("check", "nats-fixed", "--warmup", "7"), "use --set warmup_s=VALUE"),
        (("mqtt-fixed", "--p99", "7"), "use --set slo.p99_ms=VALUE"),
        (("kafka-perf", "single-consumer", "--acks", "7"), "use --set settings.acks=VALUE"),
        (
            ("nats-rate", "--rate", "5"),
            "searches for a rate, so none is given; give --start-rate for the first rate, or use hydra nats-fixed --ra",
        ),
        # words that are something else
        (
            ("kafka", "broker", "up", "foo"),
            "hydra kafka broker up: Got unexpected extra argument (foo); write hydra kaf",
        ),
        (("broker", "foo"), "hydra broker: No such command 'foo'; there are down, status, up"),
        (("kill", "--master", "h:1"), "Missing argument 'RUN'; write hydra kill [OPTIONS] RUN"),
        (("ps", "--master", "local"), "runs on --master local leave nothing behind, so there is nothing for hydra ps"),
        (
            ("kill", "x", "--engine", "local"),
            "runs on --master local leave nothing behind, so there is nothing for hydra kill",
        ),
        (("ps",), "runs on --master local leave nothing behind"),
        (("ps", "--master", "nowhere://"), "--master nowhere:// belongs to no installed engine"),
        (("check", "single-consumer"), "is a published experiment, and no scenario; run it with hydra run single-c"),
        ((*ZMQ, "--config", "../scenario.toml"), "is a scenario, and no cluster file; run it with hydra run"),
        # lists
        (("zmqfixed", "--clients", "0"), "'--clients': must be 1 to 1000000, not 0"),
        (("zmqfixed", "--clients", "3,x"), "whole numbers"),
        (("zmqfixed", "--clients", "1e9"), "'--clients': must be 1 to 1000000, not 1000000000"),
        (("zmqfixed", "--clients", "1e-1"), "whole numbers"),
        ((*ZMQ, "--publishers", "1e9"), "'--publishers': must be 1 to 10000, not 1000000000"),
        ((*ZMQ, "--publishers", "1.5"), "'--publishers': '1.5' is not a valid integer"),
        (("zmqfixed", "--clients", ""), "whole numbers"),
        (("zmqfixed", "--clients", "30,30"), "a subscriber count stands twice"),
        (("zmqfixed", "--clients", "9" * 5000), "whole numbers"),
        (("zmqfixed", "--clients", "9" * 400), "must be 1 to 1000000, not a number of 400 digits"),
        ((*ZMQ, "--set", "sweep.vary.nosuch=[1]"), "unknown key; known here: rate, burst, messages, message_size,"),
        (("zmqfixed", "--clients", "99999999999"), "'--clients': must be 1 to 1000000"),
        (("zmqfixed", "--clients", "1000000"), "1,000,000 subscribers do not fit: this machine has room for "),
        (("kafka-batch", "--msg-batch", "100,100"), "--msg-batch: a value stands twice in [100, 100]"),
        (("kafka-batch", "--msg-batch", "100,99999999999"), "--msg-batch: must be 1 to 1000000"),
        ((*ZMQ, "--set", "sweep.vary.rate=[1,1.0]"), "sweep.vary.rate: a value stands twice"),
        (("zmqrate", "--set", 'sweep.search.series=["loss","loss"]'), "sweep.search.series: a series stands twice"),
        # addresses
        (("kafka-fixed", "--bootstrap", ""), "'--servers' / '--bootstrap': it is empty"),
        (("kafka-fixed", "--bootstrap", "127.0.0.1:99999"), "'127.0.0.1:99999' is no address; write host:port"),
        (("kafka-fixed", "--bootstrap", ":9092"), "is no address"),
        (("kafka-fixed", "--bootstrap", "h:1,"), "an address is empty"),
        (("kafka-fixed", "--bootstrap", "127.0.0.1:0"), "is no address"),
        (("kafka-fixed", "--bootstrap", "http://h:1"), "'http://h:1' begins with an unknown scheme"),
        (("kafka-fixed", "--bootstrap", "SASL_SSL://h:1"), "sasl_ssl://: addresses of Kafka have no scheme"),
        (("kafka-fixed", "--bootstrap", "a b:1"), "is no address"),
        (("kafka-fixed", "--bootstrap", "h:1\nh:2"), "is no address"),
        ((*ZMQ, "--advertise", "1.2.3.4"), "--advertise is for another --master: kubernetes, or k8s://CONTEXT of"),
        ((*ZMQ, "--artifact", "http://h/x"), "--artifact is for another --master: kubernetes, or k8s://CONTEXT of"),
        ((*ZMQ, "--master", ""), "'--master' / '--engine': it is empty"),
        ((*ZMQ, "--master", "http://host"), "--master http://host belongs to no installed engine; write kubernetes"),
        ((*ZMQ, "--master", "host:port"), "--master host:port is no address"),
        ((*ZMQ, "--master", "a b"), "--master a b is no address"),
        ((*ZMQ, "--master", LONG), "is no address"),
        ((*MESOS, "--advertise", ""), "'--advertise': it is empty"),
        (("kill", "", "--master", "127.0.0.1:1"), "it is empty"),
        # fits
        (("fit", "nosuch"), "nosuch holds no run"),
        (("fit", "nosuch", "--clients", "0"), "0 subscribers have no throughput"),
        (("fit", "nosuch", "--plot", "../pipe.toml"), "--plot ../pipe.toml: it is no regular file; name another file"),
        (("fit", "nosuch", "--plot", "../file/x.html"), "--plot ../file/x.html: there is no folder ../file"),
        (("fit", "nosuch", "--plot", ".."), "--plot ..: it is a folder"),
        # paths and names
        ((*ZMQ, "--out", ""), "'--out': it is empty"),
        ((*ZMQ, "--out", LONG), "File name too long; choose another folder with --out"),
        ((*ZMQ, "--out", "a/" * 3000), "File name too long"),
        ((*ZMQ, "--out", "/"), "/ is no folder of its own"),
        ((*ZMQ, "--out", "../file/x"), "is no folder that can be written"),
        ((*ZMQ, "--out", "../loop.toml"), "../loop.toml is a link that leads to no folder"),
        ((*ZMQ, "--resume", ""), "'--resume': it is empty"),
        ((*ZMQ, "--resume", LONG), "File name too long; choose a shorter name"),
        ((*ZMQ, "--config", ""), "'--config': it is empty"),
        ((*ZMQ, "--config", "nosuch.toml"), "nosuch.toml: no such file"),
        ((*ZMQ, "--config", "/dev/zero"), "/dev/zero: cannot be read: it is no regular file"),
        (
            ("mqtt-fixed", "--servers", "h:1", "--username", "u", "--password-file", "/dev/zero"),
            "/dev/zero cannot be read: it is no regular file",
        ),
        (
            ("run", "zmqfixed", "--set", "load.shape=recorded", "--set", "load.file=/dev/zero"),
            "/dev/zero: it is no regular file; name a file of times",
        ),
        ((*ZMQ, "--set", "name=../../x"), "name: must be a folder's name"),
        ((*ZMQ, "--set", "name=.."), "name: must be a folder's name"),
        ((*ZMQ, "--set", "name="), "name: must be a folder's name"),
        ((*ZMQ, "--set", 'name="a\\u0000b"'), "name: must be a folder's name"),
        ((*ZMQ, "--set", f"name={LONG}"), "name: must be a folder's name of at most 100 characters"),
        (("run", ""), "no scenario ''"),
        (("run", "nosuch"), "known scenarios"),
        (("run", "x\ny"), "no scenario 'x\\ny'"),
        (("run", "/dev/zero"), "it is no regular file; known scenarios"),
        # opening a pipe would wait for its other end, and Hydra reads a file more than once
        (("run", "../pipe.toml"), "pipe.toml: cannot be read: it is no regular file"),
        (("run", "../deep.toml"), "not TOML"),
        (("run", "../digits.toml"), "not TOML"),
        (("run", "../huge.toml"), "more than 1000000 bytes"),
        (("run", "../binary.toml"), "line 1 is not UTF-8; save the file as UTF-8"),
        (("run", "../latin.toml"), "line 2 is not UTF-8"),
        (("run", "../bom.toml"), "client: is missing"),
        (("run", "--resume", "nosuch"), "nosuch holds no run"),
        (("run",), "Missing argument 'SCENARIO'"),
        (("run", "../folder.toml"), "folder.toml: cannot be read: Is a directory"),
        (("run", "../loop.toml"), "symbolic links"),
        (("report", LONG), "File name too long"),
        (("runs", LONG), "File name too long"),
        (("runs", "nosuch"), "nosuch"),
        (("agents", "--for", ""), "'--for': it is empty"),
        (("serve", "nosuch"), "there is no folder"),
        (("serve", ".", "--host", "0.0.0.0"), "no loopback address"),
        (("serve", ".", "--port", "70000"), "70000 is not in the range"),
        # keys, values, properties
        (("run", "zmqfixed", "--set", "settings.ratee=3"), "did you mean rate"),
        (("run", "zmqfixed", "--set", "settings.acks=1"), "settings.acks: unknown key; this is a key of system kafka"),
        (("run", "kafka-fixed", "--set", "sweep.vary.rcvhwm=[1]"), "sweep.vary.rcvhwm: unknown key; this is a key of"),
        (("run", "zmqfixed", "--set", "nonsense"), "--set nonsense: not of the form key=value"),
        ((*ZMQ, "--set", "x=" + "[" * 20_000), "--set x: not a TOML value"),
        ((*ZMQ, "--set", "description=\udcff"), "argument 5 is not UTF-8"),
        ((*KAFKA, "--kafka-prop", "sasl.password=geheim\udcff"), "argument 7 is not UTF-8; set the terminal"),
        ((*KAFKA, "--kafka-prop", "nonsense"), "key=value"),
        ((*KAFKA, "--kafka-prop", "no.such.property=1"), "no.such.property"),
        ((*KAFKA, "--kafka-prop", "group.id=x"), "group.id"),
        ((*KAFKA, "--kafka-prop", "security.protocol="), "cannot be set to empty value"),
        ((*KAFKA, "--kafka-prop", "security.protocol=nonsense"), 'Invalid value "nonsense"'),
        ((*KAFKA, "--kafka-prop", "socket.timeout.ms=999999999999"), "is outside allowed range"),
        ((*KAFKA, "--client", "confluent-kafka", "--kafka-prop", "queued.min.messages=-7"), "is outside allowed range"),
        ((*KAFKA, "--kafka-prop-file", ""), "'--kafka-prop-file': it is empty"),
        ((*KAFKA, "--kafka-prop-file", "nosuch"), "--kafka-prop-file nosuch: cannot be read: No such file"),
        ((*KAFKA, "--kafka-prop-file", "/dev/zero"), "/dev/zero: cannot be read: it is no regular file"),
        ((*KAFKA, "--client", "pyzmq"), "confluent-kafka"),
        (("kafka-clean", "--bootstrap", ""), "--servers is empty"),
        (("kafka-clean", "--bootstrap", "127.0.0.1:99999"), "'127.0.0.1:99999' is no address; write host:port"),
        (("kafka-clean", "--bootstrap", "h:9092", "nosuch"), "'nosuch' does not exist"),
        # comparisons
        (("compare",), "there are fewer than two runs to compare"),
        (("compare", "nowhere"), "there are fewer than two runs"),
        (("compare", "nowhere", "nowhere"), "nowhere is named twice; name two different runs"),
        (("compare", "nowhere", "elsewhere"), "nowhere holds no run"),
        (("compare", "../file", "../folder.toml"), "../file holds no run"),
        (("compare", "", "x"), "it is empty"),
        (("compare", LONG, "x"), "File name too long"),
        ((*ZMQ, "--compare", "pyzmq"), "--compare pyzmq names fewer than two"),
        ((*ZMQ, "--compare", ", ,"), "names fewer than two"),
        ((*ZMQ, "--compare", "pyzmq,nonsense"), "'nonsense' is no client of system zmq; use pyzmq or"),
        ((*ZMQ, "--compare", "pyzmq,pyzmq", "--client", "pyzmq"), "leave out --implementation"),
        ((*ZMQ, "--compare", "pyzmq,pyzmq", "--repeat", "1"), "does not show the spread"),
        ((*ZMQ, "--compare", "pyzmq,pyzmq", "--repeat", "0"), "'--repeat': must be 1 to 10000, not 0"),
        ((*ZMQ, "--compare", "pyzmq,pyzmq", "--fail-if", "x < base"), "no number called x"),
        ((*ZMQ, "--compare", "pyzmq,pyzmq", "--out", "../file/x"), "is no folder that can be written"),
        ((*ZMQ, "--compare", "pyzmq,pyzmq", "--resume", "."), "holds no runs that were compared"),
        ((*ZMQ, "--interleave"), "--interleave is for compared runs"),
        ((*ZMQ, "--fail-if", "avg_rx_rate_pps < 0.9 * base"), "there is no base"),
        ((*ZMQ, "--compare", "burst=100"), "--compare burst=100 names fewer than two"),
        (
            (*ZMQ, "--compare", "clients=1,2"),
            "--compare clients: it decides which rows are measured; compare two commands",
        ),
        ((*ZMQ, "--compare", "sndhwm=1,a"), "--compare sndhwm: 'a' is not a valid integer; write each value as"),
        (
            ("kafka-fixed", "--compare", "acks=1,many"),
            "--compare: settings.acks: must be '0', '1' or 'all', not 'many'",
        ),
        (
            ("mqtt-fixed", "--servers", "h:1", "--compare", "mqtt.password=geheim1,geheim2"),
            "--compare mqtt.password: its values are secrets, and folders are named after values; name the runs with",
        ),
        ((*KAFKA, "--compare", "kafka-prop=sasl.password=geheim1,linger.ms=1"), "--compare kafka-prop: its values are"),
        (("kafka-fixed", "--compare", "linger=5,x"), "--compare linger: 'x' is no time like 20us or"),
        ((*ZMQ, "--compare", "ratio=1,2"), "--compare: settings.ratio: unknown key; did you mean rate?"),
        (
            (*ZMQ, "--compare", "burst=1,2", "--burst", "3"),
            "--compare burst: settings.burst is given for all runs, too",
        ),
        (
            (*ZMQ, "--compare", "rcvhwm=1,2", "--client", "zmtp"),
            "--compare: settings.rcvhwm: has no effect in this run",
        ),
        (("compare", "--run", "zmqfixed"), "one --run names one run; give --run twice"),
        (("compare", "--run", "slo zmqfixed", "--run", "zmqfixed"), "--run 'slo' runs no scenario"),
        (
            ("compare", "--run", "zmqfixed", "--run", "nats-fixed --storage file"),
            "--run: settings.storage: has no effect in this run",
        ),
        (("compare", "--run", "nosuch", "--run", "zmqfixed"), "--run 'nosuch' runs no scenario"),
        (("compare", "--run", "run single-consumer", "--run", "zmqfixed"), "--run 'run' runs no scenario"),
        (("compare", "--run", "zmqfixed 'x", "--run", "zmqfixed"), "--run: No closing quotation"),
        (("compare", "--run", "zmqfixed --json", "--run", "zmqfixed"), "--json is a flag of the whole comparison"),
        (
            ("compare", "--run", "zmqfixed --clients 1", "--run", "nats-fixed --clients 2"),
            "the runs have different rows: clients: zmqfixed 1; nats-fixed 2; give all of them the same clients",
        ),
        (
            ("compare", "--run", "zmqfixed --repeat 2", "--run", "zmqfixed --repeat 3"),
            "the commands have different numbers of repeats; write --repeat after hydra compare",
        ),
        (("compare", "a", "b", "--out", "x"), "--out is for runs that are measured; name commands with --run"),
        (("compare", "a", "--run", "zmqfixed", "--run", "zmqfixed"), "run directories are for runs that are there"),
        (("run", "single-consumer", "--compare", "a,b"), "single-consumer is an experiment"),
        (("run", "single-consumer", "--no-interleave"), "single-consumer is an experiment"),
        # published experiments
        (("kafka-perf", "nonsense"), "no experiment 'nonsense'"),
        (("kafka-perf", "single-consumer", "--scale", "0"), "not in the range 0<x<=1000"),
        (("kafka-perf", "single-consumer", "--scale", "nan"), "nan' is not a finite number"),
        (("kafka-plan", "--target-rate", "inf"), "inf' is not a finite number"),
        (("kafka-plan", "--target-rate", "0"), "not in the range x>=1"),
        (("kafka-perf", "single-consumer", "--preset", "x"), "system kafka has no preset 'x'"),
        (("kafka-perf", "single-consumer", "--set", "kafka.topic.foo=1"), "kafka.topic.foo"),
        (("run", "single-consumer", "--stored-bytes", "1000000"), "--stored-bytes is for"),
        (("run", "zmqfixed", "--stored-bytes", "1000000"), "--stored-bytes is for published experiments"),
        (("run", "zmqfixed", "--scale", "2"), "--scale is for published experiments"),
        (("run", "zmqrate", "--set", "settings.messages=10"), "settings.messages: is a number of messages"),
        ((*ZMQ, "--fail-if", ""), "is no comparison"),
        ((*ZMQ, "--fail-if", "client_loss_pct > 1e999"), "is no comparison"),
        ((*ZMQ, "--fail-if", "loss > 1"), "did you mean client_loss_pct?"),
        ((*ZMQ, "--foo"), "No such option '--foo' (see hydra zmqfixed --help)"),
        ((*ZMQ, "--publ", "3"), "No such option '--publ'; did you mean --publi"),
        (("nats-fixed", "--sevrers", "h:1"), "No such option '--sevrers'; did you mean --servers?"),
        ((*ZMQ, "--prometheus", "[::1"), "'[::1' is no address like :9464"),
        (("zmqfixd",), "hydra: No such command 'zmqfixd'; did you mean zmq-fixed? (see hydra --help)"),
    ],
)
def test_bad_input_is_one_line_with_exit_code_2_and_makes_nothing(
    folder: Path, files: Path, words: Sequence[str], text: str, refused: Refused
) -> None:
    assert files == folder.parent
    before = sorted(files.iterdir())
    assert text in refused(words)
    assert not list(folder.iterdir())
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "environment", "text"),
    [
        (("broker", "up"), {"HOME": "/proc", "XDG_STATE_HOME": ""}, "check that the folder exists"),
        (("broker", "status"), {"XDG_STATE_HOME": "/dev/null"}, "a part of the path is no folder"),
        (
            (*ZMQ, "--duration", "1"),
            {"TMPDIR": "/dev/null"},
            "no folder for the sockets of clients can be",
        ),
        (("ps", "--master", "a b"), {"HYDRA_MESOS_PRINCIPAL": "me", "HYDRA_MESOS_SECRET": "geheim"}, "is no address"),
    ],
)
def test_surroundings_that_cannot_be_used_are_one_line(
    words: Sequence[str], environment: Mapping[str, str], text: str, folder: Path, refused: Refused
) -> None:
    with patch.dict(os.environ, environment):
        assert text in refused(words)
    assert not list(folder.iterdir())


def agents(stdout: int) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-m", "hydra.cli.main", "agents"]
    return subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, check=False, timeout=LONG_S)


@pytest.mark.tier("test")
def test_output_that_cannot_be_written_is_one_line() -> None:
    with Path("/dev/full").open("wb") as device:
        done = agents(device.fileno())
    assert "No space left on device; free some space, raise" in checked(done.returncode, "", done.stderr.decode())


@pytest.mark.tier("test")
def test_closed_standard_output_is_refused_before_a_file_gets_its_number(folder: Path) -> None:
    words = [sys.executable, "-m", "hydra.cli.main", *ZMQ]
    closed = [*("sh", "-c", 'exec "$@" >&- <&-', "-"), *words]
    done = subprocess.run(closed, stderr=subprocess.PIPE, check=False, timeout=LONG_S)
    assert "standard output is closed" in checked(done.returncode, "", done.stderr.decode())
    assert not list(folder.iterdir())


@pytest.mark.tier("test")
def test_output_that_nobody_reads_is_no_error_message() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb"):
        done = agents(writer)
    assert (done.returncode, done.stderr) == (EXIT_UNREAD, b"")
