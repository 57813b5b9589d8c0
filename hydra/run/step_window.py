"""The window of a step, from its start to its end, which may be early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.measure.loss_pattern import sending_s
from hydra.model import StepPlan
from hydra.monitor.step_progress import Tick, sending
from hydra.run.command_exchange import CommandExchange
from hydra.run.context import RunContext
from hydra.run.deployment import Deployment
from hydra.run.step_servers import ServerCounters, ServerRestarts
from hydra.run.step_start import StartedStep
from hydra.wire.messages import Progress

TICK_NS: Final = 250_000_000


def run_window(
    run: RunContext,
    deployment: Deployment,
    asker: CommandExchange,
    counters: ServerCounters,
    plan: StepPlan,
    begun: StartedStep,
    tick: Tick,
    restarts: ServerRestarts,
) -> tuple[int, int]:
    """Waits for the end of the window; returns its begin and end (ns on the step's clock).

    The window ends early when a publisher reports an error, or when all publishers have sent all messages of the step;
    at a numeric rate not before the time of these messages (n messages span n − 1 intervals, but take n).

    Raises:
        StepError: a publisher died, or the system failed.
    """
    answers = run.controller.roster.answers
    start_ns, stop_ns = begun.start.start_at_ns, begun.start.stop_at_ns
    next_tick_ns = start_ns
    began = False

    def now_ns() -> int:
        return begun.clocks.step_ns(run.clock_ns())

    def over() -> bool:
        nonlocal next_tick_ns, began
        deployment.watch()
        asker.require_publishers()
        asker.check_system()
        at_ns = now_ns()
        if at_ns >= next_tick_ns:
            if not began:
                began = True
                counters.sample()
            next_tick_ns = at_ns + TICK_NS
            restarts.look((at_ns - start_ns) / 1e9, now_ns)
            run.system.during(plan.settings, (at_ns - start_ns) / 1e9, plan.duration_s)
            tick(sending(plan, answers.progress, deployment.publishers, deployment.subscribers, start_ns, at_ns))
        # A publisher that cannot continue reports an error; its messages until then are measured.
        failed = any(p in answers.errors for p in deployment.publishers)
        done_ns = window_end_ns(plan, answers.progress, deployment.publishers, start_ns)
        return at_ns >= stop_ns or failed or (done_ns is not None and at_ns >= done_ns)

    while not over():
        # Waits for the next message or the next tick, without a wait of fixed length.
        done_ns = window_end_ns(plan, answers.progress, deployment.publishers, start_ns)
        run.controller.poll(max(min(next_tick_ns, stop_ns, done_ns or stop_ns) - now_ns(), 0) / 1e9)
    counters.sample()
    done_ns = window_end_ns(plan, answers.progress, deployment.publishers, start_ns)
    end_ns = now_ns() if done_ns is None else max(done_ns, start_ns + 1)
    return start_ns, min(stop_ns, end_ns)


def window_end_ns(plan: StepPlan, progress: Mapping[int, Progress], publishers: range, start_ns: int) -> int | None:
    """The time at which a window may end early; None: not all publishers have sent all messages of the step."""
    done_ns = _all_sent_ns(plan, progress, publishers)
    if done_ns is None or plan.settings.rate == "max":
        return done_ns
    return max(done_ns, start_ns + round(sending_s(plan) * 1e9))


def _all_sent_ns(plan: StepPlan, progress: Mapping[int, Progress], publishers: range) -> int | None:
    """The time at which the last publisher had sent all messages of the step; None: not all publishers have."""
    most = plan.settings.messages
    if most is None or any(p not in progress or progress[p].messages < most for p in publishers):
        return None
    return max(progress[p].time_ns for p in publishers)
