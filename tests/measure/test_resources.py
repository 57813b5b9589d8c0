"""Host totals of a step."""

from __future__ import annotations

from hydra.measure.resources import HostSample, HostSampler, summarise

SECOND = 1_000_000_000


def sample(second: int, cpu: tuple[float, ...], used: int = 10) -> HostSample:
    return HostSample(second * SECOND, cpu, used, 100 - used, second * 1000, second * 500, second * 10)


def test_the_summary_is_of_the_samples_inside_the_window() -> None:
    samples = [
        sample(0, (99, 99), 90),
        sample(1, (99, 99)),
        sample(2, (10, 50), 30),
        sample(3, (30, 90)),
        sample(9, ()),
    ]
    summary = summarise(samples, (SECOND, 3 * SECOND))
    assert summary is not None
    assert (summary.cpu_mean_pct, summary.cpu_busiest_core_pct) == (45, 70)
    assert (summary.memory_used_max_bytes, summary.memory_available_min_bytes) == (30, 70)
    assert (summary.net_sent_bytes_s, summary.net_received_bytes_s, summary.context_switches_s) == (1000, 500, 10)


def test_one_sample_says_nothing() -> None:
    assert summarise([sample(1, (1.0,))], (0, 9 * SECOND)) is None


def test_the_sampler_reads_this_host() -> None:
    sampler = HostSampler()
    s = sampler.sample(5)
    assert s.time_ns == 5
    assert s.cpu_pct
    assert all(0 <= c <= 100 for c in s.cpu_pct)
    assert s.memory_available_bytes > 0
