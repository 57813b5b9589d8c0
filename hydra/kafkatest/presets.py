"""The settings that Confluent recommends for four design goals, as the load tests on DC/OS quote them."""

from __future__ import annotations

from typing import Final

from hydra.system import Preset

_BROKERS: Final = (3, "so many brokers are needed for three replicas")
_REPLICAS: Final = (3, "a record survives the loss of two brokers")

PRESETS: Final = {
    "throughput": Preset(
        "as many records a second as possible",
        {
            "settings.batch_bytes": (
                100_000,
                "large batches, fewer requests: 100,000 to 200,000",
            ),
            "settings.linger_ms": (10.0, "a batch has time to fill before it is sent: 10 to 100 ms"),
            "settings.compression": ("lz4", "less to send and to store, for little CPU time"),
            "settings.acks": ("1", "the leader's acknowledgement is enough: nobody waits for replicas"),
            "settings.buffer_memory": (67_108_864, "room for the batches of many partitions"),
            "settings.fetch_min_bytes": (1_000_000, "consumers fetch much at once: fewer requests"),
        },
    ),
    "latency": Preset(
        "each record at its consumer as soon as possible",
        {
            "settings.linger_ms": (0.0, "a record is sent at once and waits for no other"),
            "settings.compression": ("none", "no time is spent on compressing"),
            "settings.acks": ("1", "the leader's acknowledgement is enough: nobody waits for replicas"),
            "settings.fetch_min_bytes": (1, "the broker answers a fetch as soon as there is anything"),
            "kafka.broker.num.replica.fetchers": (2, "followers keep up with the leader (the default is 1)"),
        },
    ),
    "durability": Preset(
        "no acknowledged record is lost",
        {
            "server.count": _BROKERS,
            "kafka.replication_factor": _REPLICAS,
            "settings.acks": ("all", "a record is acknowledged when every replica that is in sync has it"),
            "settings.retries": (1, "a batch that failed is sent again"),
            "settings.max_in_flight": (1, "a batch that is sent again comes before the ones behind it"),
            "kafka.topic.min.insync.replicas": ("2", "fewer than two replicas in sync: writes are refused, not risked"),
            "kafka.topic.unclean.leader.election.enable": ("false", "no replica leads that lacks acknowledged records"),
            "kafka.broker.default.replication.factor": ("3", "for topics that nobody made on purpose, too"),
            "kafka.broker.min.insync.replicas": ("2", "likewise"),
            "kafka.broker.unclean.leader.election.enable": ("false", "likewise"),
            "kafka.broker.auto.create.topics.enable": ("false", "no topic appears with settings that nobody chose"),
        },
    ),
    "availability": Preset(
        "writes and reads go on though brokers fail",
        {
            "server.count": _BROKERS,
            "kafka.replication_factor": _REPLICAS,
            "kafka.topic.min.insync.replicas": ("1", "one replica is enough to take writes"),
            "kafka.topic.unclean.leader.election.enable": ("true", "any replica may lead, even one that lacks records"),
            "kafka.broker.min.insync.replicas": ("1", "for topics that nobody made on purpose, too"),
            "kafka.broker.unclean.leader.election.enable": ("true", "likewise"),
            "kafka.broker.num.recovery.threads.per.data.dir": (
                "1",
                "a broker that comes back reads its log with a thread for each folder: ours have one",
            ),
            "settings.session_timeout_ms": (
                6000,
                "a consumer that died is replaced early: brokers take no less than 6 s unless told",
            ),
        },
    ),
}
