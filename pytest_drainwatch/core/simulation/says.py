"""What a simulated run comes to, in a few sentences: what fails, why, and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.simulation.life import Ending
from pytest_drainwatch.core.simulation.requests import Cause, Outcome
from pytest_drainwatch.core.simulation.run import Simulated
from pytest_drainwatch.core.simulation.words import counted, named, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Requests that failed for one cause: which sources sent them, how many, and when."""

    outcome: Outcome
    cause: Cause
    sources: tuple[str, ...]
    count: int
    first_ns: int
    last_ns: int


def failures(run: Simulated) -> tuple[Failures, ...]:
    """Those that failed, by cause, in the order of the causes."""
    return tuple(
        Failures(
            outcome=found[0].outcome,
            cause=cause,
            sources=tuple(dict.fromkeys(one.source for one in found)),
            count=len(found),
            first_ns=min(one.end_ns for one in found),
            last_ns=max(one.end_ns for one in found),
        )
        for cause in Cause
        if (found := [one for one in run.failed if one.cause is cause])
    )


def says(run: Simulated) -> tuple[str, ...]:
    """The outcome first, then a sentence for each reason."""
    failed, total = len(run.failed), len(run.requests)
    if not total:  # that none fails then says nothing of the settings
        return ("No request is sent to the pod: none shows what would become of it.", *_aside(run))
    if not failed:
        answered = "The 1 request is" if total == 1 else f"All {total} requests are"
        return (f"{answered} answered.", *_margins(run), *_aside(run))
    verb = "fails" if failed == 1 else "fail"
    return (
        f"{failed} of {counted(total, 'request')} {verb}.",
        *(_why(run, group) for group in failures(run)),
        *_remedy(run),
        *_aside(run),
    )


def _why(run: Simulated, group: Failures) -> str:
    life, count = run.life, group.count
    match group.cause:
        case Cause.LISTENER_CLOSED | Cause.PROCESS_GONE:
            return _refused(run, group)
        case Cause.CONNECTION_ENDED:
            at = seconds(life.exit_ns)
            return (
                f"{count} reset: {named(group.sources[0])} still used a connection that ended at "
                f"{at}."
            )
        case Cause.DRAIN_DEADLINE:
            return (
                f"{count} cut off: the drain of {seconds(run.inputs.drain_ns)} was over at "
                f"{seconds(life.exit_ns)}, {_missing(run, group, life.exit_ns)}."
            )
        case Cause.EXITED:
            at = seconds(life.exit_ns)
            return f"{count} cut off: at {at} the app exited on SIGTERM with requests in flight."
        case Cause.SIGKILL:
            return (
                f"{count} cut off: SIGKILL came at {seconds(life.kill_due_ns)}, "
                f"{_missing(run, group, life.kill_due_ns)}."
            )


def _refused(run: Simulated, group: Failures) -> str:
    last = max(run.routes, key=lambda route: route.until_ns)
    if group.cause is Cause.LISTENER_CLOSED:
        what, at_ns = "the listener closed", run.life.listener_closed_ns
    else:
        what, at_ns = "the process was gone", run.life.exit_ns
    late = seconds(last.until_ns - at_ns)
    return (
        f"{group.count} refused: {what} at {seconds(at_ns)}, and {named(last.source)} sent new "
        f"connections for another {late}."
    )


def covering_ns(run: Simulated) -> int | None:
    """The least preStop hook, in whole milliseconds, with which nobody would have been refused;
    None: nobody was, or no hook changes that, because it is SIGKILL that ends the process.
    """
    refused = any(one.outcome is Outcome.REFUSED for one in run.failed)
    if not refused or run.life.listener_closed_ns >= run.life.kill_due_ns:
        return None
    last_ns = max(route.until_ns for route in run.routes)
    lacks_ns = last_ns - run.inputs.kubelet_ns - run.inputs.handler_ns
    return -(-lacks_ns // NS_PER_MS) * NS_PER_MS


def _remedy(run: Simulated) -> Iterator[str]:
    hook_ns = covering_ns(run)
    if hook_ns is not None:
        hook = seconds(hook_ns)
        yield f"A preStop hook of {hook} would cover the routes, in a grace period that holds it."


def _missing(run: Simulated, group: Failures, at_ns: int) -> str:
    cut = [one for one in run.failed if one.cause is group.cause]
    needed_ns = max(one.start_ns + one.takes_ns for one in cut) - at_ns
    return f"{seconds(needed_ns)} before the last of them would have been answered"


def _margins(run: Simulated) -> Iterator[str]:
    """How far from failing it was."""
    life = run.life
    last = max(run.routes, key=lambda route: route.until_ns)
    until, spare_ns = seconds(last.until_ns), life.listener_closed_ns - last.until_ns
    if spare_ns >= 0:
        closed = f"{seconds(spare_ns)} before the listener closed"
    else:
        luck = "" if run.totals[Outcome.RETRIED] else ", by luck with no request in it"
        closed = f"{seconds(-spare_ns)} after the listener closed{luck}"
    yield f"New connections came until {until}, last from {named(last.source)}: {closed}."
    if life.ending is Ending.DRAINED:
        spare = seconds(life.kill_due_ns - life.exit_ns)
        yield f"The process exited at {seconds(life.exit_ns)}, {spare} before SIGKILL was due."


def _aside(run: Simulated) -> Iterator[str]:
    """What hurt nobody, or was meant otherwise."""
    life, total = run.life, run.totals
    if total[Outcome.RETRIED]:
        yield f"{counted(total[Outcome.RETRIED], 'request')} failed at first: a retry was answered."
    if total[Outcome.SLOW]:
        longer = seconds(run.inputs.slow_ns)
        yield f"{counted(total[Outcome.SLOW], 'request')} took longer than {longer}."
    if life.hook_cut:
        grace = seconds(life.kill_due_ns - life.sigterm_ns)
        yield f"The preStop hook did not end in time: SIGKILL follows {grace} after SIGTERM."
