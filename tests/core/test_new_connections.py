"""New connections: attempts in, judged with bounds that hold whatever happened inside a run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Integrity, TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.document import FAILED, Doubt, NewConnections
from pytest_drainwatch.core.probing.judge import RUNS_KEPT
from pytest_drainwatch.core.probing.result import Result
from tests.core import story as s
from tests.core.story import NEW, OLD, at
from tests.core.tries import PERIOD_MS, Try, prober, tries

MS = NS_PER_MS


def trial(
    *attempts: Sequence[Try], also: Iterable[Observation] = (), missed: int = 0
) -> TrialReport:
    """An ordinary drain with new connections beside it."""
    told = s.recording([s.accepted()], s.cluster(), prober(*attempts, missed=missed), also)
    return derive(told).trial


def judged(
    *attempts: Sequence[Try], also: Iterable[Observation] = (), missed: int = 0
) -> NewConnections:
    (found,) = trial(*attempts, also=also, missed=missed).new_connections
    return found


BEFORE = tries(-5000, 1000)
REFUSED = tries(100, 14, Result.REFUSED)
AFTER = tries(170, 600, who=NEW)


def test_an_ordinary_gap() -> None:
    found = judged(BEFORE, tries(0, 20), REFUSED, AFTER, missed=3)
    assert (found.prober, found.proto, found.interval_ns) == ("tcp-new", "tcp", 5 * MS)
    assert (found.attempts, found.failed) == (634, 14)
    assert found.results == {"answered": 620, "refused": 14}
    assert (found.attempts_before, found.failed_before) == (1000, 0)
    assert found.missed_slots == 3
    assert found.lost == 0
    failing = found.observed_failing
    assert failing is not None
    assert failing.first_ns == (100 * MS, 100.5 * MS)
    assert failing.last_ns == (165 * MS, 165.5 * MS)
    assert failing.lasts_ns == (64.5 * MS, 65.5 * MS)
    assert failing.begun_ns == (100 * MS, 165 * MS)
    assert (failing.attempts, failing.failures) == (14, 14)
    assert found.last_answered_ns is not None
    assert found.last_answered_ns[0] > failing.last_ns[1], "it recovered"
    assert [(run.result, run.count) for run in found.runs] == [
        ("answered", 1020),
        ("refused", 14),
        ("answered", 600),
    ]


def test_none_that_failed_has_a_bound_and_no_window() -> None:
    found = judged(BEFORE, tries(0, 1600))
    assert (found.attempts, found.failed) == (1600, 0)
    assert found.failure_rate is not None
    assert found.failure_rate.low == 0
    assert found.failure_rate.high == pytest.approx(0.00187059)
    assert found.observed_failing is None
    assert found.notes == ("no attempt failed since the trigger",)


def test_nothing_tried_is_not_nothing_failed() -> None:
    report = derive(s.recording([s.accepted()], s.cluster())).trial
    assert report.new_connections == ()
    assert any(note.startswith("no new connections were tried") for note in report.notes)


def test_a_prober_that_left_nothing_says_so() -> None:
    config: dict[str, object] = {"probe_interval_ms": 5.0}
    report = derive(s.recording([s.accepted()], s.cluster(), config=config)).trial
    assert any("the recording tells of none" in note for note in report.notes)


def test_a_single_failure_lasts_no_time() -> None:
    found = judged(tries(0, 5), tries(25, 1, Result.RESET), tries(30, 5))
    assert found.observed_failing is not None
    assert found.observed_failing.lasts_ns == (0, 0)
    events = [e.event for e in trial(tries(0, 5), tries(25, 1, Result.RESET)).timeline]
    assert events.count("new_connections_fail") == 1
    assert "new_connections_last_failed" not in events


def test_a_syn_that_was_under_way_counts_where_it_failed() -> None:
    """Sent before the trigger, and failed after it, or before it."""
    after = judged(BEFORE[:-1], [Try(1999, -5, Result.REFUSED, None, 6)], tries(0, 20))
    assert (after.failed, after.failed_before) == (1, 0)
    assert after.observed_failing is not None
    assert after.observed_failing.first_ns == (-5 * MS, 1 * MS)
    before = judged(BEFORE[:-1], [Try(1999, -5, Result.REFUSED, None, 4)], tries(0, 20))
    assert (before.failed, before.failed_before) == (0, 1)
    assert before.observed_failing is None
    assert any("the path was not clean" in note for note in before.notes)


def test_the_timeline_has_the_first_and_the_last_that_failed() -> None:
    gaps = [tries(100, 1, Result.REFUSED), tries(105, 2), tries(115, 1, Result.TIMEOUT)]
    shown = [
        (e.t_ms, e.event, e.subject, e.detail)
        for e in trial(*gaps).timeline
        if e.event.startswith("new_connections")
    ]
    detail = "2 of 4 attempts: 1 refused, 1 timeout"
    assert shown == [
        (100, "new_connections_fail", "tcp-new", detail),
        (1115, "new_connections_last_failed", "tcp-new", detail),
    ]


def test_an_answer_to_a_new_connection_shows_that_the_container_lives() -> None:
    before = trial(REFUSED).summary.trigger_to_container_terminated_ns
    after = trial(tries(0, 900), tries(4500, 2, who=NEW)).summary
    assert before == (0, 5200 * MS)
    assert after.trigger_to_container_terminated_ns == (4495 * MS, 5200 * MS)


def test_a_report_from_before_there_were_probers_is_still_read() -> None:
    whole = derive(s.recording([s.accepted()], s.cluster(), prober(REFUSED)))
    assert report.loads(report.dumps(whole)) == whole
    plain = json.loads(report.dumps(whole))
    for pod in plain["trial"]["windows"]:  # from before windows had breaks
        for name in ("advertised", "ready_routable", "dead_endpoint"):
            del pod[name]["breaks"]
        for span in pod["fallback_routable"]:
            del span["breaks"]
    assert report.loads(json.dumps(plain)) == whole
    for name in ("windows", "new_connections", "integrity", "degraded"):
        del plain["trial"][name]
    older = report.loads(json.dumps(plain)).trial
    assert (older.windows, older.new_connections, older.degraded) == ((), (), ())
    assert older.integrity is None, "not judged, which is not ok"


# --- who answered ----------------------------------------------------------------------------


def test_answers_of_a_terminating_pod_are_counted_within_bounds() -> None:
    """Deleted within [0, 12] ms, unready within [0, 20] ms: those in between may be either."""
    found = judged(BEFORE, tries(0, 10), tries(50, 40, who=NEW))
    old, new = sorted(found.answered_by, key=lambda pod: pod.role, reverse=True)
    assert (old.pod_uid, old.role, old.attempts) == (OLD, "target", 10)
    assert old.by_terminating == (7, 10)  # begun at 15, 20, … 45 ms, surely after 12 ms
    assert old.after_unready == (5, 10)
    assert (new.pod_uid, new.role, new.by_terminating) == (NEW, "bystander", None)
    assert (found.by_terminating, found.after_unready) == (7, 5)


def test_somebody_elses_answer_is_a_failure_by_a_foreigner() -> None:
    report = trial(tries(0, 10), tries(50, 2, who="uid-stranger"), tries(60, 5))
    (found,) = report.new_connections
    assert (found.failed, found.results["foreign"]) == (2, 2)
    assert report.integrity is Integrity.FOREIGN_RESPONDER
    assert trial(tries(0, 10)).integrity is Integrity.OK


def test_behind_a_gap_of_the_pods_watch_a_stranger_is_not_judged() -> None:
    gap = Observation(
        source=Source.K8S, event=Event.WATCH_GAP, at=at(10, 40), data={"resource": "pods"}
    )
    report = trial(tries(0, 10), tries(50, 2, who="uid-stranger"), also=[gap])
    (found,) = report.new_connections
    assert found.failed == 0
    assert (found.results["stranger"], found.not_judged) == (2, 2)
    assert report.integrity is None, "who answered is not known"
    assert any("integrity is null" in note for note in report.notes)
    assert found.failure_rate is not None
    assert found.failure_rate.high > 2 / 12, "they may have been foreign"


def test_answers_of_nobody_known_are_no_foreigners() -> None:
    """A run that lacks its responder: a damaged recording is no evidence against anybody."""
    whole = prober(tries(0, 10), tries(50, 2, who=NEW), tries(60, 5))
    for lacking in ({"responder": None}, {"responder": ""}, {"responder": 7}):
        seen = [
            replace(o, data={**o.data, **lacking}) if o.data.get("count") == 2 else o for o in whole
        ]
        report = derive(s.recording([s.accepted()], s.cluster(), seen)).trial
        (found,) = report.new_connections
        assert (found.failed, found.not_judged) == (0, 2)
        assert report.integrity is None


def test_what_is_not_known_of_a_target_that_answered_is_null() -> None:
    """No slice was seen, so nobody knows when it was not ready."""
    seen = [o for o in s.cluster() if o.event is not Event.ENDPOINT_SLICE]
    (found,) = derive(s.recording([s.accepted()], seen, prober(tries(0, 10)))).trial.new_connections
    assert (found.by_terminating, found.after_unready) == (7, None)
    assert any("after_unready is null" in note for note in found.notes)
    assert judged(tries(0, 10)).after_unready == 5
    assert not any("null" in note for note in judged(tries(0, 10)).notes)
    assert judged(tries(100, 10, who=NEW)).after_unready == 0, "no target answered"


def test_a_prober_that_affinity_pins_elsewhere_says_so() -> None:
    pinned: dict[str, object] = {"session_affinity": "ClientIP"}
    elsewhere = prober(tries(-500, 50, who=NEW), tries(0, 50, who=NEW))
    here = prober(tries(-500, 50), tries(0, 50))
    free: dict[str, object] = {"session_affinity": "None"}
    for config, tried, says in (
        (pinned, elsewhere, True),
        (pinned, here, False),
        (free, elsewhere, False),
    ):
        told = s.recording([s.accepted()], s.cluster(), tried, config=config)
        (found,) = derive(told).trial.new_connections
        assert any("pins this prober" in note for note in found.notes) is says


@pytest.mark.parametrize(("round_s", "says"), [(28, True), (150, False), (None, False)])
def test_ports_that_are_used_again_too_soon(round_s: int | None, says: bool) -> None:
    *runs, summary = prober(tries(0, 50))
    round_ns = None if round_s is None else round_s * 1000 * MS
    summary = replace(summary, data={**summary.data, "ports_round_ns": round_ns})
    told = s.recording([s.accepted()], s.cluster(), runs, [summary])
    (found,) = derive(told).trial.new_connections
    assert any("used again after 28 s" in note for note in found.notes) is says


@pytest.mark.parametrize(
    ("sources", "says"),
    [(["10.0.0.1", "10.0.0.2"], False), (["10.0.0.1"], True), ([], True), (None, False)],
)
def test_flows_and_prober_from_one_address(sources: list[str] | None, says: bool) -> None:
    data = {} if sources is None else {"sources": sources}
    way = Observation(source=Source.ORCHESTRATOR, event=Event.WAY_CHOSEN, at=at(-9000), data=data)
    told = s.recording([s.accepted()], [way], s.cluster(), prober(tries(0, 50)))
    assert any("share a source address" in note for note in derive(told).trial.notes) is says
    without = derive(s.recording([s.accepted()], [way], s.cluster())).trial
    assert not any("share a source address" in note for note in without.notes)


def test_runs_on_either_side_of_a_lost_one_are_two() -> None:
    whole = prober(tries(0, 20), tries(100, 5, Result.REFUSED), tries(125, 20))
    left = [o for o in whole if o.data.get("result") != "refused"]
    (found,) = derive(s.recording([s.accepted()], s.cluster(), left)).trial.new_connections
    assert [run.count for run in found.runs] == [20, 20]
    apart = judged(tries(0, 20), tries(125, 20), missed=5)
    assert [run.count for run in apart.runs] == [40], "slots that were missed were not lost"


# --- what had nothing to do with the trigger -------------------------------------------------


def test_a_pod_that_went_unready_before_anybody_told_it_to_end_degrades() -> None:
    def degraded(*frames: Observation) -> tuple[str, ...]:
        told = s.recording([s.accepted()], s.cluster(), prober(tries(-500, 200)), frames)
        return derive(told).trial.degraded

    assert degraded() == ()
    other = [s.pod("uid-other", -6000), s.pod("uid-third", -6000)]
    flaps = [s.pod("uid-other", 1000, ready=False), s.pod("uid-other", 2000)]
    (line,) = degraded(*other, *flaps)
    assert line.startswith("1 pod(s) went unready before anybody told them to end")
    third = s.pod("uid-third", 1500, ready=False)
    assert degraded(*other, *flaps, third)[0].startswith("2 pod(s)")
    # A pod that starts is not ready yet, and one that was told to end is not any more.
    starting = [s.pod("uid-next", 1000, ready=False), s.pod("uid-next", 2000)]
    leaving = s.pod("uid-other", 1000, ready=False, deletion_timestamp="then")
    assert degraded(*other, *starting, leaving) == ()
    # What was over before the first attempt is nobody's business.
    early = [s.pod("uid-other", -5000, ready=False), s.pod("uid-other", -4000)]
    assert degraded(*other, *early) == ()
    gone = s.endpoints(1000, (NEW, False, False, False))
    back = [s.endpoints(900, (NEW, True, True, False)), gone]
    assert degraded(*back)[0].startswith("1 pod(s)"), "where only its endpoint was seen"


def test_stalls_of_an_agent_that_waited_for_its_turn_like_anybody_degrade() -> None:
    def degraded(scheduler: str, *stalls: tuple[float, float]) -> tuple[str, ...]:
        started = s.client(Event.AGENT_STARTED, "", s.at(-9000), scheduler=scheduler)
        passed = Observation(
            source=Source.ORCHESTRATOR, event=Event.PREFLIGHT_PASSED, at=s.at(-6000)
        )
        late = [
            s.client(Event.AGENT_STALLED, "", s.at(lo, hi), late_ns=s.ns(hi) - s.ns(lo))
            for lo, hi in stalls
        ]
        told = s.recording([s.accepted()], s.cluster(), prober(tries(-500, 200)),
                           [started, passed], late)  # fmt: skip
        return derive(told).trial.degraded

    (line,) = degraded("other", (-500, -470), (200, 260))
    assert "no real-time priority (scheduler other) and stalled 2 time(s), for 60 ms" in line
    assert degraded("other") == ()
    assert degraded("rr", (200, 260)) == (), "rare, and shown as what it is"
    assert degraded("other", (-8000, -7900)) == (), "while it dialled"


def test_attempts_that_failed_before_the_trigger_degrade() -> None:
    report = trial(tries(-500, 3, Result.REFUSED), tries(-400, 100))
    assert report.degraded == (
        "tcp-new: 3 attempt(s) failed before the trigger: what fails since may not be its doing",
    )
    assert trial(tries(-400, 100)).degraded == ()
    assert trial(tries(-400, 100), tries(200, 3, Result.REFUSED)).degraded == ()


# --- what is not the workload's --------------------------------------------------------------


def test_our_own_limits_are_in_no_rate_and_no_window() -> None:
    report = trial(tries(0, 10), tries(50, 30, Result.CLIENT_LIMIT), tries(200, 10))
    (found,) = report.new_connections
    assert (found.attempts, found.failed, found.results["client-limit"]) == (20, 0, 30)
    assert found.failure_rate == judged(tries(0, 20)).failure_rate
    assert found.observed_failing is None
    assert report.degraded


def test_what_the_prober_did_not_wait_for_may_have_failed() -> None:
    """An outage to the end: whoever stops looking does not know how long it lasted."""
    failing = tries(100, 10, Result.REFUSED)
    left = tries(200, 30, Result.UNFINISHED, took_ms=700)
    found = judged(tries(0, 20), failing, left)
    assert (found.attempts, found.failed, found.not_judged) == (30, 10, 30)
    assert found.results["unfinished"] == 30
    assert found.failure_rate is not None
    assert found.failure_rate.low < 10 / 60
    assert found.failure_rate.high > 40 / 60
    assert found.observed_failing is not None
    assert found.observed_failing.last_ns[1] >= 1045 * MS, "the window reaches over them"
    clean = judged(tries(0, 20), left)
    assert "no attempt failed since the trigger" not in clean.notes
    assert any("30 attempt(s) are not judged" in note for note in clean.notes)
    assert clean.failure_rate is not None
    assert clean.failure_rate.high > 30 / 50


def stalled(lo_ms: float, hi_ms: float) -> list[Observation]:
    return [s.client(Event.AGENT_STALLED, "", at(lo_ms, hi_ms))]


def test_silence_over_a_long_pause_is_not_judged() -> None:
    """The prober's patience is 1 s."""
    silent = tries(50, 1, Result.TIMEOUT)
    assert judged(tries(0, 10), silent).failed == 1
    found = judged(tries(0, 10), silent, also=stalled(400, 900))
    assert (found.failed, found.not_judged) == (0, 1)
    assert found.results == {"answered": 10, "client-stall": 1}
    assert found.failure_rate is not None
    assert found.failure_rate.high > 1 / 11, "it may have failed"
    assert judged(tries(0, 10), silent, also=stalled(400, 899)).failed == 1, "half a second to look"
    assert judged(tries(0, 10), silent, also=stalled(1060, 1900)).failed == 1, "over before"
    parts = [*stalled(100, 400), *stalled(500, 700)]
    assert judged(tries(0, 10), silent, also=parts).not_judged == 1, "together they are as long"


