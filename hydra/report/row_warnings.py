"""The warnings of rows, in the order in which a row shows them.

A warning does not contain its row: tables and reports show the row beside it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hydra.events.warnings import HydraWarning
from hydra.model import Scenario
from hydra.report.connection_warnings import (
    ConnectionsLost,
    LostBySilence,
    NeverBack,
    NotLetIn,
    SubscribersWithoutReport,
)
from hydra.report.host_warnings import GeneratorLimited, HostBusy, HostShared, RowDisturbed
from hydra.report.incompleteness_warnings import PartialRepeats, RowFailed, RowPartial, RowSkipped, StepRetried
from hydra.report.loss_warnings import (
    BacklogAtEnd,
    GroupOutcomeUnknown,
    LateMessages,
    LossInterval,
    MessagesLost,
    OutcomeUnknown,
    Undrained,
)
from hydra.report.row_context import RowContext, RowWarning, losses_by_rate
from hydra.report.send_warnings import (
    BatchNotFilled,
    PublisherStalled,
    PublisherThrottled,
    RateMissed,
    SendsRefused,
    SendsUnanswered,
    StoppedEarly,
)
from hydra.report.slow_client_warnings import SlowClientsWithoutEffect
from hydra.report.steadiness_warnings import NotJudged, UnsteadyRow
from hydra.sweep import Row, kind_of

OF_STATUS: Final[Sequence[type[RowWarning]]] = (
    RowSkipped,
    RowFailed,
    RowPartial,
    StepRetried,
    PartialRepeats,
)
"""Something is missing in a row."""
OF_FIGURES: Final[Sequence[type[RowWarning]]] = (
    LossInterval,
    MessagesLost,
    Undrained,
    OutcomeUnknown,
    GroupOutcomeUnknown,
    BacklogAtEnd,
    LateMessages,
    UnsteadyRow,
    SubscribersWithoutReport,
    NotLetIn,
    NeverBack,
    LostBySilence,
    RateMissed,
    BatchNotFilled,
    NotJudged,
    StoppedEarly,
    SendsRefused,
    SendsUnanswered,
    PublisherThrottled,
    PublisherStalled,
    ConnectionsLost,
    HostBusy,
    HostShared,
    RowDisturbed,
    GeneratorLimited,
    SlowClientsWithoutEffect,
)
"""Something limits what the figures of a row mean."""


def warnings_of(row: Row, scenario: Scenario, rows: Sequence[Row] = ()) -> list[HydraWarning]:
    """The warnings of a row.

    Args:
        row: the row.
        scenario: the scenario of the run.
        rows: all rows of the run.
    """
    return _warnings(RowContext(row, scenario, losses_by_rate(scenario, rows)))


def warnings_of_rows(scenario: Scenario, rows: Sequence[Row]) -> list[list[HydraWarning]]:
    """The warnings of each row of a run."""
    losses = losses_by_rate(scenario, rows)
    return [_warnings(RowContext(row, scenario, losses)) for row in rows]


def _warnings(about: RowContext) -> list[HydraWarning]:
    kind = kind_of(about.scenario)
    return [*_found(about, OF_STATUS), *kind.warnings(about.row), *_found(about, OF_FIGURES)]


def _found(about: RowContext, kinds: Iterable[type[RowWarning]]) -> list[HydraWarning]:
    return [warning for kind in kinds for warning in kind.found_in(about)]
