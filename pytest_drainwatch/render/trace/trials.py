"""Reports -> a trace file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_drainwatch.core.document import Report, TrialReport
from pytest_drainwatch.core.pod.ending import EndedBy
from pytest_drainwatch.render.page import failing
from pytest_drainwatch.render.page.data import Lane as PageLane
from pytest_drainwatch.render.page.lanes import lanes as page_lanes
from pytest_drainwatch.render.page.moments import at
from pytest_drainwatch.render.page.pods import Pods, pods_of
from pytest_drainwatch.render.probing import marks as warnings
from pytest_drainwatch.render.surroundings import cluster
from pytest_drainwatch.render.terminal import simulated
from pytest_drainwatch.render.trace import alive, attempts, flows, lanes
from pytest_drainwatch.render.trace.arrows import Scene, arrows, who_reset
from pytest_drainwatch.render.trace.picture import Lane, Picture, Span, seen
from pytest_drainwatch.render.trace.writing import dumps

__all__ = ["picture", "trace"]


def trace(pictures: Iterable[Picture], made_by: Iterable[str]) -> str:
    """The file: a process a trial, in their order. ``made_by``: versions that judged them."""
    versions = sorted({f"pytest-drainwatch {version}" for version in made_by})
    return dumps(list(pictures), made_by=", ".join(versions))


def picture(report: Report, *, name: str | None = None) -> Picture:
    """One trial as lanes, arrows and counters, called ``name`` (its id)."""
    trial = report.trial
    pods = pods_of(trial)
    above: list[PageLane] = []
    instrument: list[PageLane] = []
    for lane in page_lanes(trial, pods):
        (instrument if lane["id"] == "instrument" else above).append(lane)
    ends_us = _ends(trial, [*above, *instrument])
    drawn = lanes.drawn(above, ends_us)
    blind = lanes.drawn(instrument, ends_us)
    looks = lanes.looks(trial, pods)
    kills = _kills(trial, pods)
    flow_lanes = [flows.lane(flow, pods) for flow in trial.flows]
    scene = Scene(
        trial=trial,
        marks=drawn.marks,
        kills=kills,
        looks={look.occasion: s for look, s in zip(trial.mechanism, looks.spans, strict=True)},
        ends={
            flow.id: end
            for flow, (_, end) in zip(trial.flows, flow_lanes, strict=True)
            if end is not None
        },
        reset=who_reset(trial),
    )
    environment = report.environment
    return Picture(
        name=f"{'SIMULATED ' if report.simulated else ''}{name or trial.id}",
        label=f"{'simulated ' if report.simulated else ''}{trial.trigger.verb}, "
        + cluster(
            environment.kubernetes_version,
            environment.kube_proxy_mode,
            simulated=report.simulated,
        ),
        lanes=(
            *drawn.lanes,
            Lane(name="SIGKILL", spans=tuple(kills.values())),
            looks,
            *attempts.lanes(failing.attempts(trial.new_connections, trial.requests)),
            *attempts.pooled(trial.requests),
            *(lane for lane, _ in flow_lanes),
            *blind.lanes,
            *lanes.sending(trial),
        ),
        arrows=arrows(scene),
        counts=(*alive.counts(trial.flows), *attempts.rates(trial.new_connections)),
        notes=(
            *simulated(report),
            trial.clock_note,
            *(mark.strip() for mark in warnings(trial)),
            *trial.flags,
            *drawn.notes,
            *blind.notes,
            *trial.notes,
        ),
    )


def _kills(trial: TrialReport, pods: Pods) -> dict[str, Span]:
    """When SIGKILL was due, by pod, where it came: then the grace period was over."""
    return {
        end.pod_uid: Span(
            name=f"grace period of {pods.label(end.pod_uid)} over: SIGKILL",
            kind="kubelet",
            at_us=seen(at(end.expected_kill_ns)),
            args={"about": "when the kubelet's own rule has it follow"},
        )
        for end in trial.pod_ends
        if end.expected_kill_ns is not None
        and end.ended_by in (EndedBy.SIGKILL_AT_GRACE, EndedBy.SIGNAL_NOT_DELIVERED)
    }


def _ends(trial: TrialReport, found: Sequence[PageLane]) -> int:
    """The last instant that is known of anything: what stays open is drawn up to there."""
    known = [entry.t_ns for entry in trial.timeline]
    known += [step.at_ns for flow in trial.flows for step in flow.history]
    known += [run.at_ns for prober in trial.new_connections for run in prober.runs]
    marks = [mark["at"][1] for lane in found for mark in lane["marks"]]
    return max([0, *(at(bounds)[1] for bounds in known), *marks])
