"""A machine with enough of everything."""

from hydra.config.shortages import MachineLimits

GB = 10**9
AMPLE = MachineLimits(
    nofile_soft=100_000, nofile_hard=100_000, nproc_soft=0, file_max=10**7, pid_max=4_194_304, threads_max=1_000_000,
    cgroup_pids_max=0, threads=200, somaxconn=4096, ports_first=32768, ports_last=60999,
    memory_available_bytes=64 * GB, disk_available_bytes=64 * GB, clock_source="tsc", privileged=True,
)  # fmt: skip
