"""Confluent's recommended settings for four design goals, as the load tests on DC/OS quote them."""

from __future__ import annotations

from typing import Final

from hydra.system.experiment import Preset

_BROKERS: Final = (3, "three replicas need three brokers")
_REPLICAS: Final = (3, "a record survives the loss of two brokers")

PRESETS: Final = {
    "throughput": Preset(
        "as many records/s as possible",
        {
            "settings.batch_bytes": (
                100_000,
                "large batches, fewer requests: 100,000 to 200,000",
            ),
            "settings.linger_ms": (10.0, "the producer waits for a batch to fill: 10 to 100 ms"),
            "settings.compression": ("lz4", "less to send and to store, for little CPU time"),
            "settings.acks": ("1", "the leader acknowledges without waiting for replicas"),
            "settings.buffer_memory": (67_108_864, "memory for the batches of many partitions"),
            "settings.fetch_min_bytes": (
                1_000_000,
                "consumers fetch more records in one request, so they send fewer requests",
            ),
        },
    ),
    "latency": Preset(
        "each record reaches its consumer as soon as possible",
        {
            "settings.linger_ms": (0.0, "a record is sent at once and does not wait for other records"),
            "settings.compression": ("none", "no time is spent on compressing"),
            "settings.acks": ("1", "the leader acknowledges without waiting for replicas"),
            "settings.fetch_min_bytes": (1, "the broker answers a fetch request as soon as one byte is available"),
            "kafka.broker.num.replica.fetchers": (2, "followers keep up with the leader (the default is 1)"),
        },
    ),
    "durability": Preset(
        "no acknowledged record is lost",
        {
            "server.count": _BROKERS,
            "kafka.replication_factor": _REPLICAS,
            "settings.acks": ("all", "a record is acknowledged when every replica in sync has stored the record"),
            "settings.retries": (1, "a batch that failed is resent"),
            "settings.max_in_flight": (1, "a batch that is resent stays ahead of later batches"),
            "kafka.topic.min.insync.replicas": ("2", "with fewer than two replicas in sync, writes are rejected"),
            "kafka.topic.unclean.leader.election.enable": (
                "false",
                "a replica that lacks acknowledged records never leads",
            ),
            "kafka.broker.default.replication.factor": (
                "3",
                "the value of the preset also for topics without settings of their own",
            ),
            "kafka.broker.min.insync.replicas": (
                "2",
                "the value of the preset also for topics without settings of their own",
            ),
            "kafka.broker.unclean.leader.election.enable": (
                "false",
                "the value of the preset also for topics without settings of their own",
            ),
            "kafka.broker.auto.create.topics.enable": ("false", "no topic is created with default settings"),
        },
    ),
    "availability": Preset(
        "writes and reads continue when brokers fail",
        {
            "server.count": _BROKERS,
            "kafka.replication_factor": _REPLICAS,
            "kafka.topic.min.insync.replicas": ("1", "one replica in sync is enough for writes"),
            "kafka.topic.unclean.leader.election.enable": ("true", "any replica may lead, even one that lacks records"),
            "kafka.broker.min.insync.replicas": (
                "1",
                "the value of the preset also for topics without settings of their own",
            ),
            "kafka.broker.unclean.leader.election.enable": (
                "true",
                "the value of the preset also for topics without settings of their own",
            ),
            "kafka.broker.num.recovery.threads.per.data.dir": (
                "1",
                "threads that read the log of a data folder when a broker restarts; Hydra's brokers have one folder",
            ),
            "settings.session_timeout_ms": (
                6000,
                "a short session timeout, so the group replaces a dead consumer soon; brokers accept 6 s or more by "
                "default",
            ),
        },
    ),
}