def test_short_pauses_hide_no_outage() -> None:
    """5 s without an answer, and 21 ms of a busy machine in every 900 ms of it."""
    outage = tries(1000, 800, Result.TIMEOUT)
    pauses = [one for n in range(8) for one in stalled(600 + 900 * n, 621 + 900 * n)]
    found = judged(tries(0, 10), outage, tries(6100, 10), also=pauses)
    assert (found.failed, found.not_judged) == (800, 0)


def test_of_a_long_run_only_the_silence_over_the_pause_is_not_judged() -> None:
    silent = tries(1000, 400, Result.TIMEOUT)  # begun from 1 s to 2.995 s, each takes 1 s
    found = judged(tries(0, 10), silent, also=stalled(2500, 3100))
    assert found.failed + found.not_judged == 400
    # Those of which it hid half a second: begun from 2 s to 2.6 s, and one more at either end.
    assert 120 <= found.not_judged <= 123
    failing = found.observed_failing
    assert failing is not None
    assert failing.failures == found.failed
    assert failing.first_ns[0] == 1000 * MS


def test_what_a_sleep_was_over_is_not_judged() -> None:
    """CLOCK_MONOTONIC stood still: the workload may have waited for a day."""
    slept = [s.client(Event.HOST_SUSPENDED, "", at(400, 401))]
    for result in (Result.TIMEOUT, Result.NEVER_SERVED, Result.REFUSED):
        found = judged(tries(0, 10), tries(50, 1, result, took_ms=900), also=slept)
        assert (found.failed, found.not_judged) == (0, 1)


