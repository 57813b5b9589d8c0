"""Where everything that happens in a run passes: it is kept with the run, and warnings are shown as well."""

from __future__ import annotations

from collections.abc import Callable

from hydra.events.event import Event
from hydra.events.warnings import HydraWarning


class Journal:
    """Takes the events of a run.

    Args:
        keep: stores an event with the epoch of the step in which it happened.
        show: shows an event to the user.

    Attributes:
        epoch: the step that is being measured; None between steps.
    """

    def __init__(self, keep: Callable[[Event, int | None], None], show: Callable[[Event], None]) -> None:
        self.epoch: int | None = None
        self._keep = keep
        self._show = show

    def note(self, event: Event) -> None:
        """Keeps an event that happened now."""
        self._keep(event, self.epoch)
        if isinstance(event, HydraWarning):
            self._show(event)
