"""The fitted latencies as inputs of ``drainwatch simulate``, which asks for fewer of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_drainwatch.core.fidelity.fit import fit
from pytest_drainwatch.core.fidelity.trial import Trial
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.latencies import Latencies

# Figures of a command that people read: to a tenth of a ms.
STEP_NS = NS_PER_MS // 10


def inputs_of(took: Latencies, min_sync_period_ms: int) -> Inputs:
    """A pod's end on that cluster, with its one node; all else is as in the defaults.

    ``propagation_ns`` is the worst case: kube-proxy had just begun a sync when the endpoint
    changed, so it waits for that one's end and a minSyncPeriod before it begins again.
    """
    told_ns = took.deletion_ns + took.terminating_ns
    before_ns = took.sync_ns + took.conntrack_ns + min_sync_period_ms * NS_PER_MS
    return Inputs(
        nodes=1,
        propagation_ns=_rounded(told_ns + before_ns + took.sync_ns),
        kubelet_ns=_rounded(took.deletion_ns + took.sigterm_ns),
        handler_ns=_rounded(took.handling_ns),
        kill_ns=_rounded(took.kill_ns),
    )


def inputs_like(trials: Sequence[Trial]) -> Inputs | None:
    """The same by the medians of all these trials; None: minSyncPeriod is not known."""
    first = trials[0]
    period_ms = first.report.environment.min_sync_period_ms
    if period_ms is None:
        return None
    anything = replace(first.scenario, name="no scenario of these")
    return inputs_of(fit(trials, anything).latencies, period_ms)


def _rounded(ns: int) -> int:
    return (ns + STEP_NS // 2) // STEP_NS * STEP_NS
