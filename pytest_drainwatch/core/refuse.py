"""When there is nothing to judge: a broken harness yields no report.

A recording that lacks its end, its flows or its termination looks like a trial in
which nothing bad happened. Each of these is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_drainwatch.core import transitions
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.signals import QUIET_NS
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.start import CannotDerive, Start
from pytest_drainwatch.core.transitions import Transition

ENDS = frozenset({Event.ALL_FLOWS_TERMINAL, Event.OBSERVATION_WINDOW_CLOSED})


def refuse_unfinished(seen: Sequence[Observation]) -> None:
    """Refuse a trial that is void, interrupted, or lacks the marks of its end."""
    for observation in seen:
        if observation.event in (Event.VOID, Event.INTERRUPTED):
            why = observation.data.get("reason") or observation.data.get("signal")
            raise CannotDerive(
                f"the trial is {observation.event} in phase {observation.data.get('phase')}: "
                f"{why}; a broken harness yields no report"
            )
    events = {observation.event for observation in seen}
    if Event.TRIGGER_ACCEPTED not in events:
        return  # start_of() says so
    if not events & ENDS:
        raise CannotDerive(
            "the recording does not say that its observation ended; expected "
            f"{' or '.join(sorted(ENDS))}: its writer was killed"
        )
    if Event.AGENT_SUMMARY not in events:
        raise CannotDerive(
            "the flow agent's summary is missing; expected it as the agent's last line: "
            "the agent died, or its part of the recording was lost"
        )


def refuse_unmeasured(
    start: Start,
    changes: Iterable[Transition],
    flows: Sequence[FlowReport],
    config: Mapping[str, object],
) -> None:
    """Refuse a trial without its flows, with broken ones, or whose trigger had no effect.

    A control terminates nothing, so of it no effect is expected.
    """
    attached = isinstance(config.get("attached"), Mapping)
    if attached:
        _refuse_unled(flows, config)
    for proto in () if attached else Proto:
        wanted = config.get(f"{proto}_flows")
        held = sum(
            flow.proto is proto and flow.role is Role.TARGET and not flow.one_way for flow in flows
        )
        if isinstance(wanted, int) and held < wanted:
            raise CannotDerive(
                f"{held} {proto} flows were held on the target, expected {wanted}: "
                "the others were lost with the recording or never answered"
            )
    early = [f.id for f in flows if _ended_before(f, start)]
    if early:
        raise CannotDerive(
            f"{len(early)} flow(s) ended before the trigger ({', '.join(early[:5])}); "
            "expected every flow alive when it was sent: the harness was disturbed"
        )
    if start.control:
        return
    if start.killed:
        _refuse_unkilled(start, changes)
        return
    ended = {transitions.POD_DELETION_TIMESTAMP_SET, transitions.POD_OBJECT_DELETED}
    if not any(change.uid in start.targets and change.event in ended for change in changes):
        raise CannotDerive(
            "blocked: the API accepted the trigger and did not carry it out; no target pod was "
            "deleted within the observation window. Look at: admission webhooks, dry-run evictions"
        )


def refuse_unrequested(seen: Iterable[Observation], config: Mapping[str, object]) -> None:
    """Refuse a trial of HTTP requests that holds none."""
    attached = config.get("attached")
    asked = isinstance(attached, Mapping) and attached.get("protocol") == "http"
    if asked and not any(o.event is Event.HTTP_SUMMARY for o in seen):
        raise CannotDerive(
            "HTTP requests were asked for and the recording tells of none; expected the agent's "
            "http_summary: the agent died, or its part of the recording was lost"
        )


def _refuse_unled(flows: Sequence[FlowReport], config: Mapping[str, object]) -> None:
    """Of a workload that signs nothing no flow can be dialled to a certain pod; but there must
    be flows, and one of them must lead to a target, or may.
    """
    for proto in Proto:
        mine, wanted = [f for f in flows if f.proto is proto], config.get(f"{proto}_flows")
        if not isinstance(wanted, int) or not wanted:
            continue
        if len(mine) < wanted:
            raise CannotDerive(
                f"{len(mine)} {proto} flows were held, expected {wanted}: the others were lost "
                "with the recording or never answered"
            )
        if all(flow.role is Role.BYSTANDER for flow in mine):
            raise CannotDerive(
                f"none of {len(mine)} {proto} flows led to a pod that was terminated; expected "
                "some: ask for more flows, or for a trigger that ends every pod (rollout)"
            )


def _ended_before(flow: FlowReport, start: Start) -> bool:
    """Whether a flow certainly ended before the trigger.

    What a process had received and not yet read when it was killed is lost, though it was sent
    before: it is merely on its way, for as long as any answer is.
    """
    if flow.terminal_ns is None:
        return False
    uid = flow.responders[0].partition("/")[0] if flow.responders else ""
    return flow.terminal_ns[1] < (-QUIET_NS if uid in start.killed else 0)


def _refuse_unkilled(start: Start, changes: Iterable[Transition]) -> None:
    """Every container that was killed must have been seen to end, or to be another one."""
    ended = {transitions.CONTAINER_TERMINATED, transitions.CONTAINER_RESTARTED}
    shown = {c.uid for c in changes if c.event in ended and c.received_ns >= start.t0_ns}
    unseen = start.targets - shown
    if unseen:
        raise CannotDerive(
            f"{len(unseen)} of {len(start.targets)} containers that were killed were not seen to "
            "end within the observation window; expected each to end, and the kubelet to start it "
            "again. Look at: the kubelet's log; kubectl describe pods"
        )
