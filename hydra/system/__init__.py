"""What generic code needs of a system: what it is (``SystemSpec``), and what it does for a run (``System``)."""

from hydra.measure.column import Column, ReportColumn
from hydra.system.experiment import Done, Experiment, Order, Part, Preset, View, beside, in_turn, with_published
from hydra.system.interface import Program, ServerCluster, Servers, System, Waiting, programs, wait_alone
from hydra.system.specification import Footprint, Held, Reference, Refusal, ServerFootprint, SystemSpec
