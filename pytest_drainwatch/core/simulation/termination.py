"""The end of a pod: from its deletion to the exit of its process, by the kubelet's rule.

All instants are nanoseconds since the trigger.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.pod.kubelet import remaining_after, sigterm_after
from pytest_drainwatch.core.scenario import Accept, App, Behavior, Readiness
from pytest_drainwatch.core.simulation.latencies import Latencies

SIGKILL_CODE = 137


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """What happens to a pod of the probe that was told to end; None: that does not happen.

    ``handled_ns`` is when the probe has acted on SIGTERM, ``unready_ns`` when its readiness
    probe is answered 503, ``closed_ns`` when it accepts no new TCP connection any more,
    ``deadline_ns`` the end of its drain window (None: it is killed, or has nobody left, before),
    ``ended_ns`` when held connections end, and
    ``exit_ns`` when the process does. ``network_ns``: from then on its kernel answers nobody.
    """

    deletion_ns: int
    hook_ns: int
    sigterm_ns: int
    handled_ns: int
    unready_ns: int | None
    closed_ns: int | None
    deadline_ns: int | None
    ended_ns: int
    exit_ns: int
    network_ns: int
    killed: bool

    @property
    def exit_code(self) -> int:
        """What the container's status says."""
        return SIGKILL_CODE if self.killed else 0

    @property
    def accepts_until_ns(self) -> int:
        """When new TCP connections are accepted no more."""
        return self.exit_ns if self.closed_ns is None else min(self.closed_ns, self.exit_ns)


def termination(app: App, took: Latencies) -> Termination:
    """How the probe ends as ``app`` describes it."""
    asked_ns = app.pre_stop.lasts_ns if app.pre_stop else 0
    hook_ns = sigterm_after(app.grace_period_s, asked_ns)
    deletion_ns = took.deletion_ns
    sigterm_ns = deletion_ns + took.sigterm_ns + hook_ns
    handled_ns = sigterm_ns + took.handling_ns
    killed_ns = sigterm_ns + remaining_after(app.grace_period_s, hook_ns) + took.kill_ns
    deadline_ns: int | None = None
    if app.behavior is Behavior.DRAIN:
        deadline_ns = handled_ns + app.drain_ns
        # Answers that are under way are waited for.
        ended_ns = deadline_ns + took.farewell_ns + app.response_delay_ns
        exit_ns = max(ended_ns, deadline_ns + took.lingering_ns + app.response_delay_ns)
    elif app.behavior is Behavior.EXIT_NOW:
        ended_ns = sigterm_ns + took.farewell_ns
        exit_ns = sigterm_ns + took.exit_ns
    else:
        ended_ns = exit_ns = killed_ns
    killed = app.behavior is Behavior.IGNORE or exit_ns > killed_ns
    if killed:
        ended_ns, exit_ns = min(ended_ns, killed_ns), killed_ns
        if deadline_ns is not None and deadline_ns >= killed_ns:
            deadline_ns = None
    drains = app.behavior is Behavior.DRAIN and handled_ns < exit_ns
    fails = drains and app.readiness_on_drain is Readiness.FAIL
    closes = drains and app.accept_on_drain is Accept.CLOSE
    return Termination(
        deletion_ns=deletion_ns,
        hook_ns=hook_ns,
        sigterm_ns=sigterm_ns,
        handled_ns=handled_ns,
        unready_ns=handled_ns if fails else None,
        closed_ns=handled_ns if closes else deadline_ns,
        deadline_ns=deadline_ns,
        ended_ns=ended_ns,
        exit_ns=exit_ns,
        network_ns=exit_ns + took.network_ns,
        killed=killed,
    )
