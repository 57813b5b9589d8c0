"""Metrics of Kafka's brokers, read over HTTP from the JMX exporter of the Prometheus project."""

from __future__ import annotations

import re
import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hydra.client.network_interfaces import traffic
from hydra.kafkatest.nodes import parse

ASK_FOR_S: Final = 1.5
"""How long an exporter may take to answer."""
_MOST_BYTES: Final = 16 * 1024 * 1024

_OF_TOPICS: Final = "kafka_server_brokertopicmetrics_{}_total"
NAMES: Final[Mapping[str, str]] = {
    _OF_TOPICS.format("messagesin"): "messages_total",
    _OF_TOPICS.format("bytesin"): "in_bytes_total",
    _OF_TOPICS.format("bytesout"): "out_bytes_total",
    _OF_TOPICS.format("replicationbytesin"): "replication_in_bytes_total",
    _OF_TOPICS.format("replicationbytesout"): "replication_out_bytes_total",
    "kafka_server_requesthandler_idle_seconds_total": "request_idle_seconds_total",
    "process_cpu_seconds_total": "cpu_seconds_total",
    "jvm_gc_collection_seconds_sum": "gc_seconds_total",
    "jvm_memory_used_bytes": "heap_bytes",
}
"""Hydra's name of each metric (see :meth:`hydra.system.RunServers.counters`) by the exporter's name, which the
exporter's own configurations for Kafka use."""
_LABELS: Final[Mapping[str, str]] = {"jvm_memory_used_bytes": 'area="heap"', "jvm_gc_collection_seconds_sum": "gc="}
"""A text that the labels of a line must contain; lines of other metrics count only without labels."""
_LINE: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


def figures(text: str) -> dict[str, float]:
    """The metrics in an exporter's answer (Prometheus' text format), without those that it lacks.

    A metric that the answer also has by topic is taken from the line without a topic.
    """
    found: dict[str, float] = {}
    for name, labels, value in (m.groups() for m in map(_LINE.match, text.splitlines()) if m):
        figure_name = NAMES.get(name)
        if figure_name is None or not (_LABELS[name] in (labels or "") if name in _LABELS else not labels):
            continue
        try:
            found[figure_name] = found.get(figure_name, 0.0) + float(value)
        except ValueError:
            continue
    return found


def ask(exporters: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The metrics of every broker whose exporter answers with some.

    Args:
        exporters: ``host:port`` of each exporter by its broker's name.
    """
    if not exporters:
        return {}
    with ThreadPoolExecutor(max_workers=min(len(exporters), 16)) as pool:
        answers = list(pool.map(_answer, exporters.values()))
    found = {name: figures(text) for name, text in zip(exporters, answers, strict=True)}
    return {name: its for name, its in found.items() if its}


def _answer(address: str) -> str:
    """The exporter's answer, "" if there is none."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=ASK_FOR_S) as answer:  # http only
            return str(answer.read(_MOST_BYTES), "utf-8", "replace")
    except (OSError, ValueError):
        return ""


def exporters(endpoints: Iterable[str]) -> dict[str, str]:
    """The exporter's address of each broker started by Hydra, by the broker's name, if its endpoint contains one."""
    nodes = {f"broker {number}": parse(endpoint) for number, endpoint in enumerate(endpoints, 1)}
    return {name: node.metrics for name, node in nodes.items() if node.metrics}


def of_interfaces(endpoints: Iterable[str]) -> dict[str, dict[str, float]]:
    """Bytes through the interface of each broker started by Hydra that has a network namespace of its own here."""
    hosts = {f"broker {number}": parse(endpoint).host for number, endpoint in enumerate(endpoints, 1)}
    alone = [host for host, brokers in Counter(hosts.values()).items() if brokers == 1 and not host.startswith("127.")]
    seen = traffic(alone) if alone else {}
    return {
        name: {"interface_in_bytes_total": seen[host].incoming, "interface_out_bytes_total": seen[host].outgoing}
        for name, host in hosts.items()
        if host in seen
    }


def named(addresses: Iterable[str]) -> dict[str, str]:
    """The user's exporters by their address."""
    return {address: address for address in addresses}
