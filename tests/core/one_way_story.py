"""Hand-made trials of one one-way flow: what it sent, and what pods said of it."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import FlowReport, Report
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.udp.continuity import Continuity
from tests.core import story as s
from tests.core.story import OLD, at

FLOW = "udp-oneway-0001"
RATE_MS = 50  # seq n is sent at -5000 + 50 * (n - 1)
END_MS = 60_000
LAST_SEQ = 1 + (END_MS + 5000) // RATE_MS
MS = 1_000_000


def sent_at(seq: int) -> float:
    return -5000 + RATE_MS * (seq - 1)


def seq_at(ms: float) -> int:
    """The last one sent by then."""
    return 1 + int((ms + 5000) // RATE_MS)


def sender(last_seq: int = LAST_SEQ, *more: Observation) -> list[Observation]:
    hello = s.client(Event.FLOW_CONNECTED, FLOW, at(-5001, -5000), proto="udp", one_way=True)
    sent = s.client(
        Event.FLOW_SENT,
        FLOW,
        at(sent_at(1), sent_at(last_seq)),
        first_seq=1,
        last_seq=last_seq,
        count=last_seq,
        first_sent_ns=s.ns(sent_at(1)),
        last_sent_ns=s.ns(sent_at(last_seq)),
        period_ns=RATE_MS * MS,
        early_ns=-1 * MS,
        late_ns=2 * MS,
    )
    end = s.client(Event.FLOW_OPEN_AT_END, FLOW, at(END_MS), sent=last_seq, answered=0, unsent=0)
    return [hello, *more, sent, end]


def received(
    uid: str,
    ms: float,
    seqs: tuple[int, int],
    clock: str = s.CLOCK,
    ahead_ms: float = 0,
    **more: object,
) -> Observation:
    """What a pod tells at ``ms``, each datagram 0.3 ms after it was sent."""
    first, last = seqs
    row = {
        "flow": FLOW,
        "first_seq": first,
        "last_seq": last,
        "count": last - first + 1,
        "duplicates": 0,
        "reordered": 0,
        "first_sent_ns": s.ns(sent_at(first)),
        "last_sent_ns": s.ns(sent_at(last)),
        "first_ns": s.ns(sent_at(first) + 0.3 + ahead_ms),
        "last_ns": s.ns(sent_at(last) + 0.3 + ahead_ms),
        "passage_min_ns": round((0.3 + ahead_ms) * MS),
        "passage_max_ns": round((0.3 + ahead_ms) * MS),
    }
    row.update({k: v for k, v in more.items() if k in row})
    rest = {"nonce": "n", **{k: v for k, v in more.items() if k not in row}}
    return s.log(Event.UDP_RECEIVED, ms + ahead_ms, uid, clock=clock, flows=[row], **rest)


def started(uid: str, ms: float) -> Observation:
    return s.log(Event.PROBE_STARTED, ms, uid, nonce="n")


def let_go(uid: str, problem: str | None = None) -> Observation:
    """The end of a log that is still open when the trial ends; ``problem``: it broke before."""
    data = {"container": "probe", "complete": False, "problem": problem}
    return Observation(
        source=Source.ORCHESTRATOR, event=Event.LOG_ENDED, at=at(END_MS), subject=uid, data=data
    )


def judged(*told: Sequence[Observation], client: Sequence[Observation] | None = None) -> Report:
    parts = [list(sender()) if client is None else list(client), [s.accepted()], *told]
    return derive(s.recording(*parts, config={"udp_one_way_flows": 1}))


def flow_of(report: Report) -> FlowReport:
    (flow,) = [flow for flow in report.trial.flows if flow.one_way]
    assert flow.proto == "udp"
    return flow


def told_of(flow: FlowReport) -> Continuity:
    assert flow.continuity is not None
    return flow.continuity


def ms_of(bounds: tuple[int, int] | None) -> tuple[float, float]:
    assert bounds is not None
    return (bounds[0] / MS, bounds[1] / MS)


def cluster(end_ms: float = 5200) -> list[Observation]:
    """The old pod ends; the new one is there but never ready."""
    return s.cluster(0, end_ms)


OLD_LAST = seq_at(5190)
FINAL = received(OLD, 5195, (1, OLD_LAST), final=True)
