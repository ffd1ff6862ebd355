"""Recommended and present values, tried in the simulator: what the model says of both.

The application's own wait is simulated as part of the hook: it accepts during both.
"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.advisor.annotations import balancer_of
from pytest_drainwatch.core.advisor.hook import lasts
from pytest_drainwatch.core.advisor.recommend import Recommendation
from pytest_drainwatch.core.advisor.roles import application
from pytest_drainwatch.core.advisor.shown import seconds
from pytest_drainwatch.core.advisor.subject import Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario.values import ScenarioError
from pytest_drainwatch.core.simulation.inputs import LONGEST_NS, Inputs
from pytest_drainwatch.core.simulation.requests import POOLED_TAKES_NS
from pytest_drainwatch.core.simulation.run import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Simulated requests that failed, of all; None where a value is not known."""

    failed: int | None
    total: int | None
    # Why it was not simulated; empty where it was.
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """The recommended values, and those of the manifest."""

    recommended: Tried
    present: Tried


def both(subject: Subject, told: Told, recommended: Recommendation) -> Both | None:
    """None where nothing is recommended, or nobody is sent to the workload."""
    pre_stop_s, grace_s = recommended.pre_stop_s, recommended.grace_s
    if pre_stop_s is None or grace_s is None or not recommended.routes:
        return None
    hook = lasts(application(subject).pre_stop)
    drain_ns = next(line.ns for line in recommended.parts if line.name == "drain")
    return Both(
        recommended=_tried(
            subject, told, recommended, pre_stop_s * NS_PER_S, grace_s, drain_ns=drain_ns
        ),
        present=_tried(
            subject,
            told,
            recommended,
            hook.ns,
            subject.grace_s,
            drain_ns=drain_ns if told.drained_ns is None else told.drained_ns,
        )
        if hook.exact and hook.ns is not None
        else Tried(failed=None, total=None, note="how long its hook takes is not known"),
    )


def _tried(
    subject: Subject,
    told: Told,
    recommended: Recommendation,
    hook_ns: int,
    grace_s: int,
    *,
    drain_ns: int,
) -> Tried:
    balancer = balancer_of(subject, told)
    known = balancer.sends_for if balancer is not None else None
    inside = [
        line.ns for line in recommended.routes if balancer is None or line.name != balancer.kind
    ]
    longest_ns = told.longest_request_ns
    if longest_ns is None:
        longest_ns = next(line.ns for line in recommended.parts if line.name == "drain")
    if longest_ns < POOLED_TAKES_NS:
        takes = seconds(POOLED_TAKES_NS)
        note = f"requests of its pooled client take {takes}; give --longest-request of that or more"
        return Tried(failed=None, total=None, note=note)
    try:
        run = simulate(
            Inputs(
                grace_period_s=grace_s,
                pre_stop_ns=hook_ns + (told.wait_ns or 0),
                drain_ns=drain_ns,
                propagation_ns=max(inside, default=0),
                load_balancer_ns=known[0] if known is not None else None,
                longest_ns=longest_ns,
                slow_ns=LONGEST_NS,
            )
        )
    except ScenarioError as error:
        return Tried(failed=None, total=None, note=str(error))
    return Tried(failed=len(run.failed), total=len(run.requests))