def test_a_refusal_needs_no_clock_of_ours() -> None:
    """A stall delays the news of it and cannot make it; only a sleep hides what came before."""
    refused = tries(50, 4, Result.REFUSED, took_ms=100)
    assert judged(tries(0, 10), refused, also=stalled(60, 140)).failed == 4
    slept = [s.client(Event.HOST_SUSPENDED, "", at(60, 140))]
    assert judged(tries(0, 10), refused, also=slept).not_judged == 4


def test_attempts_that_the_recording_lost_may_have_failed() -> None:
    whole = prober(tries(0, 20), REFUSED, AFTER)
    runs = [o for o in whole if o.event is Event.NEW_CONNECTIONS]
    for gone in runs:
        left = [o for o in whole if o is not gone]
        (found,) = derive(s.recording([s.accepted()], s.cluster(), left)).trial.new_connections
        assert found.lost == gone.data["count"]
        assert found.failure_rate is not None
        assert found.failure_rate.high >= 14 / 634
        assert any("missing from the recording" in note for note in found.notes)
        assert "no attempt failed since the trigger" not in found.notes
    without = [o for o in whole if o.event is not Event.PROBER_SUMMARY]
    (found,) = derive(s.recording([s.accepted()], s.cluster(), without)).trial.new_connections
    assert found.lost is None
    assert found.failure_rate is None


