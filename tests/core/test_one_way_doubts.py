"""One-way UDP where the pods did not tell all: what is not known is never lost, and never 0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.document import FlowReport, Report
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.repeats.metrics import Metric
from pytest_drainwatch.core.repeats.repeat import figures
from pytest_drainwatch.core.udp.continuity import PhaseKind
from pytest_drainwatch.render import terminal
from tests.core import story as s
from tests.core.one_way_story import (
    FINAL,
    FLOW,
    LAST_SEQ,
    OLD_LAST,
    cluster,
    flow_of,
    judged,
    let_go,
    ms_of,
    received,
    sender,
    sent_at,
    seq_at,
    started,
    told_of,
)
from tests.core.story import NEW, OLD, OTHER, at

BROKE = "the log of pod web-1 cannot be followed: connection reset"
HALF = seq_at(20_000)


def assert_unmeasured(report: Report, why: str) -> FlowReport:
    """Nothing is claimed of the flow, and the reason stands in all three places."""
    flow = flow_of(report)
    assert (flow.outcome, flow.terminal_ns, flow.t_terminal_ms) == ("not-measured", None, None)
    assert (flow.answered, flow.unanswered, flow.last_data_t_ms) == (None, None, None)
    assert flow.last_answered_seq is None
    assert flow.detail is not None
    assert why in flow.detail
    told = told_of(flow)
    counts = (told.answered, told.lost, told.late, told.open, told.reordered, told.duplicated)
    assert counts == (None,) * 6
    assert told.note is not None
    assert why in told.note
    assert any(FLOW in note and why in note for note in report.trial.notes)
    assert all(value is None for name, value in figures(report).items() if "udp" in name)
    (shown,) = [line for line in terminal.show(report).splitlines() if "not-measured" in line]
    assert "None" not in shown
    return flow


def bystander(*more: Observation) -> Report:
    """A flow of another pod, which told of it until 20 s."""
    told = [started(OTHER, -6000), received(OTHER, 20_000, (1, HALF)), s.pod(OTHER, -6000)]
    return judged([*told, *more], [started(OLD, -6000)], cluster())


def test_a_log_that_broke_shows_no_silence() -> None:
    flow = assert_unmeasured(bystander(let_go(OTHER, BROKE)), "ends before the pod did")
    assert (flow.mechanism, flow.role) == ("none", "bystander")
    # It lived: what it told until then is no history of losses.
    (phase,) = told_of(flow).phases
    assert (phase.kind, phase.answered, phase.lost) == (PhaseKind.ALIVE, None, None)


def test_a_log_that_was_followed_to_the_end_does() -> None:
    for whole in ([let_go(OTHER)], []):  # nobody followed it: read once, at the end
        flow = flow_of(bystander(*whole))
        assert (flow.outcome, flow.mechanism) == ("severed", "silence")
        assert told_of(flow).lost == LAST_SEQ - HALF


def test_a_replacement_whose_log_broke_lost_nothing_that_is_known() -> None:
    told = [started(OLD, -6000), FINAL, started(NEW, 2000)]
    new = received(NEW, 20_000, (OLD_LAST + 1, HALF))
    report = judged([*told, new, let_go(NEW, BROKE)], cluster())
    flow = flow_of(report)
    assert (flow.outcome, flow.mechanism) == ("severed", "rehomed")
    assert ms_of(flow.terminal_ns) == (sent_at(OLD_LAST), sent_at(OLD_LAST + 1) + 0.3)
    assert (flow.answered, flow.unanswered, flow.last_answered_seq) == (None, None, OLD_LAST)
    found = told_of(flow)
    assert [p.kind for p in found.phases] == [PhaseKind.ALIVE, PhaseKind.REHOMED]
    assert [(p.answered, p.lost) for p in found.phases] == [(OLD_LAST, 0), (None, None)]
    assert (found.lost, len(found.outages), found.outages[0].lost) == (None, 1, 0)
    assert found.recovered_at_ns is not None
    assert found.note == f"not known to its end: the log of {NEW}/n ends before the pod did"
    assert f"{FLOW} is {found.note}" in report.trial.notes
    whole = told_of(flow_of(judged([*told, new, let_go(NEW)], cluster())))
    assert (whole.lost, whole.note) == (LAST_SEQ - HALF, None)


def test_a_first_pod_whose_log_broke_may_have_received_until_the_move() -> None:
    again = seq_at(8000)
    told = [started(OTHER, -6000), received(OTHER, 2000, (1, seq_at(2000))), s.pod(OTHER, -6000)]
    new = [started(NEW, 6000), received(NEW, 59_900, (again, LAST_SEQ))]
    report = judged([*told, *new, let_go(OTHER, BROKE), started(OLD, -6000)], cluster())
    flow = flow_of(report)
    assert (flow.mechanism, flow.last_answered_seq, flow.last_data_t_ms) == ("rehomed", None, None)
    assert ms_of(flow.terminal_ns) == (sent_at(seq_at(2000)), sent_at(again) + 0.3)
    found = told_of(flow)
    assert (found.answered, found.lost, found.outages[0].lost) == (None, None, None)


def test_two_pods_by_turns_are_not_put_into_an_order() -> None:
    """Each pod tells a sum, so A, B and A again cannot be told from A and then B."""
    row = received(NEW, 3000, (101, 120))
    told = [started(OLD, -6000), started(NEW, -3000), row, let_go(NEW)]
    old = received(OLD, 5195, (1, OLD_LAST), final=True, count=OLD_LAST - 20)
    flow = assert_unmeasured(judged([*told, old], cluster()), "received it by turns")
    assert (flow.role, flow.responders, told_of(flow).phases) == ("target", (), ())


def test_without_any_log_nothing_is_measured() -> None:
    flow = assert_unmeasured(judged([], cluster()), "no log of pod uid-old")
    assert (flow.role, told_of(flow).phases, told_of(flow).outages) == (None, (), ())


def test_a_ready_pod_without_a_log_may_have_received_what_the_old_one_did_not() -> None:
    told = [started(OLD, -6000), FINAL, s.pod(NEW, 2000)]
    assert assert_unmeasured(judged(told, cluster()), "no log of pod uid-new").role == "target"


@pytest.mark.parametrize(
    ("seqs", "lacking"),
    [((1, LAST_SEQ), 0), ((1, HALF), 0), ((2, LAST_SEQ), 0), ((1, LAST_SEQ), 1)],
)
def test_a_pod_whose_log_broke_matters_to_what_nobody_else_received(
    seqs: tuple[int, int], lacking: int
) -> None:
    """Another pod's log broke before it told anything of this flow."""
    row = received(OTHER, 59_990, seqs, count=seqs[1] - seqs[0] + 1 - lacking)
    told = [started(OTHER, -6000), row, s.pod(OTHER, -6000)]
    report = judged(
        [*told, started(NEW, -6000), s.pod(NEW, -6000), let_go(NEW, BROKE)],
        [started(OLD, -6000)],
        cluster(),
    )
    if seqs == (1, LAST_SEQ) and not lacking:
        assert flow_of(report).outcome == "survived-observation-window"
        assert told_of(flow_of(report)).lost == 0
    else:
        assert_unmeasured(report, "the log of pod uid-new broke off")


