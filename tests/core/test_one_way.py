"""One-way UDP, judged from what the pods say they received (case C01)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_drainwatch.core.clock import clocks
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.start import CannotDerive
from pytest_drainwatch.core.udp.continuity import PhaseKind
from pytest_drainwatch.core.udp.one_way import told_by_the_probe
from tests.core import story as s
from tests.core.one_way_story import (
    END_MS,
    FINAL,
    FLOW,
    LAST_SEQ,
    OLD_LAST,
    RATE_MS,
    cluster,
    flow_of,
    judged,
    ms_of,
    received,
    sender,
    sent_at,
    seq_at,
    started,
    told_of,
)
from tests.core.story import NEW, OLD, at


def test_received_to_the_end_by_the_same_pod_is_survival() -> None:
    """Another replica's flow. The last two are on their way when everything stops."""
    other = [started("uid-other", -6000), received("uid-other", END_MS, (1, LAST_SEQ - 2))]
    up = [s.pod("uid-other", -6000)]
    flow = flow_of(judged([started(OLD, -6000)], other, up, cluster()))
    assert (flow.outcome, flow.mechanism) == ("survived-observation-window", "none")
    assert flow.role == "bystander"
    assert told_of(flow).open == 2


def test_what_another_trials_agent_sent_is_not_ours() -> None:
    """A path still led to the address, which another trial's pod has by now: one process,
    two flows with one id, and each is told with its signature."""
    signed, pod = f"{FLOW}.9f3a0b1c", "uid-other"
    hello, *rest = sender()
    ours = Observation(
        source=hello.source,
        event=hello.event,
        at=hello.at,
        subject=FLOW,
        data={**hello.data, "note": signed},
    )
    logs = [
        started(OLD, -6000),
        started(pod, -6000),
        received(pod, END_MS, (1, LAST_SEQ - 2), flow=signed),
        received(pod, END_MS, (3, 90), flow=f"{FLOW}.00000000", duplicates=37),
        received(OLD, 9_000, (40, 80), flow=FLOW),
    ]
    flow = flow_of(judged(logs, [s.pod(pod, -6000)], cluster(), client=[ours, *rest]))
    assert flow.responders == (f"{pod}/n",)
    told = told_of(flow)
    assert (told.answered, told.open, told.duplicated) == (LAST_SEQ - 2, 2, 0)
    assert flow.outcome == "survived-observation-window"


def test_a_killed_pod_leaves_a_second_that_nobody_knows() -> None:
    """No last word: lost is only what was sent after its container had ended."""
    known = seq_at(9_400)
    told = [started(OLD, -6000), received(OLD, 9_500, (1, known))]
    flow = flow_of(judged(told, cluster(end_ms=10_100)))
    assert (flow.outcome, flow.mechanism) == ("severed", "silence")
    lo, hi = ms_of(flow.terminal_ns)
    assert lo == sent_at(known)
    assert 10_100 < hi < 10_100 + 3 * RATE_MS
    lost = s.total(told_of(flow).lost)
    # The sends' stamps are known to within their jitter, so the count is a lower bound.
    assert LAST_SEQ - seq_at(10_100) - 1 <= lost <= LAST_SEQ - seq_at(10_100)


def test_a_process_that_was_restarted_in_its_pod_left_no_last_word() -> None:
    """The pod lives; the first process in it does not, and its end is not known."""
    pod = "uid-other"
    known, again = seq_at(9_400), seq_at(12_000)
    first = received(pod, 9_500, (1, known))
    second = received(pod, END_MS, (again, LAST_SEQ), nonce="m")
    logs = [started(pod, -6000), first, second, started(OLD, -6000)]
    flow = flow_of(judged(logs, [s.pod(pod, -6000)], cluster()))
    assert flow.responders == (f"{pod}/n", f"{pod}/m")
    assert flow.mechanism == "rehomed"
    # Somewhere between what is known of the one and of the other: no loss shows where.
    assert ms_of(flow.terminal_ns) == (sent_at(known), sent_at(again) + 0.3)
    assert told_of(flow).lost == 0


def test_a_killed_pod_whose_end_is_unknown_is_not_measured() -> None:
    told = [started(OLD, -6000), received(OLD, 9_500, (1, seq_at(9_400)))]
    report = judged(told, [s.deleted()])
    flow = flow_of(report)
    assert flow.outcome == "not-measured"
    assert any(FLOW in note and "ends before the pod did" in note for note in report.trial.notes)


