"""The lanes of the picture: who did what when, and how long it lasted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from pytest_drainwatch.core.document import (
    Episode,
    FlowReport,
    PodEnd,
    TimelineEntry,
    TrialReport,
)
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.observation import Source
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.render.page import failing, windows
from pytest_drainwatch.render.page.data import Band, Lane, Mark, Tone
from pytest_drainwatch.render.page.moments import at, at_or_none, moment, within
from pytest_drainwatch.render.page.outage import outage_bands
from pytest_drainwatch.render.page.pods import Pods
from pytest_drainwatch.render.page.words import FATES, VERBS
from pytest_drainwatch.render.text import duration

SIGTERM = "sigterm_received"
# The instrument's own bands: the longest so many. A stalling machine has thousands.
MOST_STALLS = 200

NAMES = {
    "api": ("API server", "What was asked of Kubernetes, and what it noted."),
    "endpoints": (
        "Endpoint slice",
        "What Kubernetes publishes about where the Service's connections may go.",
    ),
    "kubelet": ("Kubelet, container", "Stopping and starting on the node: SIGTERM, grace, exit."),
    "app": ("Application", "What the program in the pod says of itself."),
    "tcp": ("TCP connections", "Connections that were open before, and were held open."),
    "udp": ("UDP flows", "Datagrams sent steadily from one port, and their answers."),
    "new": ("New connections", "A new connection is tried every few milliseconds."),
    "http": ("HTTP requests", "Requests of clients over connections new and pooled."),
    "instrument": ("Instrument", "The measurement itself, and when it could not look."),
}


class _Told(NamedTuple):
    """How an event of the timeline is shown; ``{pod}`` is its subject."""

    lane: str
    text: str
    tone: Tone = Tone.NEUTRAL


EVENTS = {
    "workload_applied": _Told("api", "workload created"),
    "trigger_issued": _Told("api", "{verb}"),
    "trigger_api_returned": _Told("api", "accepted by the API server"),
    "trigger_blocked": _Told("api", "refused by the API server", Tone.WARN),
    "trigger_continued": _Told("api", "asked for the next pod"),
    "node_cordoned": _Told("api", "node closed to new pods"),
    "node_evacuated": _Told("api", "node evacuated"),
    "pod_observed": _Told("api", "{pod} exists"),
    "pod_deletion_timestamp_set": _Told("api", "{pod} marked for deletion"),
    "pod_object_deleted": _Told("api", "{pod} gone"),
    "endpointslice_ready_true": _Told("endpoints", "{pod} listed as ready", Tone.GOOD),
    "endpointslice_ready_false": _Told("endpoints", "{pod} listed as not ready"),
    "endpointslice_serving_true": _Told("endpoints", "{pod} listed as serving"),
    "endpointslice_serving_false": _Told("endpoints", "{pod} listed as not serving"),
    "endpointslice_terminating": _Told("endpoints", "{pod} listed as terminating"),
    "endpointslice_endpoint_removed": _Told("endpoints", "{pod} no longer listed"),
    "balancer_server_up": _Told("endpoints", "load balancer: node up", Tone.GOOD),
    "balancer_server_down": _Told("endpoints", "load balancer: node down"),
    "balancer_deregistered": _Told("endpoints", "load balancer lets go of a node"),
    "pod_ready_true": _Told("kubelet", "{pod} ready", Tone.GOOD),
    "pod_ready_false": _Told("kubelet", "{pod} not ready"),
    "container_terminated": _Told("kubelet", "{pod} ended"),
    "container_restarted": _Told("kubelet", "{pod} restarted"),
    SIGTERM: _Told("kubelet", "SIGTERM to {pod}"),
    "prestop_called": _Told("kubelet", "preStop hook of {pod} called"),
    "prestop_answered": _Told("kubelet", "preStop hook of {pod} done"),
    "probe_started": _Told("app", "{pod} starts"),
    "listening": _Told("app", "{pod} listens"),
    "sigterm_ignored": _Told("app", "{pod} ignores SIGTERM", Tone.WARN),
    "sigterm_repeated": _Told("app", "{pod} gets SIGTERM again", Tone.WARN),
    "readyz_now_503": _Told("app", "{pod} says it is not ready"),
    "stopped_accepting": _Told("app", "{pod} accepts no new connections"),
    "drain_started": _Told("app", "{pod} begins to drain"),
    "drain_deadline_reached": _Told("app", "{pod} ends its drain"),
    "drain_complete": _Told("app", "{pod} has drained", Tone.GOOD),
    "tcp_flows_closed": _Told("app", "{pod} closes its connections"),
    "accept_failed": _Told("app", "{pod} cannot accept", Tone.BAD),
    "tcp_line_refused": _Told("app", "{pod} refuses a line", Tone.WARN),
    "exiting": _Told("app", "{pod} exits"),
    "fatal": _Told("app", "{pod} fails", Tone.BAD),
    "http_requests_served_again": _Told("http", "served again", Tone.GOOD),
    "preflight_passed": _Told("instrument", "everything answers"),
    "settle_complete": _Told("instrument", "settled"),
    "all_flows_terminal": _Told("instrument", "nothing more to see"),
    "observation_window_closed": _Told("instrument", "observation window over"),
}
# Shown otherwise: as flows, as bands.
_ELSEWHERE = frozenset(
    {
        "flow_terminal",
        "new_connections_fail",
        "new_connections_last_failed",
        "http_requests_fail",
        "http_requests_last_failed",
    }
)
_LANE_OF = {
    Source.ORCHESTRATOR: "api",
    Source.K8S: "api",
    Source.PROBE: "app",
    Source.CLIENT: "instrument",
    Source.NODE: "instrument",
    Source.BALANCER: "endpoints",
}


def lanes(trial: TrialReport, pods: Pods) -> list[Lane]:
    """Those that hold anything, in their order."""
    marks: dict[str, list[Mark]] = {name: [] for name in NAMES}
    for lane, mark in (*_told(trial, pods), *_ends(trial, pods), *_fates(trial)):
        marks[lane].append(mark)
    bands: dict[str, list[Band]] = {
        "endpoints": list(windows.bands(trial.windows, pods)),
        "kubelet": list(_graces(trial, pods)),
        "udp": list(outage_bands(trial.flows)),
        "new": list(failing.of_new_connections(trial.new_connections)),
        "http": list(failing.of_requests(trial.requests)),
        "instrument": list(_blind(trial)),
    }
    return [
        Lane(
            id=name,
            name=title,
            about=about,
            marks=sorted(marks[name], key=lambda mark: (mark["at"][1], mark["at"][0])),
            bands=bands.get(name, []),
        )
        for name, (title, about) in NAMES.items()
        if marks[name] or bands.get(name)
    ]


def stalls_left_out(trial: TrialReport) -> int:
    """How many of the instrument's bands the page does not carry."""
    return max(0, len(trial.stalls) + len(trial.gaps) - MOST_STALLS)