def test_a_restarted_process_that_told_nothing_may_have_received() -> None:
    """Its log was let go at the first process's last words."""
    again = s.pod(OTHER, 12_000, containers=[{**s.LIVE, "restarts": 1}])
    first = s.log(Event.EXITING, 20_000, OTHER, nonce="n", code=1)
    before = s.pod(OTHER, -6000, containers=[s.LIVE])
    report = bystander(before, first, s.log_ended(OTHER), again)
    assert_unmeasured(report, "a process of pod uid-other told nothing")
    known = s.log(Event.PROBE_STARTED, 12_000, OTHER, nonce="m")
    assert flow_of(bystander(before, first, again, known)).mechanism == "silence"


def test_the_end_of_a_process_before_is_not_the_end_of_this_one() -> None:
    frames = [
        s.pod(OTHER, -6000, containers=[s.LIVE]),
        s.pod(OTHER, 10_000, containers=[s.gone(1)]),
        s.pod(OTHER, 12_000, containers=[{**s.LIVE, "restarts": 1}]),
    ]
    told = [
        started(OTHER, -6000),
        received(OTHER, 9_500, (1, seq_at(9_400))),
        received(OTHER, 20_000, (seq_at(12_000), HALF), nonce="m"),
        started(OLD, -6000),
    ]
    flow = flow_of(judged(told, frames, [let_go(OTHER, BROKE)], cluster()))
    assert (flow.mechanism, told_of(flow).lost) == ("rehomed", None)
    assert [p.kind for p in told_of(flow).phases] == [PhaseKind.ALIVE, PhaseKind.REHOMED]
    flow = flow_of(judged(told, frames, [let_go(OTHER)], cluster()))
    assert told_of(flow).lost == LAST_SEQ - HALF


