"""Arrows from cause to effect, where the report's evidence carries the claim.

Order alone carries none, and refutes one: what surely came before its cause is no effect of it.
What each arrow rests on is in its ``why``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.document import FlowReport, PodEnd, TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.mechanism.evidence import CONCLUDES
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.pod.ending import VERBS, EndedBy, Initiator, PreStopOutcome
from pytest_drainwatch.core.transitions import (
    CONTAINER_TERMINATED,
    ENDPOINT_READY_FALSE,
    ENDPOINT_READY_TRUE,
    ENDPOINT_REMOVED,
    POD_DELETION_TIMESTAMP_SET,
)
from pytest_drainwatch.render.trace.picture import Arrow, Span

ACCEPTED = "trigger_api_returned"
# By these a container ends because its pod was deleted.
_DELETIONS = frozenset(VERBS.values()) - {Initiator.CONTAINER_KILL} | {Initiator.OTHER_DELETION}
_KILLED = frozenset({EndedBy.SIGKILL_AT_GRACE, EndedBy.SIGNAL_NOT_DELIVERED})
# How a connection ends whose process is killed: its kernel closes it.
_CLOSED_BY_KERNEL = frozenset({Mechanism.RST, Mechanism.FIN_UNANNOUNCED, Mechanism.EPIPE})
# Of more flows that ended alike, arrows lead to the first ones.
MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What arrows begin and end at: marks by event and pod, kills, looks, and flows' ends.

    ``reset`` are the pods that say of themselves that they reset their connections.
    """

    trial: TrialReport
    marks: Mapping[tuple[str, str], Span]
    kills: Mapping[str, Span]
    looks: Mapping[str, Span]
    ends: Mapping[str, Span]
    reset: frozenset[str]


def who_reset(trial: TrialReport) -> frozenset[str]:
    """Pods whose log says that they reset their connections when they were told to end."""
    return frozenset(
        entry.subject
        for entry in trial.timeline
        if entry.event == Event.TCP_FLOWS_CLOSED
        and entry.subject
        and "how=reset" in (entry.detail or "").split(" ")
    )


def arrows(scene: Scene) -> tuple[Arrow, ...]:
    """All of them, without those that order refutes."""
    found = [
        *(arrow for end in _ends(scene.trial) for arrow in _of_pod(end, scene)),
        *_of_endpoints(scene),
        *_of_flows(scene),
    ]
    return tuple(arrow for arrow in found if arrow.cause.at_us[0] < arrow.effect.at_us[1])


def _ends(trial: TrialReport) -> Iterator[PodEnd]:
    """The last end of each target pod's containers: a kill ends one more than once."""
    last = {(end.pod_uid, end.container): end for end in trial.pod_ends}
    yield from (end for end in last.values() if end.pod_uid in trial.trigger.targets)