def _told(trial: TrialReport, pods: Pods) -> Iterator[tuple[str, Mark]]:
    """The timeline's entries. Where a container's end is known better, that is shown."""
    known = {end.pod_uid for end in trial.pod_ends if end.ended_ns is not None}
    closer = windows.better_known(trial.windows)
    for entry in trial.timeline:
        if entry.event in _ELSEWHERE:
            continue
        if entry.event == "container_terminated" and entry.subject in known:
            continue
        how = EVENTS.get(entry.event)
        if how is None:  # of a later version
            how = _Told(_LANE_OF.get(entry.source, "instrument"), "{event}")
        lo, hi = closer.get((entry.event, entry.subject or ""), entry.t_ns)
        if hi == entry.t_ns[1]:  # else it is another change of that kind
            entry = replace(entry, t_ns=(max(lo, entry.t_ns[0]), hi))
        yield how.lane, _mark(entry, how, trial, pods)


def _mark(entry: TimelineEntry, how: _Told, trial: TrialReport, pods: Pods) -> Mark:
    verb = VERBS.get(trial.trigger.verb, trial.trigger.verb)
    return Mark(
        key=entry.event,
        at=at(entry.t_ns),
        approximate=entry.approximate and entry.t_ns[1] > entry.t_ns[0],
        pod_uid=entry.subject if entry.subject in pods.labels else None,
        text=how.text.format(
            pod=pods.label(entry.subject), verb=verb, event=entry.event.replace("_", " ")
        ),
        detail=pods.in_words(entry.detail or ""),
        source=str(entry.source),
        tone=how.tone,
    )


