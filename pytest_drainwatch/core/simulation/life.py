"""The life of a pod that was deleted: when its hook, its listener and its process end, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.pod.kubelet import kill_after, sigterm_after
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.inputs import Inputs


class Ending(StrEnum):
    """Why the process ended."""

    DRAINED = "drained"
    DRAIN_DEADLINE = "drain-deadline"
    EXITED = "exited"
    SIGKILL = "sigkill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """What is fixed before anybody asks for anything; instants since the deletion.

    ``hook_cut``: the hook was still running at the end of the grace period. ``closes_ns`` is when
    a draining app closes its listener, ``deadline_ns`` when it cuts what is left; None: it does
    not drain, or SIGKILL comes first. ``gone_ns``: no process lives longer than that.
    """

    begins_ns: int
    hook_cut: bool
    sigterm_ns: int
    closes_ns: int | None
    deadline_ns: int | None
    kill_ns: int
    gone_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The pod's instants since the deletion; None: that does not happen.

    ``listener_closed_ns`` is from when on new connections are refused, ``kill_due_ns`` when
    SIGKILL comes to a process that still lives, ``exit_ns`` when the process ends.
    """

    begins_ns: int
    hook_ends_ns: int | None
    hook_cut: bool
    sigterm_ns: int
    listener_closed_ns: int
    deadline_ns: int | None
    kill_due_ns: int
    exit_ns: int
    ending: Ending


def shutdown(inputs: Inputs) -> Shutdown:
    """The kubelet's part, and when the app reacts."""
    begins_ns = inputs.kubelet_ns
    hook_ns = sigterm_after(inputs.grace_period_s, inputs.pre_stop_ns)
    kill_ns = begins_ns + kill_after(inputs.grace_period_s, inputs.pre_stop_ns)
    sigterm_ns = begins_ns + hook_ns
    acts_ns = sigterm_ns + inputs.handler_ns
    drains = inputs.behavior is Behavior.DRAIN and acts_ns < kill_ns
    return Shutdown(
        begins_ns=begins_ns,
        hook_cut=hook_ns < inputs.pre_stop_ns,
        sigterm_ns=sigterm_ns,
        closes_ns=acts_ns if drains else None,
        deadline_ns=acts_ns + inputs.drain_ns if drains else None,
        kill_ns=kill_ns,
        gone_ns=kill_ns + inputs.kill_ns,
    )


def life(inputs: Inputs, fixed: Shutdown, idle_ns: int) -> Life:
    """All of it; ``idle_ns`` is when a draining app has no work left (as if nothing cut it)."""
    exit_ns, ending = _end(inputs, fixed, idle_ns)
    closed_ns = exit_ns if fixed.closes_ns is None else fixed.closes_ns
    return Life(
        begins_ns=fixed.begins_ns,
        hook_ends_ns=fixed.sigterm_ns if inputs.pre_stop_ns else None,
        hook_cut=fixed.hook_cut,
        sigterm_ns=fixed.sigterm_ns,
        listener_closed_ns=closed_ns,
        deadline_ns=fixed.deadline_ns,
        kill_due_ns=fixed.kill_ns,
        exit_ns=exit_ns,
        ending=ending,
    )


def _end(inputs: Inputs, fixed: Shutdown, idle_ns: int) -> tuple[int, Ending]:
    acts_ns = fixed.sigterm_ns + inputs.handler_ns
    if inputs.behavior is Behavior.EXIT_NOW and acts_ns < fixed.kill_ns:
        return acts_ns, Ending.EXITED
    if fixed.deadline_ns is not None:
        if idle_ns <= min(fixed.deadline_ns, fixed.kill_ns):
            return idle_ns, Ending.DRAINED
        if fixed.deadline_ns <= fixed.kill_ns:
            return fixed.deadline_ns, Ending.DRAIN_DEADLINE
    return fixed.gone_ns, Ending.SIGKILL
