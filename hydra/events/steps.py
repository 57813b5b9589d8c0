"""What happens in a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hydra.events.event import Event, Level
from hydra.events.formatting import number
from hydra.model import Figure, StepPlan


class StartUnacknowledged(Event):
    """Clients had not acknowledged a step's start in time: the step begins anew under the next epoch."""

    kind = "start"
    level = Level.NOTE
    summary = "steps that were begun anew, because clients had not acknowledged the start in time"
    template = "epoch {epoch}: not acknowledged in time by {missing:ids}"
    epoch: int
    missing: Iterable[int]


class WindowOpened(Event):
    """Everybody knows when a step's window begins."""

    kind = "window"
    template = "epoch {epoch} runs"
    epoch: int


class PhasesTimed(Event):
    """How long each part of a step took, in the order of their ends."""

    kind = "phases"
    epoch: int
    took_s: Sequence[tuple[str, float]]

    @property
    def text(self) -> str:
        return f"epoch {self.epoch}: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in self.took_s)


class StepStored(Event):
    """A step's figures were computed and committed."""

    kind = "stored"
    template = "epoch {epoch}: {took_s:.3f} s"
    epoch: int
    took_s: float


class StepMeasured(Event):
    """A step is done; ``position`` tells it from the others, such as ``step 3 of 6: 30 clients, 1,000/s``."""

    kind = "step"
    position: str
    plan: StepPlan
    figures: Mapping[str, Figure]

    @property
    def text(self) -> str:
        received = (
            ("Rx", "avg_rx_rate_pps", "/s"),
            ("aggregate", "aggregate_pps", "/s"),
            ("loss", "client_loss_pct", " %"),
        )
        shown = (("Tx", "avg_tx_rate_pps", "/s"), *(received if self.plan.clients else ()))
        told = ", ".join(f"{name} {number(self.figures.get(column))}{unit}" for name, column, unit in shown)
        return f"{self.position}: {told}"