def _ends(trial: TrialReport, pods: Pods) -> Iterator[tuple[str, Mark]]:
    """How containers ended; and the signal to those that do not tell of it themselves."""
    told = {entry.subject for entry in trial.timeline if entry.event == SIGTERM}
    for end in trial.pod_ends:
        label = _called(end, trial, pods)
        signal = end.sigterm_ns or end.stop_signal_ns
        if signal is not None and end.pod_uid not in told:
            yield (
                "kubelet",
                Mark(
                    key=SIGTERM,
                    at=at(signal),
                    approximate=False,
                    pod_uid=end.pod_uid,
                    text=f"SIGTERM to {label}" if end.sigterm_ns else f"stop signal to {label}",
                    detail=f"nobody tells of it; it was within {duration(signal)}",
                    source=str(Source.K8S),
                    tone=Tone.NEUTRAL,
                ),
            )
        if end.ended_ns is not None:
            yield (
                "kubelet",
                Mark(
                    key="container_terminated",
                    at=at(end.ended_ns),
                    approximate=False,
                    pod_uid=end.pod_uid,
                    text=f"{label} ended",
                    detail=f"{end.ended_by} by {end.initiator}; {'; '.join(end.evidence)}",
                    source=str(Source.K8S),
                    tone=Tone.NEUTRAL if end.ended_by is EndedBy.EXIT else Tone.WARN,
                ),
            )


def _called(end: PodEnd, trial: TrialReport, pods: Pods) -> str:
    """A container's name beside its pod's, where it is not alone in it."""
    alone = len({e.container for e in trial.pod_ends if e.pod_uid == end.pod_uid}) == 1
    return pods.label(end.pod_uid) + ("" if alone else f"/{end.container}")


def _fates(trial: TrialReport) -> Iterator[tuple[str, Mark]]:
    """How the target's TCP connections ended, a mark for each way."""
    groups: dict[tuple[Outcome, str], list[FlowReport]] = {}
    for flow in trial.flows:
        if flow.proto is Proto.TCP and flow.role is Role.TARGET and flow.terminal_ns:
            groups.setdefault((flow.outcome, str(flow.mechanism)), []).append(flow)
    for (outcome, mechanism), found in groups.items():
        ends = within(flow.terminal_ns for flow in found if flow.terminal_ns)
        if ends is None:
            continue
        yield (
            "tcp",
            Mark(
                key="flow_terminal",
                at=at(ends),
                approximate=False,
                pod_uid=None,
                text=f"{len(found):,} {FATES.get((outcome, mechanism), str(outcome))}",
                detail=f"{len(found):,} connections: {outcome} by {mechanism}, at {moment(ends)}",
                source=str(Source.CLIENT),
                tone=Tone.GOOD if outcome is Outcome.DRAINED else Tone.BAD,
            ),
        )


def _graces(trial: TrialReport, pods: Pods) -> Iterator[Band]:
    """Grace periods, up to when the kubelet would kill; and what of them a preStop hook took."""
    for end in trial.pod_ends:
        if end.deletion_ns is None:
            continue
        label = _called(end, trial, pods)
        base = f"{end.pod_uid}/{end.container}/{end.restart}"
        if end.expected_kill_ns is not None:
            grace = end.deletion_grace_period_s
            after = "" if end.ended_ns is None else f"; it ended at {moment(end.ended_ns)}"
            yield Band(
                id=f"grace:{base}",
                opens=at(end.deletion_ns),
                closes=at(end.expected_kill_ns),
                text=f"{label}: grace period{'' if grace is None else f' {grace} s'}",
                detail="The time it has to end by itself. What still runs then is killed "
                f"(SIGKILL at {moment(end.expected_kill_ns)}){after}.",
                met=None,
                tone=Tone.NEUTRAL,
            )
        if end.pre_stop not in (None, PreStopOutcome.NONE):
            signal = end.sigterm_ns or end.stop_signal_ns
            yield Band(
                id=f"prestop:{base}",
                opens=at(end.deletion_ns),
                closes=at_or_none(signal),
                text=f"{label}: preStop hook",
                detail=f"SIGTERM waits for it: {end.pre_stop} after {duration(end.pre_stop_ns)}.",
                met=None,
                tone=Tone.NEUTRAL if end.pre_stop is PreStopOutcome.COMPLETED else Tone.WARN,
            )


def _blind(trial: TrialReport) -> Iterator[Band]:
    """When the instrument could not look, the longest first."""
    found: Iterable[Episode] = (*trial.gaps, *trial.stalls)
    longest = sorted(found, key=lambda each: each.at_ns[0] - each.at_ns[1])[:MOST_STALLS]
    for number, each in enumerate(longest):
        lo, hi = each.at_ns
        kind = (each.kind or "stall").replace("_", " ")
        yield Band(
            id=f"blind:{number}",
            opens=at((lo, lo)),
            closes=at((hi, hi)),
            text=f"{kind}: {each.subject}" if each.subject else kind,
            detail=each.detail or "what happened in it is known less precisely",
            met=None,
            tone=Tone.UNKNOWN,
        )
