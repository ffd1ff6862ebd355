"""The trace of a simulated run: what happens in which order, and what fails first, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.life import Ending
from pytest_drainwatch.core.simulation.requests import Cause, Outcome, Request
from pytest_drainwatch.core.simulation.run import Simulated
from pytest_drainwatch.core.simulation.words import counted, named, seconds, when


class Happening(StrEnum):
    """What a step of the trace is about."""

    DELETED = "deleted"
    HOOK_BEGINS = "hook-begins"
    HOOK_ENDS = "hook-ends"
    HOOK_CUT = "hook-cut"
    SIGTERM = "sigterm"
    LISTENER_CLOSES = "listener-closes"
    ROUTE_ENDS = "route-ends"
    ROUTE_ENDS_LATE = "route-ends-late"
    RETRIED = "retried"
    FAILS = "fails"
    DRAIN_DEADLINE = "drain-deadline"
    SIGKILL = "sigkill"
    EXIT = "exit"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the trace; ``at_ns`` counts from the deletion."""

    at_ns: int
    kind: Happening
    text: str


_REACTS = {
    Behavior.DRAIN: "the app is to drain",
    Behavior.EXIT_NOW: "the app is to exit at once",
    Behavior.IGNORE: "the app ignores it",
}
_WHY = {
    Cause.LISTENER_CLOSED: "refused: the listener is closed",
    Cause.PROCESS_GONE: "refused: the process is gone",
    Cause.CONNECTION_ENDED: "reset: its connection ended with the process",
    Cause.DRAIN_DEADLINE: "cut off: the drain is over",
    Cause.EXITED: "cut off: the process exits",
    Cause.SIGKILL: "cut off: SIGKILL",
}


def steps(run: Simulated) -> tuple[Step, ...]:
    """All of them in order; what belongs to one instant in the order of cause and effect."""
    found = [*_of_pod(run), *_of_routes(run), *_of_end(run), *_of_requests(run)]
    return tuple(sorted(found, key=lambda step: step.at_ns))


def _of_pod(run: Simulated) -> Iterator[Step]:
    given, life = run.inputs, run.life
    grace = seconds(given.grace_period_s * NS_PER_S)
    begins = "begins" if not life.begins_ns else f"begins {seconds(life.begins_ns)} later"
    yield Step(0, Happening.DELETED, f"The pod is deleted: its grace period of {grace} {begins}.")
    if life.hook_ends_ns is not None:
        hook = seconds(given.pre_stop_ns)
        yield Step(life.begins_ns, Happening.HOOK_BEGINS, f"The preStop hook of {hook} begins.")
        if life.hook_cut:
            text = "The preStop hook is cut off: the grace period is over."
            yield Step(life.hook_ends_ns, Happening.HOOK_CUT, text)
        else:
            yield Step(life.hook_ends_ns, Happening.HOOK_ENDS, "The preStop hook ends.")
    reacts = _REACTS[given.behavior]
    yield Step(life.sigterm_ns, Happening.SIGTERM, f"SIGTERM: {reacts}.")
    if life.deadline_ns is not None:
        idle = "are closed" if given.close_idle else "stay open"
        text = f"The listener closes; idle keep-alive connections {idle}."
        yield Step(life.listener_closed_ns, Happening.LISTENER_CLOSES, text)


def _of_routes(run: Simulated) -> Iterator[Step]:
    closed_ns = run.life.listener_closed_ns
    for route in run.routes:
        text = f"{named(route.source)} stops sending new connections here"
        if route.until_ns > closed_ns:
            late = seconds(route.until_ns - closed_ns)
            text = f"{text}, {late} after the listener closed."
            yield Step(route.until_ns, Happening.ROUTE_ENDS_LATE, text)
        else:
            yield Step(route.until_ns, Happening.ROUTE_ENDS, f"{text}.")


def _of_end(run: Simulated) -> Iterator[Step]:
    life = run.life
    text = "The process is gone."
    if life.ending is Ending.SIGKILL:
        grace_ns = run.inputs.grace_period_s * NS_PER_S
        if life.kill_due_ns - life.begins_ns > grace_ns:
            after = seconds(life.kill_due_ns - life.sigterm_ns)
            due = f"SIGKILL: {after} after SIGTERM, which the kubelet leaves at least."
        else:
            due = "SIGKILL: the grace period is over."
        yield Step(life.kill_due_ns, Happening.SIGKILL, due)
    elif life.ending is Ending.DRAIN_DEADLINE:
        drain = seconds(run.inputs.drain_ns)
        over = f"The drain of {drain} is over: what is in flight is cut off."
        yield Step(life.exit_ns, Happening.DRAIN_DEADLINE, over)
    elif life.ending is Ending.DRAINED:
        text = "The process exits: all work is done."
    else:
        text = "The process exits: what is in flight is cut off."
    yield Step(life.exit_ns, Happening.EXIT, text)


def _of_requests(run: Simulated) -> Iterator[Step]:
    """The first of each source and cause stands for all of them."""
    alike: dict[tuple[str, Cause, bool], list[Request]] = {}
    for request in run.requests:
        if request.cause is not None:
            key = (request.source, request.cause, request.failed)
            alike.setdefault(key, []).append(request)
    for (source, cause, failed), found in alike.items():
        first = found[0]
        at_ns = first.end_ns if first.outcome is Outcome.KILLED else first.start_ns
        begun = when(first.start_ns)
        rest = f"; {counted(len(found) - 1, 'other')} likewise" if len(found) > 1 else ""
        again = "" if failed else ". A retry reached another pod"
        text = f"A request of {named(source)}, begun {begun}, is {_WHY[cause]}{again}{rest}."
        yield Step(at_ns, Happening.FAILS if failed else Happening.RETRIED, text)
