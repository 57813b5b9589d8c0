"""How much librdkafka's consumers read ahead, and how a run limits it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.kafkatest.footprints import BROKER_LOG
from hydra.kafkatest.properties import confluent_config
from hydra.kafkatest.property_table import PROPERTIES
from hydra.kafkatest.settings import TABLE, spec_of
from hydra.model import Scenario
from hydra.system import ReadAhead

READ_AHEAD: Final = f"{TABLE}.read_ahead"
"""The key of the limit."""
_MESSAGES: Final = "queued.min.messages"
_KILOBYTES: Final = "queued.max.messages.kbytes"
_MESSAGE_BYTES: Final = 250
"""Memory of a fetched message beside its payload: 1,000 consumers with 100,000 messages of 100 B used 35 MB each."""
_LEAST: Final = 1000


def ahead_config(messages: int | None) -> dict[str, str]:
    """The property for this limit; none for None."""
    return {} if messages is None else {_MESSAGES: str(messages)}


def read_ahead_of(scenario: Scenario) -> ReadAhead:
    """The largest read-ahead of a scenario's rows."""
    spec = spec_of(scenario)
    given = confluent_config(spec.properties, "subscriber")
    config = {name: PROPERTIES[name].value for name in (_MESSAGES, _KILOBYTES)} | ahead_config(spec.read_ahead) | given
    sizes = scenario.whole_values("message_size")
    if scenario.settings.message_sizes:
        sizes = (max(round(scenario.settings.mean_bytes), 1),)
    size = max(sizes)
    topics = max(
        min(some or every, every)
        for every in scenario.whole_values("topics")
        for some in scenario.whole_values("topics_per_client")
    )
    partitions = max(scenario.whole_values("partitions", spec.partitions))
    fetch = max(scenario.whole_values("max_partition_fetch_bytes"))
    return ReadAhead(
        messages=min(_given(config, _MESSAGES), _given(config, _KILOBYTES) * 1024 // size),
        places=partitions * max(topics, 1),
        shared=all(scenario.values_of("group")),
        more=-(-fetch // (size + BROKER_LOG.record_bytes)),
        message_bytes=size + _MESSAGE_BYTES,
        least=_LEAST,
        key="" if given.keys() & {_MESSAGES, _KILOBYTES} or spec.read_ahead is not None else READ_AHEAD,
    )


def _given(config: Mapping[str, str], name: str) -> int:
    """The number of a property; its default for a text that librdkafka rejects later."""
    text = str(config[name])
    return int(text) if text.isdecimal() else int(PROPERTIES[name].value)
