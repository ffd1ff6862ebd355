"""The windows of a target pod: advertised, ready-routable, fallback-routable, dead endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.document import AnsweredBy
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.windows.document import Break, PodWindows
from pytest_drainwatch.core.windows.judge import NEVER_UNREADY, STILL
from tests.core import story as s
from tests.core.story import NEW, OLD, OTHER, at
from tests.core.tries import Try, prober, tries

MS = NS_PER_MS
READY, FALLBACK, UNREADY = (True, True, False), (False, True, True), (False, False, True)
NOT_YET = (False, False, False)


def trial(
    *parts: Iterable[Observation],
    targets: tuple[str, ...] = (OLD,),
    config: dict[str, object] | None = None,
) -> TrialReport:
    trigger = [s.accepted(targets=targets)]
    return derive(s.recording(trigger, *parts, config=config)).trial


def only(*parts: Iterable[Observation], config: dict[str, object] | None = None) -> PodWindows:
    (found,) = trial(*parts, [s.deleted()], config=config).windows
    return found


def reset(ms: float, flow: str = "tcp-0001", who: str = OLD) -> list[Observation]:
    end = s.client(Event.FLOW_RESET, flow, at(ms, ms + 1), errno="ECONNRESET")
    return [*s.alive(flow, ms - 1, who), end]


def gap(lo: float, hi: float, resource: str = "endpointslices") -> Observation:
    data = {"resource": resource, "reason": "410"}
    return Observation(source=Source.K8S, event=Event.WATCH_GAP, at=at(lo, hi), data=data)


def test_one_replica_keeps_its_readiness_and_is_replaced() -> None:
    """The last resort for as long as nobody else is ready."""
    slices = [
        s.endpoints(-100, (OLD, *READY)),
        s.endpoints(20, (OLD, *FALLBACK)),
        s.endpoints(40, (OLD, *FALLBACK), (NEW, *NOT_YET)),
        s.endpoints(1500, (OLD, *FALLBACK), (NEW, *READY)),
        s.endpoints(5100, (NEW, *READY)),
    ]
    found = only(slices)
    assert found.advertised.opens_ns == (0, 0)
    assert found.advertised.lasts_ns == (0, 5100 * MS)
    assert found.ready_routable.closes_ns == (0, 20 * MS)
    assert found.fallback_routable is not None
    (span,) = found.fallback_routable
    assert span.opens_ns == (0, 20 * MS)
    assert span.closes_ns == (0, 1500 * MS)
    assert span.lasts_ns == (0, 1500 * MS)
    # The replacement's own log says when it began to listen: it was not ready before.
    listening = [s.log(Event.LISTENING, 1200, uid=NEW)]
    (span,) = only(slices, reset(5000), [exchange()], listening).fallback_routable or ()
    assert span.closes_ns == (1200 * MS, 1500 * MS)
    assert span.lasts_ns == (1180 * MS, 1500 * MS)


def exchange() -> Observation:
    """It makes the probe's clock known: the harness's own."""
    stamps = {"t1": s.ns(-50), "t2": s.ns(-49.9), "t3": s.ns(-49.9), "t4": s.ns(-49.8)}
    when = at(-50, -49.8)
    return s.client(Event.CLOCK_EXCHANGE, f"{OLD}/n", when, clock=s.CLOCK, **stamps)


def test_one_that_fails_its_readiness_is_nobodys_last_resort_any_more() -> None:
    slices = [
        s.endpoints(-100, (OLD, *READY)),
        s.endpoints(20, (OLD, *FALLBACK)),
        s.endpoints(1040, (OLD, *UNREADY)),
        s.endpoints(5100),
    ]
    (span,) = only(slices).fallback_routable or ()
    assert span.closes_ns == (0, 1040 * MS)
    said = [s.log(Event.SIGTERM_RECEIVED, 30), s.log(Event.READYZ_NOW_503, 31)]
    (span,) = only(slices, reset(5000), [exchange()], said).fallback_routable or ()
    assert span.closes_ns == (31 * MS, 1040 * MS), "not before it said so"


def test_with_its_log_read_to_the_end_only_its_end_stops_it_from_serving() -> None:
    slices = [
        s.endpoints(-100, (OLD, *READY)),
        s.endpoints(20, (OLD, *FALLBACK)),
        s.endpoints(5100),
    ]
    log = [s.log(Event.SIGTERM_RECEIVED, 30), s.log_ended()]
    (span,) = only(slices, reset(5000), [exchange()], log).fallback_routable or ()
    assert span.closes_ns is not None
    assert span.closes_ns[0] == 4998.8 * MS, "when the last request was sent that it answered"
    cut = [s.log(Event.SIGTERM_RECEIVED, 30), s.log_ended(complete=False)]
    (span,) = only(slices, reset(5000), [exchange()], cut).fallback_routable or ()
    assert span.closes_ns == (0, 5100 * MS), "it may have said 503 where its log was cut"


def test_beside_a_ready_replica_there_is_no_fallback() -> None:
    slices = [
        s.endpoints(-100, (OLD, *READY), (OTHER, *READY)),
        s.endpoints(20, (OLD, *FALLBACK), (OTHER, *READY)),
        s.endpoints(5100, (OTHER, *READY)),
    ]
    assert only(slices).fallback_routable == ()


def test_there_can_be_several_stretches() -> None:
    """The replacement is ready, then not, then ready."""
    slices = [
        s.endpoints(-100, (OLD, *READY)),
        s.endpoints(20, (OLD, *FALLBACK)),
        s.endpoints(1000, (OLD, *FALLBACK), (NEW, *READY)),
        s.endpoints(2000, (OLD, *FALLBACK), (NEW, *NOT_YET)),
        s.endpoints(3000, (OLD, *FALLBACK), (NEW, *READY)),
    ]
    spans = only(slices).fallback_routable
    assert spans is not None
    assert [(span.opens_ns, span.closes_ns) for span in spans] == [
        ((0, 20 * MS), (0, 1000 * MS)),
        ((0, 2000 * MS), (0, 3000 * MS)),
    ]


def test_what_is_still_so_at_the_end_has_no_end() -> None:
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(20, (OLD, *FALLBACK))]
    found = only(slices)
    assert (found.advertised.closes_ns, found.advertised.note) == (None, STILL)
    (span,) = found.fallback_routable or ()
    assert (span.closes_ns, span.lasts_ns, span.note) == (None, None, STILL)


def test_without_slices_nothing_is_known() -> None:
    found = only()
    assert found.advertised.opens_ns is None
    assert found.ready_routable.opens_ns is None
    assert found.fallback_routable is None
    assert any("no slice" in note for note in found.notes)


def test_two_targets_each_have_their_own() -> None:
    slices = [
        s.endpoints(-100, (OLD, *READY), (OTHER, *READY)),
        s.endpoints(20, (OLD, *FALLBACK), (OTHER, *READY)),
        s.endpoints(30, (OLD, *FALLBACK), (OTHER, *FALLBACK)),
        s.endpoints(5100, (OTHER, *FALLBACK)),
        s.endpoints(5200),
    ]
    flows = [*reset(5000), *reset(5150, "tcp-0002", OTHER)]
    pods = [s.deleted(OLD), s.deleted(OTHER)]
    report = trial(slices, flows, pods, targets=(OLD, OTHER))
    one, other = report.windows
    assert (one.pod_uid, other.pod_uid) == (OLD, OTHER)
    assert one.removed_ns is not None
    assert other.removed_ns is not None
    assert (one.removed_ns[1], other.removed_ns[1]) == (5100 * MS, 5200 * MS)
    assert one.dead_endpoint.lasts_ns == (-5001 * MS, 100 * MS)
    assert other.dead_endpoint.opens_ns == (5150 * MS, 5151 * MS)
    assert [len(pod.fallback_routable or ()) for pod in (one, other)] == [1, 1]
    assert report.summary.dead_endpoint_window_ms is None, "it would mix two pods"


def test_a_gap_over_the_trigger_widens_what_it_hid() -> None:
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(900, (OLD, *FALLBACK))]
    found = only(slices, [gap(-500, 800)])
    assert found.ready_false_ns == (-500 * MS, 900 * MS)
    (span,) = found.fallback_routable or ()
    assert span.opens_ns == (-500 * MS, 900 * MS)
    assert any("gap" in note for note in found.notes)


def test_a_gap_later_on_widens_by_when_the_frame_came() -> None:
    slices = [
        s.endpoints(-100, (OLD, *READY)),
        s.endpoints(20, (OLD, *FALLBACK)),
        Observation(
            source=Source.K8S,
            event=Event.WATCH_LISTED,
            at=at(6000),
            data={"resource": "endpointslices", "subjects": []},
        ),
    ]
    found = only(slices, [gap(4000, 6000)])
    assert found.removed_ns == (0, 6000 * MS)
    (span,) = found.fallback_routable or ()
    assert span.closes_ns == (0, 6000 * MS)


def test_on_several_nodes_a_local_policy_falls_back_by_node() -> None:
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(20, (OLD, *FALLBACK))]
    config: dict[str, object] = {"external_traffic_policy": "Local"}
    told = s.recording([s.accepted()], slices, [s.deleted()], config=config)
    assert derive(_on_nodes(told, 1)).trial.windows[0].fallback_routable
    (found,) = derive(_on_nodes(told, 3)).trial.windows
    assert found.fallback_routable is None
    assert any("Local" in note for note in found.notes)


def _at_nodes(seen: Observation, nodes: dict[str, str]) -> Observation:
    listed = [{**each, "node": nodes.get(str(each["uid"]))} for each in seen.data["endpoints"]]  # type: ignore[attr-defined]
    return replace(seen, data={**seen.data, "endpoints": listed})


@pytest.mark.parametrize(
    ("other_node", "falls_back"),
    [("b", True), ("a", False), (None, None)],
)
def test_a_local_policy_falls_back_on_the_pods_own_node(
    other_node: str | None, falls_back: bool | None
) -> None:
    """A ready pod elsewhere does not help those who come in here; one that is here does."""
    slices = [
        s.endpoints(-100, (OLD, *READY), (OTHER, *READY)),
        s.endpoints(20, (OLD, *FALLBACK), (OTHER, *READY)),
        s.endpoints(1500, (OLD, *UNREADY), (OTHER, *READY)),
        s.endpoints(5100, (OTHER, *READY)),
    ]
    where = {OLD: "a"} | ({OTHER: other_node} if other_node else {})
    seen = [_at_nodes(each, where) for each in slices]
    told = s.recording(
        [s.accepted()], seen, [s.deleted()], config={"external_traffic_policy": "Local"}
    )
    (found,) = derive(_on_nodes(told, 2)).trial.windows
    assert found.node == "a"
    if falls_back is None:
        assert found.fallback_routable is None
        assert any("do not say on which nodes" in note for note in found.notes)
    elif falls_back:
        (span,) = found.fallback_routable or ()
        assert (span.opens_ns, span.closes_ns) == ((0, 20 * MS), (0, 1500 * MS))
    else:
        assert found.fallback_routable == ()


@pytest.mark.parametrize(("policy", "attempts"), [("Local", 4), ("Cluster", 10)])
def test_with_a_local_policy_only_those_that_came_in_at_the_pods_node_count(
    policy: str, attempts: int
) -> None:
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(20, (OLD, *FALLBACK))]
    seen = [_at_nodes(each, {OLD: "a"}) for each in slices]
    here = prober(tries(100, 4), node="a")
    there = prober(tries(100, 6), node="b", subject="tcp-new-2")
    told = s.recording(
        [s.accepted()], seen, here, there, [s.deleted()], config={"external_traffic_policy": policy}
    )
    trial = derive(_on_nodes(told, 2)).trial
    assert [(p.prober, p.node) for p in trial.new_connections] == [
        ("tcp-new", "a"),
        ("tcp-new-2", "b"),
    ]
    (span,) = trial.windows[0].fallback_routable or ()
    assert span.met is not None
    assert span.met.attempts == attempts


def test_one_ready_pod_anywhere_keeps_a_cluster_policy_from_falling_back() -> None:
    slices = [
        s.endpoints(-100, (OLD, *READY), (OTHER, *READY)),
        s.endpoints(20, (OLD, *FALLBACK), (OTHER, *READY)),
    ]
    seen = [_at_nodes(each, {OLD: "a", OTHER: "b"}) for each in slices]
    told = s.recording([s.accepted()], seen, [s.deleted()])
    (found,) = derive(_on_nodes(told, 2)).trial.windows
    assert found.fallback_routable == ()


def _on_nodes(told: Recording, count: int) -> Recording:
    facts = {**told.header.environment, "node_count": count}
    return replace(told, header=replace(told.header, environment=facts))


@pytest.mark.parametrize("verb", ["none", "delete"])
def test_a_control_is_judged_without_a_deletion_and_nothing_else_is(verb: str) -> None:
    flow = [
        *s.alive("tcp-0001", 39_990),
        s.client(Event.FLOW_OPEN_AT_END, "tcp-0001", at(40_000), sent=1),
    ]
    slices = [s.endpoints(-100, (OLD, *READY))]
    told = s.recording([s.accepted(verb=verb)], flow, slices, [s.pod(OLD, -6000)])
    if verb == "delete":
        with pytest.raises(ValueError, match="blocked"):
            derive(told)
        return
    report = derive(told).trial
    assert [f.outcome for f in report.flows] == ["survived-observation-window"]
    assert report.trigger.effective_ns is None
    assert report.summary.trigger_to_sigterm_ms is None
    assert [note.partition(":")[0] for note in report.notes] == ["no new connections were tried"]
    (found,) = report.windows
    assert (found.ready_routable.closes_ns, found.ready_routable.note) == (None, STILL)
    disturbed = s.recording([s.accepted(verb=verb)], flow, slices, [s.pod(OLD, -6000), s.deleted()])
    assert any("somebody deleted" in note for note in derive(disturbed).trial.notes)


def test_removed_while_it_was_still_ready() -> None:
    ended = s.pod(OLD, 5090, deletion_timestamp="then", containers=[s.gone(0)])
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(5100)]
    found = only(slices, reset(5000), [s.pod(OLD, -6000, containers=[s.LIVE]), ended])
    assert found.removed_ns == (4998.8 * MS, 5100 * MS), "it was listed until it had ended"
    assert found.ready_routable.closes_ns == (0, 5100 * MS), "and unready nobody knows when"
    assert found.ready_routable.note == NEVER_UNREADY
    assert found.ready_false_ns is None


def test_a_gap_may_hide_a_whole_stretch() -> None:
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(5100)]
    assert only(slices).fallback_routable == ()
    assert only(slices, [gap(100, 4000)]).fallback_routable is None
    assert only(slices, [gap(100, 4000, "pods")]).fallback_routable == ()


# --- what is undone --------------------------------------------------------------------------


def flap(removed: bool = False) -> list[Observation]:
    """Ready, then for half a second not (or not even listed), then ready; deleted at 3 s."""
    away = [s.endpoints(1000)] if removed else [s.endpoints(1000, (OLD, *NOT_YET))]
    return [
        s.endpoints(-100, (OLD, *READY)),
        *away,
        s.endpoints(1500, (OLD, *READY)),
        s.endpoints(3020, (OLD, *UNREADY)),
        s.endpoints(8000),
    ]


BREAK = Break(opens_ns=(0, 1000 * MS), closes_ns=(0, 1500 * MS))


def test_a_flap_is_a_break_and_no_end() -> None:
    deletion = [s.deleted(ms=3012)]
    (found,) = trial(flap(), deletion).windows
    ready = found.ready_routable
    assert (ready.opens_ns, ready.closes_ns, ready.lasts_ns) == (
        (0, 0), (0, 3020 * MS), (0, 3020 * MS)
    )  # fmt: skip
    assert ready.breaks == (BREAK,)
    assert found.ready_false_ns == (0, 3020 * MS)
    assert found.advertised.breaks == ()
    (steady,) = trial(
        [one for one in flap() if one.at.lo not in (s.ns(1000), s.ns(1500))], deletion
    ).windows
    assert steady.ready_routable == replace(ready, breaks=())


def test_a_slice_that_is_made_anew_is_a_break_of_both() -> None:
    (found,) = trial(flap(removed=True), [s.deleted(ms=3012)]).windows
    assert found.advertised.breaks == (BREAK,)
    assert found.ready_routable.breaks == (BREAK,)
    assert found.removed_ns == (0, 8000 * MS)
    assert found.advertised.closes_ns == (0, 8000 * MS)
    assert found.ready_false_ns == (0, 3020 * MS), "the removal that was undone is none"


def test_the_summary_takes_the_pods_own_termination() -> None:
    term = [exchange(), s.log(Event.SIGTERM_RECEIVED, 3030)]
    flows = s.alive("tcp-0001", 900)
    summary = trial(flap(), flows, [s.deleted(ms=3012)], term).summary
    assert summary.sigterm_to_ready_false_ms == -10, "3.020 s, and not the flap at 1 s"
    assert summary.trigger_to_endpoint_removed_ms == 8000


def test_what_is_unready_for_good_before_a_flap_ends_is_still_so() -> None:
    (found,) = trial(flap()[:2], [s.deleted(ms=3012)]).windows
    assert found.ready_routable.closes_ns == (0, 1000 * MS)
    assert found.ready_routable.breaks == ()
    (back,) = trial(flap()[:3], [s.deleted(ms=3012)]).windows
    assert (back.ready_routable.closes_ns, back.ready_routable.note) == (None, STILL)
    assert back.ready_false_ns is None


def test_ready_only_after_the_trigger() -> None:
    late = [s.endpoints(-100, (OLD, *NOT_YET)), *flap()[2:]]
    (found,) = trial(late, [s.deleted(ms=3012)]).windows
    assert found.ready_routable.opens_ns == (0, 1500 * MS)
    assert found.ready_routable.lasts_ns == (0, 3020 * MS)
    assert found.advertised.opens_ns == (0, 0)


def test_answers_after_ready_false_are_those_of_unready_stretches() -> None:
    """100 in the flap, 100 after it, 100 after the deletion's ready:false."""
    tried = prober(tries(1000, 100), others(1550), tries(1600, 100), others(2500), tries(3100, 100))
    who = answered_by_the_old(flap(), tried)
    # How long a frame was under way nothing bounds: the pod may have been ready in the flap.
    assert who.after_unready == (100, 300)
    late = [*flap()[:3], s.endpoints(20_000, (OLD, *UNREADY))]
    assert answered_by_the_old(late, tried).after_unready == (0, 300), "unready when it was over"


