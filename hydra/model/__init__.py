"""The nouns of Hydra as frozen dataclasses. Standard library only.

Invariants live in ``__post_init__`` and raise ``ValueError`` with a text that says what would be right, so
that whoever builds a noun (the configuration loader, a test, a sweep) gets the same refusal.
"""

from hydra.model.base import (
    HEADER_BYTES,
    LATENCY_DIGITS,
    LATENCY_HIGHEST_US,
    LATENCY_LOWEST_US,
    Figure,
    GroupRole,
    Rate,
    Role,
    number,
)
from hydra.model.cluster import (
    Agent,
    ClusterSpec,
    Constraint,
    Demand,
    Group,
    GroupEvent,
    GroupState,
    Launch,
    Operator,
    Resources,
)
from hydra.model.reports import (
    LAG_BINS,
    AgentClock,
    DrainEnd,
    Histogram,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    SequenceRange,
    SubscriberReport,
)
from hydra.model.scenario import NativeSpec, RoleSpec, Scenario, ServerSpec, TableKind
from hydra.model.settings import SHARED, Payload, Settings, SharedSettings, shared_of, value_of, with_values
from hydra.model.step import Cohort, CohortKind, StepPlan, StepResult, StepStatus
from hydra.model.sweep import LEAST_TARGET, Point, SearchSeries, SearchSpec, SweepSpec

__all__ = [
    "HEADER_BYTES",
    "LAG_BINS",
    "LATENCY_DIGITS",
    "LATENCY_HIGHEST_US",
    "LATENCY_LOWEST_US",
    "LEAST_TARGET",
    "SHARED",
    "Agent",
    "AgentClock",
    "ClusterSpec",
    "Cohort",
    "CohortKind",
    "Constraint",
    "Demand",
    "DrainEnd",
    "Figure",
    "Group",
    "GroupEvent",
    "GroupRole",
    "GroupState",
    "Histogram",
    "Launch",
    "LedgerCounts",
    "NativeSpec",
    "Operator",
    "Payload",
    "Point",
    "ProcessUsage",
    "PublisherReport",
    "Rate",
    "Resources",
    "Role",
    "RoleSpec",
    "Scenario",
    "SearchSeries",
    "SearchSpec",
    "SequenceRange",
    "ServerSpec",
    "Settings",
    "SharedSettings",
    "StepPlan",
    "StepResult",
    "StepStatus",
    "SubscriberReport",
    "SweepSpec",
    "TableKind",
    "number",
    "shared_of",
    "value_of",
    "with_values",
]
