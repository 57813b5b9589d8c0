"""Steps of two subscribers, as they were observed."""

from __future__ import annotations

from collections.abc import Collection

from hydra.measure.observation import Observation
from hydra.model import Rate, Settings, StepPlan, SubscriberReport
from hydra.wire.subscriber_table import SubscriberTable, table_of
from tests.measure.reports import START, STOP, published, received


def reporting(*reports: SubscriberReport, cohort: Collection[int] = ()) -> SubscriberTable:
    """The columns of subscribers from 1 on."""
    return table_of(dict(enumerate(reports, 1)), cohort=cohort)


def observed(rate: Rate = 100.0) -> Observation:
    return Observation(
        queue="high-water mark", batch=100, plan=StepPlan(clients=2, settings=Settings(rate=rate), duration_s=10),
        publishers={0}, subscribers={1, 2}, publisher_reports={0: published(1000)},
        subscriber_reports=reporting(received(1000), received(1000)), window_ns=(START, STOP), loss_target=0.005,
    )  # fmt: skip