def test_a_ready_pod_without_a_log_may_have_received_everything() -> None:
    ready = [s.pod(NEW, 6000, ready=True)]
    report = judged([started(OLD, -6000), FINAL], cluster(), ready)
    assert flow_of(report).outcome == "not-measured"
    assert any("no log of pod uid-new" in note for note in report.trial.notes)


def test_icmp_errors_are_evidence_here_too() -> None:
    refusal = s.client(
        Event.FLOW_ICMP, FLOW, at(5240, 5241), type=3, code=3, errno="ECONNREFUSED",
        count=1, seq=OLD_LAST + 1,
    )  # fmt: skip
    client = sender(LAST_SEQ, refusal)
    flow = flow_of(judged([started(OLD, -6000), FINAL], cluster(), client=client))
    assert (flow.outcome, flow.mechanism) == ("severed", "refused")
    assert ms_of(flow.terminal_ns)[0] == sent_at(OLD_LAST)
    assert [p.kind for p in told_of(flow).phases] == [PhaseKind.ALIVE, PhaseKind.REFUSED]


def test_a_clock_of_its_own_is_bounded_by_exchanges_or_the_flow_is_not_placed() -> None:
    other = "boot-2/1"
    told = [
        started(OLD, -6000),
        received(OLD, 5195, (1, OLD_LAST), clock=other, ahead_ms=300, final=True),
    ]
    again = [
        started(NEW, 6000),
        received(NEW, 59_900, (seq_at(8000), LAST_SEQ), clock=other, ahead_ms=300),
    ]
    flow = flow_of(judged(told, again, [_exchange(other, 300)], cluster()))
    assert flow.mechanism == "rehomed"
    _, hi = ms_of(told_of(flow).recovered_at_ns)
    ended = ms_of(flow.terminal_ns)
    # The first lost was sent up to 2 ms late; a passage takes 0.3 ms, the doubt, and jitter.
    assert ended[1] <= sent_at(OLD_LAST + 1) + 2 + 0.3 + 2 + 1
    # Sent at 8000, received 0.3 ms later on a clock known to within 1 ms and its drift.
    assert 8000.3 <= hi <= 8000.3 + 1 + 2
    report = judged(told, again, cluster())
    assert flow_of(report).outcome == "not-measured"
    assert any("nothing bounds the clock" in note for note in report.trial.notes)


def _exchange(clock: str, ahead_ms: float) -> Observation:
    stamps: Mapping[str, object] = {
        "t1": s.ns(0),
        "t2": s.ns(0.5 + ahead_ms),
        "t3": s.ns(0.5 + ahead_ms),
        "t4": s.ns(1),
    }
    return Observation(
        source=Source.CLIENT,
        event=Event.CLOCK_EXCHANGE,
        at=at(0, 1),
        subject=f"{OLD}/n",
        data={"clock": clock, **stamps},
    )


def test_a_client_that_was_killed_told_nothing_of_its_sends() -> None:
    again = seq_at(20_000)
    told = [
        started(OLD, -6000),
        FINAL,
        started(NEW, 19_000),
        received(NEW, 59_900, (again, LAST_SEQ)),
    ]
    seen = [sender()[0], *told]
    retold, notes = told_by_the_probe(seen, clocks(s.CLOCK, seen), ())
    assert Event.FLOW_UNANSWERED not in [o.event for o in retold]
    (note,) = notes
    assert note == f"{FLOW} is not known to its end: the client's record ends before the flow's"
    flow = judged(told, cluster(), client=[sender()[0]])
    assert (flow_of(flow).outcome, flow_of(flow).mechanism) == ("severed", "rehomed")
    found = told_of(flow_of(flow))
    assert (found.lost, found.open, found.outages[0].lost) == (None, None, None)
    assert found.answered == OLD_LAST + LAST_SEQ - again + 1  # every pod told all of it


def test_losses_on_the_way_are_counted_and_no_end() -> None:
    told = [started("uid-other", -6000)]
    row = received("uid-other", END_MS, (1, LAST_SEQ), count=LAST_SEQ - 100, reordered=3)
    up = [s.pod("uid-other", -6000), started(OLD, -6000)]
    flow = flow_of(judged(told, [row], up, cluster()))
    assert flow.outcome == "survived-observation-window"
    found = told_of(flow)
    assert (found.lost, found.reordered) == (100, 3)


def test_a_flow_that_nobody_received_before_the_trigger_was_never_held() -> None:
    with pytest.raises(CannotDerive, match="ended before the trigger"):
        judged([started(OLD, -6000)], cluster())
