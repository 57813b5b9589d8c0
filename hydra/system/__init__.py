"""What generic code needs of a system: what it is (``SystemSpec``), and what it does for a run (``System``)."""

from hydra.measure.column import Column, ReportColumn
from hydra.system.experiment import Done, Experiment, Order, Part, Preset, View, beside, in_turn, with_published
from hydra.system.interface import (
    Program,
    ServerCluster,
    Servers,
    System,
    Waiting,
    programs,
    wait_alone,
)
from hydra.system.specification import Footprint, Held, Reference, Refusal, ServerFootprint, SystemSpec

__all__ = [
    "Column",
    "Done",
    "Experiment",
    "Footprint",
    "Held",
    "Order",
    "Part",
    "Preset",
    "Program",
    "Reference",
    "Refusal",
    "ReportColumn",
    "ServerCluster",
    "ServerFootprint",
    "Servers",
    "System",
    "SystemSpec",
    "View",
    "Waiting",
    "beside",
    "in_turn",
    "programs",
    "wait_alone",
    "with_published",
]
