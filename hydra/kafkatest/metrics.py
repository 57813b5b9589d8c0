"""What Kafka's brokers count, as the JMX exporter of the Prometheus project tells it over HTTP."""

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
"""Our name of each figure (see :meth:`hydra.system.System.server_counters`) by the exporter's, as the configurations
that come with it for Kafka name them."""
_LABELS: Final[Mapping[str, str]] = {"jvm_memory_used_bytes": 'area="heap"', "jvm_gc_collection_seconds_sum": "gc="}
"""What the labels of a line must hold to be counted; lines of other figures count where they have none."""
_LINE: Final = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


def figures(text: str) -> dict[str, float]:
    """The figures in an exporter's answer (Prometheus' text format); what it does not tell is left out.

    Figures that stand there by topic as well are taken from the line without one.
    """
    found: dict[str, float] = {}
    for name, labels, value in (m.groups() for m in map(_LINE.match, text.splitlines()) if m):
        ours = NAMES.get(name)
        if ours is None or not (_LABELS[name] in (labels or "") if name in _LABELS else not labels):
            continue
        try:
            found[ours] = found.get(ours, 0.0) + float(value)
        except ValueError:
            continue
    return found


def ask(exporters: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The figures of every broker whose exporter answers and knows any.

    Args:
        exporters: ``host:port`` of each by its broker's name.
    """
    if not exporters:
        return {}
    with ThreadPoolExecutor(max_workers=min(len(exporters), 16)) as pool:
        answers = list(pool.map(_answer, exporters.values()))
    told = {name: figures(text) for name, text in zip(exporters, answers, strict=True)}
    return {name: its for name, its in told.items() if its}


def _answer(address: str) -> str:
    """What an exporter answers, "" if it does not."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=ASK_FOR_S) as answer:  # http only
            return str(answer.read(_MOST_BYTES), "utf-8", "replace")
    except (OSError, ValueError):
        return ""


def exporters(endpoints: Iterable[str]) -> dict[str, str]:
    """Where each broker of our own tells its figures, by its name; whose endpoint says nothing of it is left out."""
    nodes = {f"broker {number}": parse(endpoint) for number, endpoint in enumerate(endpoints, 1)}
    return {name: node.metrics for name, node in nodes.items() if node.metrics}


def of_interfaces(endpoints: Iterable[str]) -> dict[str, dict[str, float]]:
    """What passed the interface of every broker of our own that has a network namespace of this machine for itself."""
    hosts = {f"broker {number}": parse(endpoint).host for number, endpoint in enumerate(endpoints, 1)}
    alone = [host for host, brokers in Counter(hosts.values()).items() if brokers == 1 and not host.startswith("127.")]
    seen = traffic(alone) if alone else {}
    return {
        name: {"interface_in_bytes_total": seen[host].incoming, "interface_out_bytes_total": seen[host].outgoing}
        for name, host in hosts.items()
        if host in seen
    }


def named(addresses: Iterable[str]) -> dict[str, str]:
    """Exporters of the user's by their address."""
    return {address: address for address in addresses}
