"""Requests in, judged: what was served, what failed, when, and on which connections."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.http.document import How, KindRequests, Requests
from pytest_drainwatch.core.http.ending import Ending, LaneKind, Over, Pool
from pytest_drainwatch.core.http.fate import Fate
from pytest_drainwatch.core.http.whose import KnownBy
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.render.terminal import show
from tests.core import story as s
from tests.core.http.asked import Asked, Lane, end, http
from tests.core.story import NEW, OLD, at

MS = NS_PER_MS
POD, NEXT = f"pod-{OLD}", f"pod-{NEW}"


def trial(*parts: Iterable[Observation]) -> TrialReport:
    return derive(s.recording([s.accepted()], s.cluster(), *parts)).trial


def judged(*lanes: Lane, also: Iterable[Observation] = (), method: str = "GET") -> Requests:
    found = trial(http(*lanes, method=method), also).requests
    assert found is not None
    return found


def one_kind(*lanes: Lane, also: Iterable[Observation] = (), method: str = "GET") -> KindRequests:
    (kind,) = judged(*lanes, also=also, method=method).kinds
    return kind


def stalled(lo_ms: float, hi_ms: float) -> Observation:
    return Observation(
        source=Source.CLIENT,
        event=Event.AGENT_STALLED,
        at=at(lo_ms, hi_ms),
        data={"late_ns": round((hi_ms - lo_ms) * MS)},
    )


BEFORE = Asked(ms=-10_000, count=100)
OUTAGE = [
    Asked(ms=0, count=10),
    Asked(ms=1000, ended=Ending.RST, took_ms=1, errno="ECONNRESET"),
    *(
        Asked(ms=1100 + 100 * n, ended=Ending.REFUSED, pool=Pool.EMPTY, connection=2 + n)
        for n in range(9)
    ),
    Asked(ms=2000, count=100, pool=Pool.EMPTY, connection=20, by=NEXT),
]


def test_no_requests_no_section() -> None:
    found = trial()
    assert found.requests is None
    assert "HTTP" not in show(derive(s.recording([s.accepted()], s.cluster())))


def test_an_outage_from_the_last_that_was_served_to_the_first_one_again() -> None:
    found = one_kind(Lane(asked=[BEFORE, *OUTAGE], missed=4))
    assert (found.kind, found.lanes) == (LaneKind.KEEPALIVE, 1)
    assert (found.planned, found.missed_slots, found.requests) == (224, 4, 220)
    assert (found.attempts, found.served, found.failed) == (120, 110, 10)
    assert found.attempts_before == 100
    assert found.fates == {"served": 110, "written-then-reset": 1, "refused": 9}
    assert (found.retry_safe, found.not_retry_safe) == (10, 0)
    failing = found.failing
    assert failing is not None
    assert failing.first_ns == (1000 * MS, 1001 * MS)
    assert failing.last_ns == (1900 * MS, 1902 * MS)
    assert (failing.requests, failing.failures) == (10, 10)
    assert failing.served_before_ns == (900 * MS, 902 * MS)
    assert failing.recovered_ns == (2000 * MS, 2002 * MS)
    assert "224 requests were planned and 220 made: 4 slot(s) were missed" in found.notes[0]


def test_a_post_that_was_written_is_not_to_be_repeated() -> None:
    found = one_kind(Lane(asked=[BEFORE, *OUTAGE]), method="POST")
    assert (found.retry_safe, found.not_retry_safe) == (9, 1)


def test_part_of_a_response_forbids_to_repeat_even_a_get() -> None:
    cut = Asked(ms=1000, ended=Ending.FIN, received=True)
    whole = Asked(ms=1000, ended=Ending.FIN)
    assert one_kind(Lane(asked=[BEFORE, cut])).not_retry_safe == 1
    assert one_kind(Lane(asked=[BEFORE, whole])).not_retry_safe == 0


def test_without_failures_there_is_a_bound_and_a_word_against_more() -> None:
    found = one_kind(Lane(asked=[BEFORE, Asked(ms=0, count=100)]))
    assert (found.failed, found.failing) == (0, None)
    assert found.failure_rate is not None
    assert found.failure_rate.low == 0
    assert found.failure_rate.high > 0.02
    assert any("no proof of none" in note for note in found.notes)


def test_a_request_in_flight_at_the_trigger_belongs_to_the_time_since() -> None:
    lane = Lane(name="in-flight-00", asked=[Asked(ms=-4000, took_ms=10_000)])
    early = Lane(name="in-flight-01", asked=[Asked(ms=-4000, took_ms=10)])
    found = one_kind(lane, early)
    assert (found.attempts, found.attempts_before) == (1, 1)
    assert any("meant to be in flight" in note for note in found.notes)


def test_a_run_across_the_trigger_is_cut_there() -> None:
    found = one_kind(Lane(asked=[Asked(ms=-5000, count=100)]))
    assert (found.attempts_before, found.attempts) == (50, 50)


def test_what_is_lost_is_not_taken_for_served() -> None:
    asked = [BEFORE, Asked(ms=0, count=50)]
    whole, lost = one_kind(Lane(asked=asked)), one_kind(Lane(asked=asked, made=160))
    assert whole.failure_rate is not None
    assert lost.failure_rate is not None
    assert lost.failure_rate.high > whole.failure_rate.high + 0.1
    assert judged(Lane(asked=asked, made=160)).lost == 10
    assert lost.planned is None


def test_without_the_summary_no_rate() -> None:
    found = trial(http(Lane(asked=[BEFORE, Asked(ms=0, count=50)]), summary=False)).requests
    assert found is not None
    assert found.lost is None
    assert found.kinds[0].failure_rate is None
    assert any("summary is missing" in note for note in found.notes)


@pytest.mark.parametrize(("pause_ms", "fate"), [(1000, Fate.TIMEOUT), (3000, Fate.CLIENT_STALL)])
def test_a_silence_that_we_could_not_hear_is_not_the_workloads(pause_ms: float, fate: Fate) -> None:
    asked = [BEFORE, Asked(ms=1000, ended=Ending.TIMEOUT, took_ms=5000)]
    found = one_kind(Lane(asked=asked), also=[stalled(2000, 2000 + pause_ms)])
    assert found.fates == {str(fate): 1}
    assert found.not_judged == (fate is Fate.CLIENT_STALL)


def test_what_the_peer_said_is_believed_whatever_our_stall() -> None:
    asked = [BEFORE, Asked(ms=1000, ended=Ending.RST, took_ms=5000)]
    found = one_kind(Lane(asked=asked), also=[stalled(1500, 5900)])
    assert found.fates == {"written-then-reset": 1}


CONNECTIONS: list[tuple[Over, dict[str, bool], Outcome, How]] = [
    (Over.FIN, {}, Outcome.DRAINED, How.FIN_IDLE),
    (Over.FIN, {"outstanding": True}, Outcome.SEVERED, How.FIN_OUTSTANDING),
    (Over.RST, {}, Outcome.SEVERED, How.RST_IDLE),
    (Over.RST, {"outstanding": True}, Outcome.SEVERED, How.RST_OUTSTANDING),
    (Over.CLIENT, {"said_close": True}, Outcome.DRAINED, How.CONNECTION_CLOSE),
    (Over.FIN, {"said_close": True}, Outcome.DRAINED, How.CONNECTION_CLOSE),
    (Over.READ_ERROR, {"outstanding": True}, Outcome.READ_TIMEOUT, How.TIMEOUT),
    (Over.OPEN, {}, Outcome.SURVIVED, How.NONE),
    (Over.CLIENT, {}, Outcome.NOT_MEASURED, How.CLIENT),
]


@pytest.mark.parametrize(("over", "more", "outcome", "how"), CONNECTIONS)
def test_what_became_of_a_connection(
    over: Over, more: dict[str, bool], outcome: Outcome, how: How
) -> None:
    outstanding, said = more.get("outstanding", False), more.get("said_close", False)
    ended = end("keepalive-00", over, 2000, by=POD, outstanding=outstanding, said_close=said)
    lane = Lane(asked=[BEFORE, Asked(ms=1000)], ends=[ended])
    (found,) = judged(lane).connections
    assert (found.outcome, found.how, found.role) == (outcome, how, Role.TARGET)
    assert (found.ended_ns is None) == (over is Over.OPEN)


@pytest.mark.parametrize(
    ("opened_ms", "by", "known"),
    [
        (-9000, POD, KnownBy.HEADER),
        (-5000, None, KnownBy.ONLY_ENDPOINT),
        # Of before the first slice was seen: there may have been another endpoint then.
        (-9000, None, KnownBy.ALL_TARGETS),
    ],
)
def test_whose_a_connection_is(opened_ms: float, by: str | None, known: KnownBy) -> None:
    ends = [end("keepalive-00", Over.FIN, 2000, by=by, opened_ms=opened_ms)]
    (found,) = judged(Lane(asked=[BEFORE], ends=ends)).connections
    assert (found.known_by, found.role) == (known, Role.TARGET)
    assert found.pod_uid == (None if known is KnownBy.ALL_TARGETS else OLD)


def test_whose_a_connection_is_among_several_endpoints_is_not_known() -> None:
    several = s.endpoints(-5800, (OLD, True, True, False), ("uid-other", True, True, False))
    ends = [end("keepalive-00", Over.FIN, 2000, opened_ms=-5000)]
    found = judged(Lane(asked=[BEFORE], ends=ends), also=[several])
    assert [(one.role, one.pod_uid, one.known_by) for one in found.connections] == [
        (None, None, None)
    ]
    assert any("whose the connections were is not known" in note for note in found.notes)


def test_a_name_that_the_replacement_bears_too() -> None:
    """As a StatefulSet's pods do: before the trigger it was the target's."""
    again = s.pod(NEW, 7000, name=POD)
    lane = Lane(
        asked=[BEFORE, Asked(ms=0, count=10, by=POD)],
        ends=[end("keepalive-00", Over.FIN, 2000, by=POD)],
    )
    found = judged(lane, also=[again])
    assert [(one.role, one.pod_uid) for one in found.connections] == [(Role.TARGET, OLD)]
    # Who answers since may be either.
    assert [(one.by, one.role) for one in found.kinds[0].answered_by] == [(POD, None)]


def test_conntrack_tells_whose_it_is() -> None:
    several = s.endpoints(-5800, (OLD, True, True, False), ("uid-other", True, True, False))
    listed = Observation(
        source=Source.K8S,
        event=Event.ENDPOINT_SLICE,
        at=at(-5700),
        subject="slice-1",
        data={
            "type": "MODIFIED",
            "endpoints": [
                {"uid": OLD, "addresses": ["10.0.0.5"], "ready": True, "serving": True},
                {"uid": "uid-other", "addresses": ["10.0.0.6"], "ready": True, "serving": True},
            ],
        },
    )
    entry = {
        "proto": "tcp",
        "src": "192.0.2.7",
        "sport": 40_000,
        "dst": "192.0.2.1",
        "dport": 30_080,
        "to": "10.0.0.6",
        "to_port": 80,
        "state": "ESTABLISHED",
        "assured": True,
        "replied": True,
        "id": 1,
    }
    look = Observation(
        source=Source.NODE,
        event=Event.CONNTRACK,
        at=at(-20, -10),
        data={"occasion": "trigger", "entries": [entry]},
    )
    local = "192.0.2.7:40000"
    ends = [end("keepalive-00", Over.OPEN, 50_000, opened_ms=-5000, local=local)]
    found = judged(Lane(asked=[BEFORE], ends=ends), also=[several, listed, look])
    assert [(one.role, one.pod_uid, one.known_by) for one in found.connections] == [
        (Role.BYSTANDER, "uid-other", KnownBy.CONNTRACK)
    ]


def test_a_connection_that_we_gave_up_on_is_a_read_timeout() -> None:
    asked = [BEFORE, Asked(ms=1000, ended=Ending.TIMEOUT, took_ms=5000)]
    ends = [end("keepalive-00", Over.CLIENT, 6000, outstanding=True)]
    (found,) = judged(Lane(asked=asked, ends=ends)).connections
    assert found.outcome is Outcome.READ_TIMEOUT


def test_those_that_ended_before_or_were_opened_since_are_no_old_connections() -> None:
    ends = [
        end("keepalive-00", Over.FIN, -100, number=1),
        end("keepalive-00", Over.FIN, 300, number=2, opened_ms=100),
        end("keepalive-00", Over.FIN, 300, number=3),
    ]
    assert [c.connection for c in judged(Lane(asked=[BEFORE], ends=ends)).connections] == [3]


def test_requests_on_old_connections_and_when_the_last_was_gone() -> None:
    asked = [BEFORE, Asked(ms=0, count=30, by=POD), Asked(ms=3000, connection=2, by=NEXT)]
    ends = [end("keepalive-00", Over.FIN, 2999, by=POD)]
    (old,) = judged(Lane(asked=asked, ends=ends)).old_connections
    assert (old.role, old.connections) == (Role.TARGET, 1)
    # The first was begun at t = 0 itself, so perhaps before the trigger had any effect.
    assert old.served_after == 29
    assert old.last_served_ns == (2900 * MS, 2902 * MS)
    assert old.gone_ns == (2998 * MS, 2999 * MS)
    assert old.outcomes == {"drained-clean-close": 1}


def test_idle_connections_that_a_server_closes_anyway_are_named() -> None:
    habit = [
        end("idle-00", Over.FIN, -5000, number=1, opened_ms=-7000, answered=1),
        end("idle-00", Over.FIN, -2500, number=2, opened_ms=-4500, answered=1),
        end("idle-00", Over.FIN, 500, number=3, opened_ms=-1500, answered=1),
    ]
    lane = Lane(name="idle-00", asked=[Asked(ms=900, pool=Pool.FIN)], ends=habit)
    assert any("keep-alive timeout" in note for note in judged(lane).notes)
    calm = Lane(name="idle-00", asked=[Asked(ms=900, pool=Pool.FIN)], ends=habit[2:])
    assert not any("keep-alive timeout" in note for note in judged(calm).notes)


def test_keepalive_lanes_that_found_nothing_to_reuse_say_so() -> None:
    dialled = [Asked(ms=100 * n, pool=Pool.ANNOUNCED, connection=None) for n in range(10)]
    assert any("each of them was a new one" in note for note in one_kind(Lane(asked=dialled)).notes)
    mixed = [*dialled, Asked(ms=1000)]
    assert not any("was a new one" in note for note in one_kind(Lane(asked=mixed)).notes)


def test_what_was_planned_and_never_due_is_named_and_no_failure() -> None:
    lane = Lane(name="idle-00", asked=[Asked(ms=2000, ended=Ending.NOT_SENT, took_ms=0)])
    found = one_kind(lane)
    assert (found.planned, found.requests, found.attempts) == (1, 0, 0)
    assert found.fates == {"not-sent": 1}


def test_the_list_of_those_not_served_says_which() -> None:
    lanes = [
        Lane(name="in-flight-00", asked=[Asked(ms=-4000, took_ms=10_000)]),
        Lane(name="in-flight-01", asked=[Asked(ms=-5000, took_ms=5100, ended=Ending.RST)]),
    ]
    (cut,) = judged(*lanes).not_served
    assert (cut.lane, cut.fate, cut.count) == ("in-flight-01", Fate.WRITTEN_THEN_RESET, 1)


def test_the_timeline_tells_the_outage() -> None:
    told = trial(http(Lane(asked=[BEFORE, *OUTAGE])))
    found = {entry.event: entry.t_ms for entry in told.timeline if entry.subject == "keepalive"}
    assert found == {
        "http_requests_fail": 1001,
        "http_requests_last_failed": 1902,
        "http_requests_served_again": 2002,
    }


def test_what_failed_before_the_trigger_degrades_the_trial() -> None:
    early = Asked(ms=-2000, ended=Ending.REFUSED, pool=Pool.EMPTY)
    told = trial(http(Lane(asked=[early, Asked(ms=0, count=10)])))
    assert any("failed before the trigger" in why for why in told.degraded)
    assert not trial(http(Lane(asked=[BEFORE, *OUTAGE]))).degraded


def test_a_report_is_written_and_read_again() -> None:
    told = s.recording([s.accepted()], s.cluster(), http(Lane(asked=[BEFORE, *OUTAGE])))
    whole = derive(told)
    again = report.loads(report.dumps(whole))
    assert again == whole
    plain = json.loads(report.dumps(whole))["trial"]["requests"]["kinds"][0]
    assert plain["fates"] == {"served": 110, "written-then-reset": 1, "refused": 9}
    text = show(whole)
    assert "HTTP REQUESTS" in text
    assert "10 of 10 failed ones may be retried unasked" in text


NAMES = st.sampled_from(["keepalive-00", "keepalive-01", "idle-00", "new-00"])
ENDINGS = st.sampled_from(list(Ending))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            NAMES,
            ENDINGS,
            st.integers(1, 30),
            st.sampled_from([200, 404, 500]),
            st.sampled_from(list(Pool)),
        ),
        max_size=12,
    ),
    st.integers(-5000, 5000),
)
def test_nothing_is_counted_twice_or_lost(
    told: list[tuple[str, Ending, int, int, Pool]], start_ms: int
) -> None:
    """Each request is before or since, and in one fate; planned is what was made and missed."""
    lanes: dict[str, list[Asked]] = {}
    ms = float(start_ms)
    for name, ended, count, status, pool in told:
        one = Asked(ms=ms, count=count, ended=ended, status=status, pool=pool)
        lanes.setdefault(name, []).append(one)
        ms += count * 100
    whole = trial(http(*(Lane(name=name, asked=asked) for name, asked in lanes.items()))).requests
    kinds: Sequence[KindRequests] = whole.kinds if whole else ()
    for kind in kinds:
        mine = [
            one for name, asked in lanes.items() for one in asked if name.startswith(str(kind.kind))
        ]
        total = sum(kind.fates.values()) + sum(kind.fates_before.values())
        assert total == sum(one.count for one in mine)
        not_sent = sum(one.count for one in mine if one.ended is Ending.NOT_SENT)
        assert kind.requests == total - not_sent
        assert kind.planned == total
        assert kind.attempts == kind.served + kind.failed
        assert kind.retry_safe + kind.not_retry_safe == kind.failed
        if kind.failure_rate is not None and kind.attempts:
            share = kind.failed / (kind.attempts + kind.not_judged)
            assert kind.failure_rate.low <= share <= kind.failure_rate.high


def test_an_open_connection_on_which_nothing_was_heard_is_no_survivor() -> None:
    """A black hole's connections are open too: only an answer since t = 0 tells that it lives."""
    heard = Asked(ms=1000)
    silent = Asked(ms=1000, ended=Ending.UNFINISHED, took_ms=2000)
    for asked, outstanding, outcome, how in (
        ([BEFORE, heard], False, Outcome.SURVIVED, How.NONE),
        ([BEFORE, heard, silent], True, Outcome.NOT_MEASURED, How.UNHEARD),
        ([BEFORE], False, Outcome.NOT_MEASURED, How.UNHEARD),
    ):
        ends = [end("keepalive-00", Over.OPEN, 3000, by=POD, outstanding=outstanding)]
        (found,) = judged(Lane(asked=asked, ends=ends)).connections
        assert (found.outcome, found.how) == (outcome, how)


