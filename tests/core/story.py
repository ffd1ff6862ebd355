"""Writing recordings by hand: a trial's observations in milliseconds from t = 0."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import Header, Recording, merge

CLOCK = "boot-1/4026531834"
T0 = 1_000_000 * NS_PER_MS
OLD, NEW, OTHER = "uid-old", "uid-new", "uid-other"


def at(lo_ms: float, hi_ms: float | None = None) -> Interval:
    """An interval counted from t = 0."""
    hi_ms = lo_ms if hi_ms is None else hi_ms
    return Interval(T0 + round(lo_ms * NS_PER_MS), T0 + round(hi_ms * NS_PER_MS))


def ns(ms: float) -> int:
    """A stamp on the harness's clock."""
    return T0 + round(ms * NS_PER_MS)


def client(event: Event, flow: str, when: Interval, **data: object) -> Observation:
    return Observation(source=Source.CLIENT, event=event, at=when, subject=flow, data=data)


def connected(flow: str, ms: float = -5000) -> Observation:
    return client(Event.FLOW_CONNECTED, flow, at(ms, ms + 1), proto=flow[:3], attempts=1)


def responder(
    flow: str, who: str, lo: float, hi: float, previous: str | None = None
) -> Observation:
    return client(
        Event.FLOW_RESPONDER,
        flow,
        at(lo, hi),
        responder=f"{who}/n",
        previous=f"{previous}/n" if previous else None,
        clock=CLOCK,
        seq=1,
    )


def answered(
    flow: str, who: str, lo: float, hi: float, seqs: tuple[int, int] = (1, 100)
) -> Observation:
    return client(
        Event.FLOW_ANSWERED,
        flow,
        at(lo, hi),
        responder=f"{who}/n",
        first_seq=seqs[0],
        last_seq=seqs[1],
        count=seqs[1] - seqs[0] + 1,
        last_sent_ns=ns(hi - 0.2),
        rtt_min_ns=100_000,
        rtt_max_ns=400_000,
    )


def unanswered(
    flow: str, first: float, last: float, count: int, end: float | None = None
) -> Observation:
    return client(
        Event.FLOW_UNANSWERED,
        flow,
        at(first, last if end is None else end),
        first_seq=101,
        last_seq=100 + count,
        count=count,
        first_sent_ns=ns(first),
        last_sent_ns=ns(last),
    )


def alive(flow: str, until: float, who: str = OLD) -> list[Observation]:
    """A flow that is answered by ``who`` until then."""
    return [
        connected(flow),
        responder(flow, who, -4999, -4998),
        answered(flow, who, -4999, until),
    ]


def pod(uid: str, ms: float, **fields: object) -> Observation:
    data = {"type": "MODIFIED", "name": f"pod-{uid}", "ready": True, "phase": "Running", **fields}
    return Observation(source=Source.K8S, event=Event.POD, at=at(ms), subject=uid, data=data)


def endpoints(
    ms: float,
    *shown: tuple[str, bool, bool, bool],
    name: str = "slice-1",
    family: str | None = None,
) -> Observation:
    """A slice; of each endpoint its pod, and whether it is ready, serving, terminating."""
    listed = [
        {"uid": uid, "name": f"pod-{uid}", "ready": r, "serving": s, "terminating": t}
        for uid, r, s, t in shown
    ]
    data = {"type": "MODIFIED", "endpoints": listed, "family": family}
    return Observation(
        source=Source.K8S, event=Event.ENDPOINT_SLICE, at=at(ms), subject=name, data=data
    )


def accepted(
    returned_ms: float = 10, targets: tuple[str, ...] = (OLD,), verb: str = "delete"
) -> Observation:
    return Observation(
        source=Source.ORCHESTRATOR,
        event=Event.TRIGGER_ACCEPTED,
        at=at(0, returned_ms),
        data={"verb": verb, "attempt": 1, "targets": list(targets)},
    )


def log(event: Event, ms: float, uid: str = OLD, clock: str = CLOCK, **data: object) -> Observation:
    return Observation(
        source=Source.PROBE, event=event, at=at(ms), subject=uid, clock=clock, data=data
    )


def total(*counts: int | None) -> int:
    """Their sum; all of them must be known."""
    known = [count for count in counts if count is not None]
    assert len(known) == len(counts), counts
    return sum(known)


LIVE: dict[str, object] = {"name": "probe", "state": "running", "restarts": 0}


def gone(exit_code: int, **fields: object) -> dict[str, object]:
    """A container that has ended."""
    return {**LIVE, "state": "terminated", "exit_code": exit_code, **fields}


def log_ended(uid: str = OLD, ms: float = 59_000, *, complete: bool = True) -> Observation:
    """Whether the probe's log was read to its end."""
    return Observation(
        source=Source.ORCHESTRATOR,
        event=Event.LOG_ENDED,
        at=at(ms),
        subject=uid,
        data={"container": "probe", "complete": complete, "problem": None},
    )


def cluster_event(reason: str, uid: str = OLD, ms: float = 59_500) -> Observation:
    """What the kubelet says of a pod, read at the end."""
    message = {"Killing": "Stopping container probe", "FailedPreStopHook": "PreStopHook failed"}
    data = {"reason": reason, "message": message.get(reason, ""), "container": "probe"}
    return Observation(
        source=Source.ORCHESTRATOR, event=Event.CLUSTER_EVENT, at=at(ms), subject=uid, data=data
    )


def cluster(
    exit_code: int = 0,
    end_ms: float = 5200,
    *,
    grace_s: int = 10,
    gone: dict[str, object] | None = None,
    **fields: object,
) -> list[Observation]:
    """What the API server shows of an ordinary termination."""
    ended = {
        "name": "probe",
        "state": "terminated",
        "restarts": 0,
        "exit_code": exit_code,
        "reason": "Completed",
        **(gone or {}),
    }
    leaving = {"deletion_timestamp": "then", "deletion_grace_period_s": grace_s, **fields}
    last = {**leaving, "deletion_grace_period_s": 0}
    return [
        pod(OLD, -6000, containers=[LIVE]),
        endpoints(-5900, (OLD, True, True, False)),
        pod(OLD, 12, containers=[LIVE], **leaving),
        endpoints(20, (OLD, False, True, True)),
        pod(NEW, 30, ready=False),
        pod(OLD, end_ms, ready=False, containers=[ended], **leaving),
        endpoints(end_ms + 8),
        pod(OLD, end_ms + 10, type="DELETED", ready=False, containers=[ended], **last),
    ]


def deleted(uid: str = OLD, ms: float = 12) -> Observation:
    """The least that shows that a trigger was carried out."""
    return pod(uid, ms, deletion_timestamp="then")


def finished(ms: float = 60_000) -> list[Observation]:
    """The marks of a trial that was observed to its end."""
    summary = Observation(source=Source.CLIENT, event=Event.AGENT_SUMMARY, at=at(ms))
    window = Observation(
        source=Source.ORCHESTRATOR, event=Event.OBSERVATION_WINDOW_CLOSED, at=at(ms)
    )
    return [summary, window]


def recording(*parts: Iterable[Observation], config: dict[str, object] | None = None) -> Recording:
    """A finished recording of these parts."""
    header = Header(
        drainwatch_version="0.1.0",
        git_commit="abc1234",
        trial_id="story/r00",
        wall_clock_start="2026-01-01T00:00:00Z",
        clock=CLOCK,
        scenario={"id": "story", "config": config or {"drain_behavior": "drain"}, "flags": []},
        environment={"kubernetes_version": "v1.37.2"},
    )
    return Recording(header, merge(*parts, finished()))
