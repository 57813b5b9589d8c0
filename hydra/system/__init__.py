"""The interface of a system: its description (``SystemSpec``), and its work for a run (``System``)."""

from hydra.measure.column import Column, ReportColumn, SystemColumns
from hydra.system.footprints import (
    Footprint,
    Implementation,
    LogFootprint,
    ReadAhead,
    ServerFootprint,
    ServerTimes,
)
from hydra.system.interface import (
    KilledServer,
    Program,
    RunServers,
    ServerCluster,
    Servers,
    System,
    Waiting,
    programs,
    wait_alone,
)
from hydra.system.specification import (
    DeliveryRules,
    Greeting,
    Identity,
    MessageLog,
    OwnSettings,
    Published,
    QueueCapacity,
    Reference,
    Refusal,
    ScenarioResources,
    ServerKind,
    SystemEvent,
    SystemSpec,
    batch_of,
    disturbed,
    setup_part,
    undisturbed,
)