def test_a_connection_that_we_gave_up_on_while_we_could_not_look_is_not_measured() -> None:
    asked = [BEFORE, Asked(ms=1000, ended=Ending.TIMEOUT, took_ms=5000)]
    ends = [end("keepalive-00", Over.CLIENT, 6000, outstanding=True)]
    (found,) = judged(Lane(asked=asked, ends=ends), also=[stalled(2000, 5000)]).connections
    assert (found.outcome, found.how) == (Outcome.NOT_MEASURED, How.CLIENT_STALL)
    # Of a request that the recording lacks nobody knows why we closed its connection.
    (lost,) = judged(Lane(asked=[BEFORE], ends=ends)).connections
    assert (lost.outcome, lost.how) == (Outcome.NOT_MEASURED, How.CLIENT)


def test_a_connection_that_several_pods_answer_is_a_proxys() -> None:
    """A proxy picks a pod for each request: the connection leads to none of them."""
    before, since = Asked(ms=-5000, count=40, by=POD), Asked(ms=1000, count=40, by=NEXT)
    ends = [end("keepalive-00", Over.OPEN, 50_000, by=NEXT)]
    moved = judged(Lane(asked=[before, since], ends=ends), also=[s.pod(NEW, 500, name=NEXT)])
    assert [(one.by, one.role, one.pod_uid) for one in moved.connections] == [(POD, None, None)]
    assert any("a proxy is in the way" in note for note in moved.notes)
    stays = Asked(ms=1000, count=40, by=POD)
    kept = judged(
        Lane(asked=[before, stays], ends=[end("keepalive-00", Over.OPEN, 50_000, by=POD)])
    )
    assert [(one.by, one.role) for one in kept.connections] == [(POD, Role.TARGET)]
    assert not any("proxy" in note for note in kept.notes)