def _of_pod(end: PodEnd, scene: Scene) -> Iterator[Arrow]:
    """trigger -> deletion -> SIGTERM -> what the app does; grace period -> SIGKILL -> its end."""
    uid, marks = end.pod_uid, scene.marks
    verb, trigger = scene.trial.trigger.verb, marks.get((ACCEPTED, ""))
    deletion = marks.get((POD_DELETION_TIMESTAMP_SET, uid))
    sigterm = marks.get((Event.SIGTERM_RECEIVED, uid))
    ended, kill = marks.get((CONTAINER_TERMINATED, uid)), scene.kills.get(uid)
    begun = end.initiator
    if VERBS.get(verb) is begun and begun is not Initiator.CONTAINER_KILL:
        yield from _arrow(
            trigger, deletion, "deletes", f"the pod is a target of it, and ended by {begun}"
        )
    if end.ended_by is EndedBy.KILLED_BY_TRIGGER:
        yield from _arrow(trigger, ended, "kills", "killed by the trial, and nobody else had asked")
    if begun in _DELETIONS and (end.sigterm_ns or end.stop_signal_ns) is not None:
        hook = "" if end.pre_stop is None else f" (preStop: {end.pre_stop})"
        yield from _arrow(
            deletion, sigterm, "SIGTERM", f"the kubelet stops a deleted pod's containers{hook}"
        )
    called, answered = (
        marks.get((event, uid)) for event in (Event.PRESTOP_CALLED, Event.PRESTOP_ANSWERED)
    )
    if begun in _DELETIONS:
        yield from _arrow(
            deletion, called, "preStop", "the kubelet calls a deleted pod's hook before all else"
        )
    if end.pre_stop is PreStopOutcome.COMPLETED:
        yield from _arrow(
            answered, sigterm, "hook over", "the hook was completed, and SIGTERM waits for that"
        )
    for event, does in (
        (Event.DRAIN_STARTED, "drains"),
        (Event.SIGTERM_IGNORED, "ignores it"),
        (Event.READYZ_NOW_503, "fails readiness"),
        (Event.STOPPED_ACCEPTING, "closes its listener"),
    ):
        said = marks.get((event, uid))
        yield from _arrow(sigterm, said, does, "the app's own log says so after SIGTERM")
    for event, name in (
        (Event.DRAIN_DEADLINE_REACHED, "drain window"),
        (Event.DRAIN_COMPLETE, "drained"),
    ):
        yield from _arrow(
            marks.get((Event.DRAIN_STARTED, uid)),
            marks.get((event, uid)),
            name,
            "the app's own log: what it began is over then",
        )
    if end.ended_by in _KILLED:
        why = f"exit code {end.exit_code} at the end of the grace period: {end.ended_by}"
        yield from _arrow(deletion, kill, "grace period", why)
        yield from _arrow(kill, ended, "SIGKILL", why)


def _of_endpoints(scene: Scene) -> Iterator[Arrow]:
    """deletion -> ready:false, where one frame shows terminating too -> kube-proxy's rules."""
    for pod in scene.trial.windows:
        unready = scene.marks.get((ENDPOINT_READY_FALSE, pod.pod_uid))
        if pod.ready_false_ns is not None and pod.ready_false_ns == pod.terminating_ns:
            yield from _arrow(
                scene.marks.get((POD_DELETION_TIMESTAMP_SET, pod.pod_uid)),
                unready,
                "ready:false",
                "the frame that shows it says terminating:true, which follows from the deletion",
            )
        look = _routed_away(scene, pod.pod_uid)
        if look is not None:
            yield from _arrow(
                unready,
                scene.looks.get(look),
                "rules lead elsewhere by this look",
                "kube-proxy's rules led to the pod before the trigger, and not at this look",
            )


def _routed_away(scene: Scene, uid: str) -> str | None:
    """The first look at which the rules lead new connections to others than the pod."""
    addresses = {
        piece.to for flow in scene.trial.flows for piece in flow.evidence if piece.to_pod == uid
    }
    led = False
    for look in scene.trial.mechanism:
        if not addresses or not look.rules:
            continue
        if any(addresses.intersection(rule.endpoints) for rule in look.rules):
            led = True
        elif led and all(rule.endpoints for rule in look.rules):
            return look.occasion
    return None


def _of_flows(scene: Scene) -> Iterator[Arrow]:
    """What ended a flow -> its end. Of each pod's flows that ended alike, the first ones."""
    ends = {end.pod_uid: end for end in _ends(scene.trial)}
    led: dict[tuple[str, Mechanism], int] = {}
    by_time = sorted(scene.trial.flows, key=lambda flow: flow.terminal_ns or (0, 0))
    for flow in by_time:
        span, uid = scene.ends.get(flow.id), _pod(flow)
        if span is None or uid is None:
            continue
        found = [
            *_closed(flow, ends.get(uid), scene, span),
            *_refused(flow, uid, scene, span),
            *_rehomed(flow, uid, scene, span),
        ]
        key = (uid, flow.mechanism)
        led[key] = led.get(key, 0) + bool(found)
        if led[key] <= MOST:
            yield from found


