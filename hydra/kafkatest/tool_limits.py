"""What Kafka's own performance tools cannot do, told before anything is started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hydra.model import Scenario
from hydra.system import Refusal

IMPLEMENTATION: Final = "kafka-tool"
TOOLS: Final = (IMPLEMENTATION,)
_OTHERS: Final = "use another --implementation"


def refusals(scenario: Scenario) -> Iterator[Refusal]:
    """Why a scenario of this implementation cannot be."""
    settings, sweep = scenario.settings, scenario.sweep
    if sweep.search is not None:
        yield ("sweep", "search"), "a search needs to know what was lost, and kafka-tool only counts", _OTHERS
    messages = [settings.messages, *sweep.vary.get("messages", ())]
    if sweep.points:
        messages = [point.settings.get("messages", settings.messages) for point in sweep.points]
    elif "messages" in sweep.vary:
        messages = messages[1:]
    if None in messages:
        what = "kafka-tool needs settings.messages"
        yield ("settings", "messages"), what, "say how many records each producer sends: messages = 1000000"
    if settings.message_size_min is not None:
        yield ("settings", "message_size_min"), "records of kafka-tool are all of one size, or lines of a file", _OTHERS
    payloads = {settings.payload, *sweep.vary.get("payload", ())}
    payloads |= {point.settings["payload"] for point in sweep.points if "payload" in point.settings}
    if "json" in payloads:
        yield ("settings", "payload"), "kafka-tool makes no JSON", "write records to a file and use payload lines"
