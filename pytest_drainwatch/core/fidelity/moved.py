"""When kube-proxy led clients to the replacement, as a trial's clients saw it."""

from __future__ import annotations

from pytest_drainwatch.core.fidelity.trial import Trial
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.udp.continuity import PhaseKind


def moved_ns(trial: Trial) -> int | None:
    """Since when new TCP connections that failed go to the replacement, since the trigger.

    Halfway between the last attempt that failed and the first of those that succeeded from then
    on; None where none failed, for then a report does not say who answered which.
    """
    ready = trial.instant("endpointslice_ready_true", trial.newcomers)
    if ready is None:
        return None
    probers = [each for each in trial.report.trial.new_connections if each.proto is Proto.TCP]
    if len(probers) != 1 or not probers[0].failed or not probers[0].runs:
        return None
    last, interval_ns = probers[0].runs[-1], probers[0].interval_ns
    if last.result != Result.ANSWERED or interval_ns is None or last.at_ns[0] < ready:
        return None
    return last.at_ns[0] - interval_ns // 2


def udp_moved_ns(trial: Trial) -> int | None:
    """Since when held UDP flows do: kube-proxy deletes their conntrack entries at once.

    So it lies between each flow's last datagram that went elsewhere and the first that the
    replacement answered, and halfway between the bounds of all; None unless all were led there.
    """
    flows = [flow for flow in trial.report.trial.flows if flow.proto is Proto.UDP]
    begins = [
        phase.begins_ns
        for flow in flows
        for phase in (flow.continuity.phases if flow.continuity else ())
        if phase.kind is PhaseKind.REHOMED
    ]
    if not begins or len(begins) != len(flows):
        return None
    lo, hi = max(begin[0] for begin in begins), min(begin[1] for begin in begins)
    return (lo + hi) // 2 if lo <= hi else hi


def sync_ns(trial: Trial) -> int | None:
    """How long one sync of kube-proxy takes until its rules hold.

    The first begins when the endpoint is not ready, each later one a minSyncPeriod after the
    end of the one before, to which the cleanup of conntrack belongs (syncProxyRules and its
    BoundedFrequencyRunner, 1.34 and 1.37). As many whole periods as fit were waited for: what
    is left is as many cleanups, and one sync more than that. But where the last one would have
    begun before the replacement was Ready, it was that which it began with.

    Of the cleanups only the last one is seen. Where it was longer than the others too little is
    left, even less than nothing; that is kept, for a median over values of which some were
    dropped would be too long.
    """
    moved, udp = moved_ns(trial), udp_moved_ns(trial)
    begun = trial.instant("endpointslice_ready_false", trial.targets)
    ready = trial.instant("endpointslice_ready_true", trial.newcomers)
    period_ms = trial.report.environment.min_sync_period_ms
    if moved is None or udp is None or begun is None or ready is None or period_ms is None:
        return None
    took_ns, period_ns = moved - begun, period_ms * NS_PER_MS
    waited = max(0, took_ns // period_ns) if period_ns else 0
    found = (took_ns - waited * (period_ns + udp - moved)) // (waited + 1)
    return moved - ready if moved - found < ready else found
