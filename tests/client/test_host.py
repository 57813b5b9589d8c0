"""What is read of this host, and of kernels with fewer files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from hydra.client.host_counters import HostSampler
from hydra.model import CoreTimes, TcpCounts
from hydra.wire.report_validation import check_counters

SNMP = """Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin MaxConn OutSegs RetransSegs InErrs
Tcp: 1 200 -1 197742154 163439 0
Udp: InDatagrams
Udp: 5
"""
NETSTAT = """TcpExt: SyncookiesSent TCPFastRetrans TCPSlowStartRetrans TCPLossProbes
TcpExt: 3 158400 39 5000
IpExt: InNoRoutes
IpExt: 4
"""
PRESSURE = """some avg10=1.53 avg60=0.87 avg300=0.26 total=29840277715
full avg10=0.00 avg60=0.00 avg300=0.00 total=17
"""


def test_this_host() -> None:
    sampler = HostSampler()
    before, after = sampler.read(), sampler.read()
    check_counters(before)
    assert len(before.cores) == psutil.cpu_count()
    assert all(0 <= c.busy_s <= c.total_s and 0 <= c.steal_s <= c.total_s for c in before.cores)
    assert 0 < before.memory_available <= before.memory_total == psutil.virtual_memory().total
    assert "lo" not in before.interfaces
    assert before.interfaces.keys() == psutil.net_io_counters(pernic=True).keys() - {"lo"}
    assert after.context_switches >= before.context_switches
    assert before.tcp <= after.tcp


def test_what_cores_have_done(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"user": 10.0, "nice": 1.0, "system": 2.0, "idle": 50.0, "iowait": 5.0, "irq": 0.5, "softirq": 0.25}
    core = psutil.cpu_times()._replace(**times, steal=3.0, guest=4.0, guest_nice=0.5)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: [core] * percpu)
    assert HostSampler().read().cores == [CoreTimes(busy_s=13.75, steal_s=3.0, total_s=71.75)]


def test_what_the_kernel_says_of_pressure_and_tcp(tmp_path: Path) -> None:
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text(PRESSURE)
    (tmp_path / "pressure" / "memory").write_text(PRESSURE.replace("29840277715", "0"))
    (tmp_path / "self" / "net").mkdir(parents=True)
    (tmp_path / "self" / "net" / "snmp").write_text(SNMP)
    (tmp_path / "self" / "net" / "netstat").write_text(NETSTAT)
    counters = HostSampler(tmp_path).read()
    assert counters.pressure_us == {"cpu": 29840277715, "memory": 0}
    assert counters.tcp == TcpCounts(197742154, 158439)


def test_a_kernel_that_says_nothing_of_them(tmp_path: Path) -> None:
    counters = HostSampler(tmp_path).read()
    assert counters.pressure_us == {}
    assert counters.tcp == TcpCounts(0, 0)
    check_counters(counters)


def test_drivers_are_asked_for_speeds_only_when_an_interface_comes_or_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    def counts(*names: str) -> dict[str, object]:
        return dict.fromkeys(names, SimpleNamespace(bytes_sent=7, bytes_recv=5, dropin=3, dropout=4))

    requests = []

    def stats() -> dict[str, object]:
        requests.append(1)
        unknown, known = (SimpleNamespace(speed=speed) for speed in (0, 10_000))
        return {"lo": unknown, "veth1": known, "eth0": unknown}

    names = ["lo", "veth1", "eth0"]
    monkeypatch.setattr(psutil, "net_io_counters", lambda **_: counts(*names))
    monkeypatch.setattr(psutil, "net_if_stats", stats)
    sampler = HostSampler()
    for _ in range(3):
        assert sampler.read().interfaces == {"eth0": (5, 7, 3, 4, None), "veth1": (5, 7, 3, 4, 10_000)}
    assert len(requests) == 1
    # One of which the drivers know nothing any more.
    names.append("veth2")
    assert sampler.read().interfaces["veth2"] == (5, 7, 3, 4, None)
    assert len(requests) == 2
