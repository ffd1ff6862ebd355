"""What new connections met within a window: only what was surely begun in it counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.binomial import rate_bounds
from pytest_drainwatch.core.probing.document import FAILED, Rate
from pytest_drainwatch.core.probing.pieces import Surroundings, all_tried
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.stall import stalls_of
from pytest_drainwatch.core.windows.document import Break, Met, PodWindows, Span
from pytest_drainwatch.core.windows.met import Attempts
from tests.core import story as s
from tests.core.story import NEW, OLD, T0, at
from tests.core.test_new_connections import truths
from tests.core.tries import Try, prober, recorded, tries

MS = NS_PER_MS
READY, UNREADY = (True, True, False), (False, False, True)
# Seen gone at 5.2 s; surely listed until 4999.8 ms: the last request that it answered.
SLICES = [s.endpoints(-100, (OLD, *READY)), s.endpoints(20, (OLD, *UNREADY)), s.endpoints(5200)]


def windows(slices: Sequence[Observation], *also: Iterable[Observation]) -> PodWindows:
    end = s.client(Event.FLOW_RESET, "tcp-0001", at(5000, 5001), errno="ECONNRESET")
    # The API server's word that the container ended.
    ended = s.pod(OLD, 5190, deletion_timestamp="then", containers=[s.gone(0)])
    pods = [s.pod(OLD, -6000, containers=[s.LIVE]), s.deleted(), ended]
    flow = [*s.alive("tcp-0001", 5000), end]
    (found,) = derive(s.recording([s.accepted()], flow, slices, pods, *also)).trial.windows
    return found


def met(span: Span) -> Met:
    assert span.met is not None
    return span.met


def rate(failed: int, tried: int, unknown: int = 0) -> Rate:
    low, high = rate_bounds(failed, tried, unknown=unknown)
    return Rate(low=low, high=high)


def test_a_window_in_which_some_failed() -> None:
    """From t = 0 until it surely was listed, and neither before nor after."""
    before, after = tries(-500, 300), tries(1060, 1000, who=NEW)
    tried = prober(before, tries(1000, 12, Result.REFUSED), after)
    found = met(windows(SLICES, tried, [s.pod(NEW, -10)]).advertised)
    # Begun at 0, 5, ... 4995 ms.
    assert (found.attempts, found.failed) == (1000, 12)
    assert found.rate == rate(12, 1000)
    assert found.at_most == (1041, 12), "until it was seen to be gone"


def test_a_window_in_which_none_failed_has_a_bound() -> None:
    tried = prober(tries(-500, 1000), tries(4500, 100), tries(5000, 9, Result.REFUSED))
    found = met(windows(SLICES, tried).advertised)
    assert (found.attempts, found.failed, found.rate) == (1000, 0, rate(0, 1000))
    assert found.rate is not None
    assert found.rate.high > 0
    assert found.at_most == (1009, 9), "those that may have been begun in it may not be in it"


def test_where_it_was_not_surely_open_nothing_counts() -> None:
    """How long the frame was under way nothing bounds, so it may have been over at t = 0."""
    found = met(windows(SLICES, prober(tries(0, 2), tries(10, 2, Result.REFUSED))).ready_routable)
    assert (found.attempts, found.failed, found.rate) == (0, 0, None)
    assert found.at_most == (4, 2)


def test_an_attempt_belongs_to_the_window_in_which_it_was_begun() -> None:
    """However long it took: it was begun in it, and had timed out a second later."""
    tried = prober(tries(4000, 100), tries(4500, 200, Result.TIMEOUT))
    found = met(windows(SLICES, tried).advertised)
    assert (found.attempts, found.failed) == (200, 100)
    # And one that was under way at t = 0 was begun before.
    early = prober(tries(-500, 200, Result.TIMEOUT), tries(500, 10))
    assert met(windows(SLICES, early).advertised).failed == 100


def test_a_break_is_left_out() -> None:
    """Its slice was gone from 1 to 2 s, as frames showed; until 1 s it may have been gone."""
    slices = [*SLICES[:2], s.endpoints(1000), s.endpoints(2000, (OLD, *UNREADY)), SLICES[-1]]
    tried = prober(tries(-500, 100), tries(0, 1000, Result.REFUSED))
    found = windows(slices, tried).advertised
    assert len(found.breaks) == 1
    assert (met(found).attempts, met(found).failed) == (600, 600), "2000, 2005, ... 4995 ms"
    assert met(windows(SLICES, tried).advertised).attempts == 1000


def test_a_gap_in_the_watch_of_slices_is_left_out() -> None:
    """It may hide a break."""
    tried = prober(tries(-500, 100), tries(0, 1000, Result.REFUSED))

    def gap(resource: str) -> list[Observation]:
        data = {"resource": resource, "reason": "410"}
        when = at(1000, 2000)
        return [Observation(source=Source.K8S, event=Event.WATCH_GAP, at=when, data=data)]

    assert met(windows(SLICES, tried, gap("endpointslices")).advertised).attempts == 800
    assert met(windows(SLICES, tried, gap("pods")).advertised).attempts == 1000


def test_one_that_never_closed_counts_to_the_end_of_what_was_tried() -> None:
    tried = prober(tries(-500, 100), tries(0, 2000), tries(10_000, 5, Result.REFUSED))
    found = windows(SLICES[:1], tried)
    for span in (found.advertised, found.ready_routable):
        assert span.closes_ns is None
        assert (met(span).attempts, met(span).failed) == (2005, 5)
    dead = found.dead_endpoint
    assert (dead.opens_ns, dead.closes_ns) == ((5000 * MS, 5001 * MS), None)
    assert (met(dead).attempts, met(dead).failed) == (1004, 5), "after 5001 ms"


def test_without_a_prober_or_a_window_nothing_was_met() -> None:
    assert windows(SLICES).advertised.met is None
    udp = prober(tries(0, 100), subject="udp-new")
    assert windows(SLICES, udp).advertised.met is None, "UDP opens no connection"
    unseen = windows([], prober(tries(0, 2000)))
    assert (unseen.advertised.met, unseen.fallback_routable) == (None, None)
    assert unseen.dead_endpoint.opens_ns is not None
    assert unseen.dead_endpoint.met is None, "whether it was ever listed is not known"


def test_what_is_not_known_of_attempts_widens_the_rate() -> None:
    cut = prober(tries(0, 100), tries(500, 3, Result.UNFINISHED), tries(515, 97))
    found = met(windows(SLICES, cut).advertised)
    assert (found.attempts, found.not_judged) == (197, 3)
    assert found.rate == rate(0, 197, unknown=3)
    whole = prober(tries(0, 100), tries(500, 3, Result.REFUSED), tries(515, 97))
    lost = met(windows(SLICES, [one for one in whole if one.data.get("count") != 3]).advertised)
    assert (lost.attempts, lost.failed, lost.rate) == (197, 0, rate(0, 197, unknown=3))
    limit = prober(tries(0, 100), tries(500, 3, Result.CLIENT_LIMIT))
    found = met(windows(SLICES, limit).advertised)
    assert (found.attempts, found.failed, found.not_judged) == (100, 0, 0), "never tried on it"


def test_without_a_summary_there_is_no_rate() -> None:
    """And of a run that reaches over an end only its first and last are surely placed."""
    found = met(windows(SLICES, recorded(tries(0, 100))).advertised)
    assert (found.attempts, found.rate) == (100, None)
    found = met(windows(SLICES, recorded(tries(0, 2000, who=NEW)), [s.pod(NEW, -10)]).advertised)
    assert (found.attempts, found.at_most[0]) == (1, 1999), "the last is exact as well"


def test_a_report_from_before_windows_had_counts_is_still_read() -> None:
    tried = prober(tries(0, 100), tries(500, 3, Result.REFUSED))
    told = s.recording([s.accepted()], s.cluster(), tried)
    whole = derive(told)
    assert report.loads(report.dumps(whole)) == whole
    plain = json.loads(report.dumps(whole))
    for pod in plain["trial"]["windows"]:
        assert pod["advertised"]["met"]["attempts"] == 99, "begun before the last answer"
        for name in ("advertised", "ready_routable", "dead_endpoint"):
            del pod[name]["met"]
        for span in pod["fallback_routable"]:
            span.pop("met")
    (older,) = report.loads(json.dumps(plain)).trial.windows
    assert older.advertised.met is None


# --- whatever happened inside a run ----------------------------------------------------------


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """A window with a break or none, each end within bounds, from -20 to 400 ms."""
    edges = sorted(draw(st.lists(st.integers(-20, 400), min_size=8, max_size=8)))
    ends = [(lo * MS, hi * MS) for lo, hi in zip(edges[::2], edges[1::2], strict=True)]
    broken, closed = draw(st.booleans()), draw(st.booleans())
    pause = (Break(opens_ns=ends[1], closes_ns=ends[2]),) if broken else ()
    return Span(opens_ns=ends[0], closes_ns=ends[3] if closed else None, breaks=pause)


def counted(seen: Iterable[Observation], span: Span, gaps: Sequence[Interval] = ()) -> Met:
    seen = tuple(seen)
    around = Surroundings(
        t0_ns=T0,
        targets={},
        workload=frozenset(),
        names={},
        all_pods_known=True,
        stalls=stalls_of(seen),
    )
    attempts = Attempts.of(all_tried(seen, around))
    assert attempts is not None
    found = attempts.met(span, gaps, T0)
    assert found is not None
    return found


@given(truths(), spans(), st.data())
@settings(max_examples=200, deadline=None)
def test_the_truth_lies_between_what_is_sure_and_what_may_be(
    attempts: list[Try], span: Span, data: st.DataObject
) -> None:
    found = counted(prober(attempts), span)

    def inside(ends: Bounds | None, default_ns: int) -> int:
        return default_ns if ends is None else data.draw(st.integers(*ends))

    opens, closes = inside(span.opens_ns, 0), inside(span.closes_ns, 10**15)
    pauses = [(inside(one.opens_ns, 0), inside(one.closes_ns, 0)) for one in span.breaks]
    within = [
        one
        for one in attempts
        if opens <= (begun := s.ns(one.ms) - T0) < closes
        and not any(lo <= begun < hi for lo, hi in pauses)
    ]
    failed = sum(one.result in FAILED for one in within)
    assert found.attempts <= len(within) <= found.at_most[0]
    assert found.failed <= failed <= found.at_most[1]
    assert found.attempts - found.failed <= len(within) - failed, "nor are too many answered"
    assert (found.rate is None) == (found.attempts == 0)


@given(truths(), spans(), st.data())
@settings(max_examples=200, deadline=None)
def test_with_less_evidence_no_count_rises(
    attempts: list[Try], span: Span, data: st.DataObject
) -> None:
    """Runs dropped, or a gap in the watch: fewer are sure, and the rate's bounds are wider."""
    whole = prober(attempts)
    sure = counted(whole, span)
    gone = data.draw(st.sets(st.integers(0, len(whole) - 2)))
    lo = data.draw(st.integers(-20, 400))
    gaps = data.draw(
        st.sampled_from([[], [at(lo, lo + 50)], [at(lo, lo + 9), at(lo + 5, lo + 99)]])
    )
    less = counted([o for n, o in enumerate(whole) if n not in gone], span, gaps)
    assert less.attempts <= sure.attempts
    assert less.failed <= sure.failed
    assert less.at_most[0] <= sure.at_most[0]
    assert less.at_most[1] <= sure.at_most[1]
    if less.rate is not None and not gaps:
        assert less.rate.low <= sure.failed / sure.attempts <= less.rate.high


def test_slots_that_were_missed_in_a_window_stand_for_their_time() -> None:
    """Listed for 5 s, of which one was dense and failing; of its slots every tenth was tried."""
    dense = [one for one in tries(0, 200, Result.REFUSED) if one.slot % 10 == 0]
    plan = [(-500, 1000, 1, 180), (1000, 5000, 10, 0)]
    tried = prober(tries(-500, 100), dense, tries(1000, 80, every=10), missed=180, stretches=plan)
    found = met(windows(SLICES, tried).advertised)
    assert (found.attempts, found.failed) == (100, 20)
    assert found.rate is not None
    assert found.rate.low < 1 / 5 < found.rate.high
    older = met(
        windows(SLICES, prober(tries(-500, 100), dense, tries(1000, 80, every=10))).advertised
    )
    assert older.rate is not None
    assert older.rate.high < 1 / 5