def test_lost_requests_of_one_lane_are_not_made_up_for_by_another() -> None:
    whole = [BEFORE, Asked(ms=0, count=50)]
    more = Lane(name="keepalive-01", asked=whole, made=140)  # as if ten had been booked twice
    assert judged(Lane(asked=whole, made=160), more).lost == 10


def test_a_summary_that_lacks_a_lane_tells_of_no_number() -> None:
    lanes = [Lane(asked=[BEFORE]), Lane(name="keepalive-01", asked=[BEFORE])]
    seen = http(*lanes)
    told = [o for o in seen if o.event is not Event.HTTP_SUMMARY]
    (summary,) = [o for o in http(lanes[0]) if o.event is Event.HTTP_SUMMARY]
    found = trial([*told, summary]).requests
    assert found is not None
    assert (found.lost, found.kinds[0].planned, found.kinds[0].failure_rate) == (None, None, None)


def test_an_answer_that_only_a_fin_ends_may_have_been_cut() -> None:
    bare = Asked(ms=0, count=10, by_fin=True, pool=Pool.EMPTY)
    assert any(
        "10 response(s) had no length" in note for note in one_kind(Lane(asked=[bare])).notes
    )
    framed = Asked(ms=0, count=10)
    assert not any("no length" in note for note in one_kind(Lane(asked=[framed])).notes)


def test_idle_connections_that_living_pods_close_are_a_habit_too() -> None:
    """The first closes may come after the trigger, if the server waits longer than we settled."""
    other = s.pod("uid-other", -6000, name="pod-other")
    ends = [
        end(f"idle-{n:02d}", Over.FIN, 900, opened_ms=-4100, answered=1, by=by)
        for n, by in enumerate((POD, "pod-other", "pod-other"))
    ]
    lanes = [
        Lane(name=f"idle-{n:02d}", asked=[Asked(ms=2000, pool=Pool.FIN)], ends=[one])
        for n, one in enumerate(ends)
    ]
    assert any("keep-alive timeout" in note for note in judged(*lanes, also=[other]).notes)
    alone = judged(lanes[0], also=[other])
    assert not any("keep-alive timeout" in note for note in alone.notes)
