"""The exports of a running command's figures, to Prometheus and OpenTelemetry, as its flags ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from hydra.events.value_formatting import duration
from hydra.events.warnings import MetricsRefused
from hydra.monitor.run_snapshot import SnapshotUpdater
from hydra.options.flag_types import missing
from hydra.store.redaction import Redactor

if TYPE_CHECKING:
    from hydra.monitor.metric_families import MetricFamily
    from hydra.monitor.otlp import OtlpPusher
    from hydra.monitor.prometheus import PrometheusEndpoint

_KEPT_RUNS: Final = 20
"""The most runs of one command whose sums are exported, since an experiment may have a hundred."""
_SHORT_S: Final = 2.0
"""Only a longer wait for the last read has a line of its own."""
_OWN: Final = ("127.", "localhost", "::1")
"""The beginnings of the addresses that only this host reaches."""


class Exports:
    """The open exports of a command, and the snapshots that they read.

    Attributes:
        keeper: the snapshot updater of the present or last run.
    """

    def __init__(self) -> None:
        self.keeper = SnapshotUpdater("", "")
        self._keepers: dict[str, SnapshotUpdater] = {}
        self._prometheus: PrometheusEndpoint | None = None
        self._otlp: OtlpPusher | None = None
        self._url = ""
        self._quiet = False
        self._warned = self._ended_well = False

    @property
    def are_read(self) -> bool:
        """Whether an export is open."""
        return self._prometheus is not None or self._otlp is not None

    def families(self) -> list[MetricFamily]:
        """The present metrics; other threads call this."""
        from hydra.monitor.metric_families import families

        return families([keeper.snapshot for keeper in self._keepers.values()])

    def begin(self, run: str, system: str) -> None:
        """Starts a run, or its next turn, whose figures are added to those of its earlier turns."""
        self.keeper = self._keepers.get(run) or SnapshotUpdater(run, system)
        others = [(name, keeper) for name, keeper in self._keepers.items() if name != run]
        # Replaced as a whole: threads read it.
        self._keepers = {**dict(others[1 - _KEPT_RUNS :]), run: self.keeper}
        self._ended_well = False

    def end(self, *, well: bool) -> None:
        """Ends the run; if it ended ``well``, the command waits until its last figures are read."""
        self.keeper.run_ended()
        self._ended_well = well

    def warnings(self) -> Sequence[MetricsRefused]:
        """The warnings of exports that failed; each is returned once."""
        if self._warned or self._otlp is None or not self._otlp.failed:
            return ()
        self._warned = True
        return (MetricsRefused(self._url),)

    def open(self, flags: Mapping[str, Any]) -> None:
        """Opens the exports that a command's flags ask for, until the command ends.

        Args:
            flags: the flags of ``options.run_flags``.

        Raises:
            UsageError: this host cannot listen at the address.
            MissingDependencyError: a library is not installed.
        """
        listening, url, self._quiet = flags["prometheus"], flags["otlp"], flags["quiet"]
        if listening is not None or url is not None:
            click.get_current_context().call_on_close(self._close)
        if listening is not None:
            self._serve(*listening)
        if url is not None:
            self._push(url)

    def _serve(self, host: str, port: int) -> None:
        from hydra.monitor.prometheus import PrometheusEndpoint

        self._prometheus = PrometheusEndpoint(host, port, self.families)
        # This line is the only place that shows a port that the system chose.
        if not self._quiet or port == 0:
            whom = "this machine only" if host.startswith(_OWN) else "any host that reaches it, without a password"
            _notify(f"metrics at {self._prometheus.url} ({whom})")

    def _push(self, url: str) -> None:
        try:
            from hydra.monitor.otlp import OtlpPusher
        except ImportError as e:
            raise missing("--otlp", e.name) from e
        self._url = url
        self._otlp = OtlpPusher(url, self.families)

    def _close(self) -> None:
        # The last figures are exported before the exports close.
        try:
            if self._prometheus is not None and self._ended_well:
                with contextlib.suppress(KeyboardInterrupt):
                    self._await_last_read(self._prometheus)
        finally:
            if self._prometheus is not None:
                self._prometheus.close()
            if self._otlp is not None:
                self._otlp.close()
                for warning in self.warnings():
                    _notify(f"warning: {Redactor(()).text(str(warning))}")

    def _await_last_read(self, prometheus: PrometheusEndpoint) -> None:
        wait_s = prometheus.wait_s()
        if wait_s > _SHORT_S and not self._quiet:
            _notify(f"waiting up to {duration(wait_s)} until the last figures are read; Ctrl-C ends the wait")
        if wait_s:
            prometheus.await_read(wait_s)


def _notify(text: str) -> None:
    # A line that cannot be written does not end the command.
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