def _closed(flow: FlowReport, end: PodEnd | None, scene: Scene, span: Span) -> Iterator[Arrow]:
    """The app's drain, its reset at SIGTERM, or SIGKILL -> a TCP connection's end."""
    if end is None:
        return
    uid, marks = end.pod_uid, scene.marks
    if flow.outcome is Outcome.DRAINED and _announced(flow, "drain-deadline"):
        yield from _arrow(
            marks.get((Event.DRAIN_DEADLINE_REACHED, uid)),
            span,
            "FIN",
            "the pod that served it announced drain-deadline on it, and then closed it",
        )
    if flow.mechanism is Mechanism.RST and uid in scene.reset:
        yield from _arrow(
            marks.get((Event.SIGTERM_RECEIVED, uid)),
            span,
            "RST",
            "the pod that served it logged that it reset its connections on SIGTERM",
        )
    if end.ended_by in _KILLED and flow.mechanism in _CLOSED_BY_KERNEL and _until(flow, end):
        yield from _arrow(
            scene.kills.get(uid),
            span,
            "SIGKILL",
            "the pod that served it was killed, and a killed process's kernel closes it",
        )


def _until(flow: FlowReport, end: PodEnd) -> bool:
    """Whether a flow may have ended before it was seen that the container had."""
    if flow.terminal_ns is None or end.ended_ns is None:
        return False
    return flow.terminal_ns[0] <= end.ended_ns[1]


def _refused(flow: FlowReport, uid: str, scene: Scene, span: Span) -> Iterator[Arrow]:
    """The container's end -> a refusal that its own kernel sent."""
    if any(piece.to_pod == uid and CONCLUDES in piece.says for piece in flow.evidence):
        yield from _arrow(
            scene.marks.get((CONTAINER_TERMINATED, uid)),
            span,
            "refused",
            "conntrack led it to the pod before and after, so the pod's own kernel refused it",
        )


def _rehomed(flow: FlowReport, uid: str, scene: Scene, span: Span) -> Iterator[Arrow]:
    """What took the old pod out of the endpoints, and brought the new one in -> re-homed."""
    if flow.mechanism is not Mechanism.REHOMED or len(flow.responders) < 2:
        return
    after = flow.responders[1].partition("/")[0]
    told = [piece.to_pod for piece in flow.evidence if piece.to_pod]
    if uid in told and after in told:
        # The last change of the old endpoint that surely came before.
        for event, name in ((ENDPOINT_REMOVED, "removed"), (ENDPOINT_READY_FALSE, "ready:false")):
            left = scene.marks.get((event, uid))
            if left is not None and left.at_us[1] <= span.at_us[0]:
                yield from _arrow(
                    left,
                    span,
                    f"re-homed after {name}",
                    "conntrack led it to the old pod before, and to the new one after",
                )
                break
    came = scene.marks.get((ENDPOINT_READY_TRUE, after))
    if came is not None and came.at_us[1] <= span.at_us[1]:
        yield from _arrow(
            came,
            span,
            "answers from now on",
            "this pod answered it next, and its endpoint had become ready",
        )


def _arrow(cause: Span | None, effect: Span | None, name: str, why: str) -> Iterator[Arrow]:
    if cause is not None and effect is not None and cause is not effect:
        yield Arrow(cause=cause, effect=effect, name=name, why=why)


def _pod(flow: FlowReport) -> str | None:
    """Who served it first."""
    return flow.responders[0].partition("/")[0] or None if flow.responders else None


def _announced(flow: FlowReport, reason: str) -> bool:
    said: Sequence[str] = [step.detail or "" for step in flow.history if step.event == "announced"]
    return any(f"reason={reason}" in detail.split(" ") for detail in said)