def others(ms: float) -> list[Try]:
    return tries(ms, 1, who=NEW)


def answered_by_the_old(*parts: Iterable[Observation]) -> AnsweredBy:
    answers = trial(*parts, [s.deleted(ms=3012), s.pod(NEW, -10)]).new_connections[0].answered_by
    return next(one for one in answers if one.pod_uid == OLD)


def test_answers_after_an_undone_unready_are_not_after_it() -> None:
    """The frame that showed it ready again bounds when it was not."""
    tried = prober(tries(1000, 100), others(1550), tries(1600, 100))
    assert answered_by_the_old(flap()[:3], tried).after_unready == (0, 100)


# --- gaps -------------------------------------------------------------------------------------


def test_behind_a_gap_the_cause_that_is_known_may_not_be_the_first() -> None:
    """The pod may have failed its readiness in the gap, before its replacement listened."""
    slices = [
        s.endpoints(-100, (OLD, *READY)),
        s.endpoints(20, (OLD, *FALLBACK)),
        s.endpoints(4200, (OLD, *FALLBACK), (NEW, *READY)),
        s.endpoints(5100, (NEW, *READY)),
    ]
    told = [exchange(), s.log(Event.LISTENING, 3900, uid=NEW)]
    flows = reset(5000)
    (span,) = only(slices, flows, told).fallback_routable or ()
    assert span.closes_ns == (3900 * MS, 4200 * MS)
    (span,) = only(slices, flows, told, [gap(200, 4200)]).fallback_routable or ()
    assert span.closes_ns == (200 * MS, 4200 * MS)
    (span,) = only(slices, flows, told, [gap(4000, 4200)]).fallback_routable or ()
    assert span.closes_ns == (3900 * MS, 4200 * MS), "it was known before the gap"


def test_a_deletion_was_before_all_that_it_brought_about() -> None:
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(20, (OLD, *FALLBACK))]
    late = [s.deleted(ms=900)]
    (found,) = trial(slices, late).windows
    assert found.deletion_ns == (0, 20 * MS), "terminating comes with the deletion"
    term = [exchange(), s.log(Event.SIGTERM_RECEIVED, 15)]
    flows = reset(5000)
    (found,) = trial(slices, late, flows, term).windows
    assert found.deletion_ns == (0, 15 * MS)
    again = s.pod(OLD, 30, containers=[{**s.LIVE, "restarts": 1}])
    before = s.pod(OLD, -6000, containers=[s.LIVE])
    (found,) = trial(slices, late, flows, term, [before, again]).windows
    assert found.deletion_ns == (0, 20 * MS), "a container that restarts gets SIGTERM as well"


def test_a_frame_of_another_pods_slice_tells_nothing_of_this_one() -> None:
    slices = [
        s.endpoints(-100, (OLD, *READY)),
        s.endpoints(850, (OTHER, *READY), name="slice-2"),
        s.endpoints(900, (OLD, *FALLBACK)),
    ]
    assert only(slices, [gap(-500, 800)]).ready_false_ns == (-500 * MS, 900 * MS)