def test_very_many_runs_are_cut_in_the_middle() -> None:
    ways = [Result.ANSWERED, Result.REFUSED]
    found = judged([one for n in range(300) for one in tries(n * 5, 1, ways[n % 2])])
    assert len(found.runs) == RUNS_KEPT
    assert found.runs_left_out == 300 - RUNS_KEPT
    assert found.failed == 150


def test_the_work_grows_with_the_runs_and_not_with_their_square() -> None:
    def costs_s(runs: int) -> float:
        attempts = [
            one for n in range(runs) for one in tries(n, 1, who=[OLD, NEW][n % 2], period_ms=1)
        ]
        told = s.recording([s.accepted()], s.cluster(), prober(attempts, period_ms=1))
        began = time.process_time()
        (found,) = derive(told).trial.new_connections
        assert found.attempts == runs
        return time.process_time() - began

    least, most = (min(costs_s(runs) for _ in range(3)) for runs in (1_000, 10_000))
    assert most < 40 * least, "a square would be a hundred times as much"


# --- whatever happened inside a run ----------------------------------------------------------

KINDS = [(Result.ANSWERED, OLD), (Result.ANSWERED, NEW), (Result.REFUSED, None)]


@st.composite
def truths(draw: st.DrawFn) -> list[Try]:
    """Attempts as they were: each late by less than a slot, some slots missed."""
    slot, found = 2000 - draw(st.integers(0, 40)), []
    for _ in range(draw(st.integers(1, 6))):
        result, who = draw(st.sampled_from([*KINDS, (Result.TIMEOUT, None)]))
        for _ in range(draw(st.integers(1, 12))):
            slot += draw(st.sampled_from([1, 1, 1, 1, 2, 5]))
            late = draw(st.integers(0, 49)) / 10
            took = draw(st.sampled_from([0.1, 0.5, 4.0, 30.0]))
            begun = (slot - 2000) * PERIOD_MS + late
            found.append(Try(slot, begun, result, who, took))
    return found


