"""What the question scenarios share: windows short enough to ask often, and few words.

The answers with their numbers are in docs/findings.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_drainwatch import App, Behavior, Flows, Scenario, Trial
from pytest_drainwatch.core.interval import NS_PER_S, Bounds
from pytest_drainwatch.core.probing.document import NewConnections, ObservedFailing
from pytest_drainwatch.core.scenario import Accept
from pytest_drainwatch.core.stall import reaches_measured
from pytest_drainwatch.render.terminal import duration

FEW = Flows(tcp=4, udp=4)
# Goes on accepting while it drains: what most servers do that are told to finish first.
LISTENING = App(accept_on_drain=Accept.KEEP, drain_ns=5 * NS_PER_S, grace_period_s=10)
EXITING = App(behavior=Behavior.EXIT_NOW, grace_period_s=10)
# How late a busy two-core machine may carry out what Kubernetes promises.
LATE_NS = 1 * NS_PER_S


def asked(name: str, app: App, **fields: object) -> Scenario:
    """A short scenario; its settle time is longer than kube-proxy's minSyncPeriod."""
    base = Scenario(app=app, flows=FEW, settle_ns=2 * NS_PER_S, name=name)
    return replace(base, **fields)  # type: ignore[arg-type]


def told(found: NewConnections) -> str:
    """What became of the new connections, for a failing assertion."""
    return (
        f"{found.failed} of {found.attempts} new connections failed {dict(found.results)}; "
        f"failing {duration(found.observed_failing.lasts_ns) if found.observed_failing else '-'}"
    )


def failing(found: NewConnections) -> ObservedFailing:
    """The window in which new connections failed, of a trial in which some must have."""
    assert found.observed_failing is not None, told(found)
    return found.observed_failing


def window_s(trial: Trial) -> float:
    """For how long, about, new connections were led to each terminated pod after its end.

    An attempt in every interval, and one of as many as there are endpoints meets that pod.
    """
    found, app = trial.new_connections, trial.scenario.app
    failed_s = sum(part.failed * (part.interval_ns or 0) for part in found.by_interval) / NS_PER_S
    pods = len(trial.report.trial.trigger.targets)
    return failed_s * app.replicas / pods


def undisturbed(trials: Iterable[Trial]) -> bool:
    """Whether the machine was quiet enough for what failed to be the trigger's doing."""
    for trial in trials:
        assert not trial.report.trial.degraded, f"{trial.scenario.id}: too busy to tell"
    return True


def unstalled(trial: Trial) -> bool:
    """Whether the instrument itself ran throughout: from the settle time on, until the end."""
    settle_ns = trial.scenario.settle_ns
    found = [s for s in trial.report.trial.stalls if reaches_measured(s.at_ns, settle_ns)]
    assert not found, (
        f"{len(found)} stall(s), such as: {found[0].detail}, {duration(found[0].at_ns)} after the "
        "trigger. This machine carries fewer trials at once: lower -n"
    )
    return True


def known(value: Bounds | None) -> Bounds:
    """A measured value's bounds."""
    assert value is not None, "not measured; the report's notes say why"
    return value
