"""The interface of a system: its description (``SystemSpec``), and its work for a run (``System``)."""

from hydra.measure.column import Column, ReportColumn
from hydra.system.interface import Program, ServerCluster, Servers, System, Waiting, programs, wait_alone
from hydra.system.specification import (
    Footprint,
    Greeting,
    QueueCapacity,
    ReadAhead,
    Reference,
    Refusal,
    ServerFootprint,
    SystemSpec,
)