def over(one: Try) -> float:
    return one.ms + one.took_ms


@given(truths())
@settings(max_examples=100, deadline=None)
def test_the_truth_lies_within_what_is_reported(attempts: list[Try]) -> None:
    found = judged(attempts)
    failed = [one for one in attempts if one.result in FAILED]
    since = [one for one in failed if over(one) >= 0]
    assert found.attempts + found.attempts_before == len(attempts)
    assert found.failed + found.failed_before == len(failed)
    assert found.failed >= len(since), "whatever failed after the trigger counts as such"
    failing = found.observed_failing
    assert (failing is None) == (found.failed == 0)
    if failing is not None and since:
        began, ended = failing.first_ns, failing.last_ns
        # The first failure is somewhere between the begin and the result of one of them.
        assert began[0] <= min(one.ms for one in since) * MS + 1
        assert ended[1] >= max(over(one) for one in since) * MS - 1
        assert ended[0] <= max(over(one) for one in since) * MS
        assert failing.lasts_ns[1] >= (max(o.ms for o in since) - min(map(over, since))) * MS - 1
        assert failing.failures == found.failed
        assert failing.begun_ns[1] >= max(one.ms for one in since) * MS - 1


@given(truths())
@settings(max_examples=100, deadline=None)
def test_so_do_the_answers_of_a_terminating_pod(attempts: list[Try]) -> None:
    found = judged(attempts)
    told = {pod.pod_uid: pod for pod in found.answered_by}
    mine = [one for one in attempts if one.who == OLD]
    if OLD not in told:
        assert all(one.ms < 0 for one in mine)
        return
    bounds = told[OLD].by_terminating
    assert bounds is not None
    # It was deleted within [0, 12] ms: for any such instant the truth is inside.
    for deleted_ms in (0, 6, 12):
        sure = sum(one.ms > deleted_ms for one in mine)
        possible = sum(over(one) >= deleted_ms for one in mine)
        assert bounds[0] <= possible
        assert bounds[1] >= sure
    assert bounds[0] <= bounds[1]


