"""A trial in two to five sentences, for somebody who has never seen this tool."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.document import Integrity, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.render.page import fared, tried
from pytest_drainwatch.render.page.done import done
from pytest_drainwatch.render.page.failing import KINDS, named
from pytest_drainwatch.render.page.hurt import hurt
from pytest_drainwatch.render.page.pods import Pods


def says(trial: TrialReport, pods: Pods) -> list[str]:
    """What was done, what became of connections, what was not measured.

    Where nobody was hurt that comes first; who was is said by :mod:`.hurt`.
    """
    unknown = "; ".join(_unknown(trial))
    missing = f"Not measured: {unknown}." if unknown else ""
    nobody = "Nobody was hurt, as far as this trial looked." if hurt(trial) is None else ""
    parts = [
        " ".join(filter(None, [nobody, missing])) if nobody else "",
        done(trial, pods),
        " ".join(filter(None, [fared.tcp(trial), fared.others(trial)])),
        fared.udp(trial, pods),
        " ".join(filter(None, [tried.new_connections(trial, pods), tried.requests(trial)])),
        "" if nobody else missing,
    ]
    return [part for part in parts if part]


def _unknown(trial: TrialReport) -> Iterator[str]:
    """What this trial says nothing about."""
    if trial.integrity is Integrity.FOREIGN_RESPONDER:
        yield "the workload alone, for somebody who is not of it answered"
    lacking = sum(flow.outcome is Outcome.NOT_MEASURED for flow in trial.flows)
    if lacking:
        yield f"the fate of {lacking:,} of {len(trial.flows):,} flows"
    unheard = sum(f.role is None and f.outcome is not Outcome.NOT_MEASURED for f in trial.flows)
    if unheard:
        yield f"whose flows {unheard:,} were"
    if not trial.new_connections and not any(
        kind.kind is LaneKind.NEW for kind in (trial.requests.kinds if trial.requests else ())
    ):
        yield "new connections (none were tried)"
    for prober in trial.new_connections:
        if not prober.attempts:
            yield f"{named(prober, trial.new_connections)} (not one could be judged)"
        elif prober.not_judged or prober.lost:
            count = prober.not_judged + (prober.lost or 0)
            yield f"{count:,} {named(prober, trial.new_connections)}"
    untold = sum(
        flow.proto is Proto.UDP
        and flow.mechanism is Mechanism.REHOMED
        and (flow.continuity is None or flow.continuity.lost is None)
        for flow in trial.flows
    )
    if untold:
        yield f"what {untold:,} UDP flows lost on their way to another pod"
    for kind in trial.requests.kinds if trial.requests else ():
        if not kind.attempts:
            yield KINDS[kind.kind]
        elif kind.not_judged:
            yield f"{kind.not_judged:,} {KINDS[kind.kind]}"
    ends = trial.trigger.verb not in ("none", "container-kill")
    if ends and trial.summary.trigger_to_sigterm_ns is None:
        yield "when SIGTERM came"