def test_what_was_lost_before_the_first_receipt_is_counted() -> None:
    row = received(OLD, 5195, (50, OLD_LAST), final=True)
    flow = flow_of(judged([started(OLD, -6000), row], cluster()))
    found = told_of(flow)
    assert (flow.outcome, flow.mechanism) == ("severed", "silence")
    assert found.lost == 49 + LAST_SEQ - OLD_LAST
    assert found.sent == s.total(found.answered, found.lost)


def test_an_error_ends_no_flow_that_was_not_measured() -> None:
    refusal = s.client(
        Event.FLOW_ICMP, FLOW, at(5240, 5241), type=3, code=3, errno="ECONNREFUSED",
        count=1, seq=OLD_LAST + 1,
    )  # fmt: skip
    client = sender(LAST_SEQ, refusal)
    report = judged([started(OLD, -6000), FINAL, s.pod(NEW, 2000)], cluster(), client=client)
    (outage,) = told_of(assert_unmeasured(report, "no log of pod uid-new")).outages
    assert outage.lost is None


def test_a_flow_that_may_be_the_target_s_leaves_the_last_end_unknown() -> None:
    reset = s.client(Event.FLOW_RESET, "tcp-0001", at(5190, 5191))
    moved = s.responder("udp-0001", NEW, 5100, 5110, previous=OLD)
    others = [*s.alive("tcp-0001", 5100), reset, *s.alive("udp-0001", 5100), moved]
    term = s.log(Event.SIGTERM_RECEIVED, 40, nonce="n")
    late = received(OLD, 5195, (2, OLD_LAST), final=True)
    known = judged(others, [started(OLD, -6000), term, late], cluster())
    assert known.trial.summary.sigterm_to_last_flow_terminal_ns is not None
    assert figures(known)[Metric.LAST_UDP] is not None
    report = judged(others, [started(OLD, -6000), term, late, s.pod(NEW, 2000)], cluster())
    assert flow_of(report).role is None  # the new one may have received seq 1
    assert report.trial.summary.sigterm_to_last_flow_terminal_ns is None
    assert figures(report)[Metric.LAST_UDP] is None


# --- whatever happens ------------------------------------------------------------------------

PODS = ("uid-a", "uid-b", "uid-c")
PATH = st.lists(
    st.tuples(st.sampled_from([*PODS, None]), st.sampled_from([1, 5, 90, 200])), max_size=5
)
LOGS = st.tuples(*[st.sampled_from(["whole", "whole", "none", 60, 250])] * 3)


@given(PATH, LOGS)
def test_no_claim_contradicts_what_really_happened(
    path: list[tuple[str | None, int]], logs: tuple[str | int, ...]
) -> None:
    """Who received each datagram is known here; a pod's log breaks at a send, or is missing."""
    truth = [who for who, number in [(PODS[0], 120), *path] for _ in range(number)]
    told = [started(OLD, -6000), *cluster()]
    for uid, log in zip(PODS, logs, strict=True):
        until = len(truth) if log == "whole" else log if isinstance(log, int) else 0
        had = [seq for seq, who in enumerate(truth, 1) if who == uid and seq <= until]
        told.append(s.pod(uid, -6000))
        if log == "none":
            continue
        told += [started(uid, -6000), let_go(uid, None if log == "whole" else BROKE)]
        if had:
            row = received(uid, sent_at(had[-1]) + 1, (had[0], had[-1]), count=len(had))
            told.append(row)
    flow = flow_of(judged(told, client=sender(len(truth))))
    found = told_of(flow)
    if found.lost is not None:
        assert s.total(found.lost, found.open) == truth.count(None)
    if found.answered is not None:
        assert found.answered == len(truth) - truth.count(None)
    for phase in found.phases:
        if phase.responder is not None and phase.answered is not None:
            assert phase.answered <= truth.count(phase.responder.partition("/")[0])
    if flow.outcome == "survived-observation-window":
        assert set(truth) <= {PODS[0], None}
    if flow.terminal_ns is not None:
        others = [seq for seq, who in enumerate(truth, 1) if who in PODS[1:]]
        before = others[0] if others else len(truth) + 1
        last = max(seq for seq in range(1, before) if truth[seq - 1] == PODS[0])
        lo, hi = ms_of(flow.terminal_ns)
        assert lo <= sent_at(last) <= hi
    if flow.mechanism == "rehomed":
        assert set(truth) & set(PODS[1:])