@given(truths(), st.data())
@settings(max_examples=100, deadline=None)
def test_with_less_evidence_nothing_else_becomes_certain(
    attempts: list[Try], data: st.DataObject
) -> None:
    """Runs dropped, stalls added: bounds hold the old ones, and no failure turns into none."""
    whole = prober(attempts)
    sure = derive(s.recording([s.accepted()], s.cluster(), whole)).trial.new_connections[0]
    gone = data.draw(st.sets(st.integers(0, len(whole) - 2)))
    lo = data.draw(st.integers(-200, 400))
    more = data.draw(st.sampled_from([[], stalled(lo, lo + 3), stalled(lo, lo + 300)]))
    left = [o for n, o in enumerate(whole) if n not in gone]
    less = derive(s.recording([s.accepted()], s.cluster(), left, more)).trial.new_connections[0]
    unknown = less.not_judged + (less.lost or 0)
    assert less.failed <= sure.failed <= less.failed + unknown
    assert less.by_terminating is not None
    assert sure.by_terminating is not None
    assert less.by_terminating <= sure.by_terminating
    if sure.failure_rate and less.failure_rate and not sure.failed_before:
        rate = sure.failed / sure.attempts
        assert less.failure_rate.low <= rate <= less.failure_rate.high or sure.attempts_before
    if less.observed_failing is not None:
        assert sure.observed_failing is not None
        for name in ("first_ns", "last_ns", "lasts_ns"):
            now, was = getattr(less.observed_failing, name), getattr(sure.observed_failing, name)
            assert now[0] <= was[0], name
            assert was[1] <= now[1], name
    elif sure.observed_failing is not None:
        assert unknown > 0
        assert "no attempt failed since the trigger" not in less.notes


def test_each_doubt_is_named_apart_from_the_results() -> None:
    assert not {str(doubt) for doubt in Doubt} & {str(result) for result in Result}
    assert set(Result) - {Result.ANSWERED, Result.CLIENT_LIMIT, Result.UNFINISHED} == FAILED


def test_a_run_that_cannot_be_is_missing() -> None:
    """A damaged run is as good as none: its attempts may have failed."""
    whole = prober(tries(0, 20), REFUSED)
    for odd in ({"result": "who knows"}, {"count": 0}, {"last_ns": 1}, {"first_took_ns": -5}):
        seen = [
            replace(o, data={**o.data, **odd}) if o.data.get("result") == "refused" else o
            for o in whole
        ]
        (found,) = derive(s.recording([s.accepted()], s.cluster(), seen)).trial.new_connections
        assert (found.failed, found.lost) == (0, 14), odd
