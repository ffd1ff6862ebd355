"""Who ended it: every row of the tables, with an input that gives it and ones that must not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.pod.ending import (
    TABLE,
    VERBS,
    EndedBy,
    Facts,
    Initiator,
    KillTime,
    PreStopOutcome,
    ended_by,
    initiator,
    kill_time,
)
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.core.start import CannotDerive
from tests.core import story as s
from tests.core.endings import EXECS, NO_HOOK, SLEEPS, TERM, end, ends, log, served, term
from tests.core.story import OLD, OTHER, at

MS, S = NS_PER_MS, NS_PER_S


# --- the tables themselves --------------------------------------------------------------

KILLED = Facts(ended=True, killed=True)
WITNESSES = [
    (Facts(ended=False, killed=True, sigterm_logged=True), EndedBy.UNKNOWN),
    (Facts(ended=True, killed=None, sigterm_logged=True), EndedBy.UNKNOWN),
    (
        Facts(ended=True, oom=True, killed=True, kill_time=KillTime.AT_GRACE, sigterm_logged=True),
        EndedBy.UNKNOWN,
    ),
    (Facts(ended=True, oom=True, killed=True, sigterm_logged=True), EndedBy.OOM_KILLED),
    (Facts(ended=True, killed=True, by_trigger=True), EndedBy.KILLED_BY_TRIGGER),
    (
        Facts(ended=True, killed=True, kill_time=KillTime.EARLY, sigterm_logged=True),
        EndedBy.KILLED_EARLY,
    ),
    (Facts(ended=True, killed=True, kill_time=None, sigterm_logged=True), EndedBy.UNKNOWN),
    (
        Facts(ended=True, killed=True, kill_time=KillTime.AT_GRACE, sigterm_logged=True),
        EndedBy.SIGKILL_AT_GRACE,
    ),
    (
        Facts(ended=True, killed=True, kill_time=KillTime.AT_GRACE, sigterm_logged=False),
        EndedBy.SIGNAL_NOT_DELIVERED,
    ),
    (
        Facts(ended=True, killed=True, kill_time=KillTime.AT_GRACE, logless=True),
        EndedBy.SIGKILL_AT_GRACE,
    ),
    (
        Facts(ended=True, killed=True, kill_time=KillTime.AT_GRACE, sigterm_logged=None),
        EndedBy.UNKNOWN,
    ),
    (Facts(ended=True, killed=False, died_of_sigterm=True, sigterm_logged=True), EndedBy.EXIT),
    (Facts(ended=True, killed=False, logless=True, hook_over=False), EndedBy.EXIT_BEFORE_SIGTERM),
    (Facts(ended=True, killed=False, logless=True, hook_over=None), EndedBy.UNKNOWN),
    (Facts(ended=True, killed=False, died_of_sigterm=True, logless=True), EndedBy.EXIT),
    (
        Facts(ended=True, killed=False, died_of_sigterm=True, sigterm_logged=False),
        EndedBy.UNKNOWN,
    ),
    (Facts(ended=True, killed=False, sigterm_logged=False), EndedBy.EXIT_BEFORE_SIGTERM),
    (Facts(ended=True, killed=False, before_deletion=True), EndedBy.EXIT_BEFORE_SIGTERM),
    (Facts(ended=True, killed=False), EndedBy.UNKNOWN),
]


def test_every_row_decides_for_its_witness_and_the_table_is_total() -> None:
    """A row that another one hides, or that is removed, fails here."""
    assert [next(row for row in TABLE if row.holds(facts)) for facts, _ in WITNESSES] == [*TABLE]
    assert [ended_by(facts) for facts, _ in WITNESSES] == [then for _, then in WITNESSES]
    unknowns: tuple[tuple[bool | None, ...], ...] = ((True, False, None),) * 2
    for killed, logged in itertools.product(*unknowns):
        for ended, oom, before, by_term in itertools.product((True, False), repeat=4):
            for when in (*KillTime, None):
                ended_by(
                    Facts(
                        ended=ended,
                        oom=oom,
                        killed=killed,
                        kill_time=when,
                        died_of_sigterm=by_term,
                        sigterm_logged=logged,
                        before_deletion=before,
                    )
                )


@pytest.mark.parametrize(
    ("ended", "expected", "found"),
    [
        ((9_900, 9_990), (10_000, 10_012), KillTime.EARLY),
        ((9_900, 10_050), (10_000, 10_012), KillTime.AT_GRACE),
        ((10_020, 10_050), (10_000, 10_012), KillTime.AT_GRACE),
        ((20_000, 20_100), (12_000, 12_012), KillTime.AT_GRACE),  # late, and so it is said
        ((8_000, 10_050), (10_000, 10_012), None),  # nobody looked: it may have been early
        ((6_000, 6_050), (4_000, 10_000), None),  # the rule itself allows too much
        ((9_900, 10_050), None, None),
    ],
)
def test_a_kill_is_early_in_time_or_not_to_be_told(
    ended: tuple[int, int], expected: tuple[int, int] | None, found: KillTime | None
) -> None:
    rule = None if expected is None else at(*expected)
    assert kill_time(at(*ended), rule) is found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, Initiator.API_DELETE),
        ({"verb": "evict"}, Initiator.API_EVICT),
        ({"verb": "scale"}, Initiator.SCALE),
        ({"verb": "something new"}, Initiator.UNKNOWN),
        ({"verb": None}, Initiator.OTHER_DELETION),
        # What the pod says of itself goes before what the trial asked for.
        ({"disruption": "EvictionByEvictionAPI"}, Initiator.API_EVICT),
        ({"disruption": "PreemptionByScheduler"}, Initiator.PREEMPTION),
        ({"disruption": "DeletionByTaintManager"}, Initiator.TAINT_EVICTION),
        ({"disruption": "DeletionByPodGC"}, Initiator.POD_GC),
        (
            {"verb": "evict", "disruption": "TerminationByKubelet", "pod_reason": "Evicted"},
            Initiator.KUBELET_EVICTION,
        ),
        (
            {"disruption": "TerminationByKubelet", "pod_reason": "Preempting"},
            Initiator.PREEMPTION,
        ),
        (
            {"disruption": "TerminationByKubelet", "pod_reason": "Terminated"},
            Initiator.NODE_SHUTDOWN,
        ),
        ({"verb": "evict", "disruption": "TerminationByKubelet"}, Initiator.UNKNOWN),
        ({"deleted": False}, Initiator.CONTAINER_RESTART),
        ({"deleted": False, "ended": False}, Initiator.CONTAINER_RESTART),
        ({"deleted": False, "told": False}, Initiator.CONTAINER),
        ({"deleted": False, "told": False, "ended": False}, Initiator.UNKNOWN),
        ({"deleted": None}, Initiator.UNKNOWN),
        # Case C33: who was evicted says so, unless nobody asked it to.
        ({"verb": "evict", "disruption_shown": True}, Initiator.OTHER_DELETION),
        ({"verb": "evacuate-node", "disruption_shown": True}, Initiator.OTHER_DELETION),
        (
            {"verb": "evict", "disruption": "EvictionByEvictionAPI", "disruption_shown": True},
            Initiator.API_EVICT,
        ),
        (
            {"verb": "evacuate-node", "disruption": "EvictionByEvictionAPI"},
            Initiator.EVACUATE_NODE,
        ),
        ({"disruption_shown": True}, Initiator.API_DELETE),
        ({"verb": "force-delete"}, Initiator.FORCE_DELETE),
        ({"verb": "container-kill", "deleted": False, "told": False}, Initiator.CONTAINER_KILL),
        ({"verb": "container-kill", "deleted": False}, Initiator.CONTAINER_RESTART),
        ({"verb": "container-kill"}, Initiator.OTHER_DELETION),
    ],
)
def test_who_began_it(given: dict[str, Any], found: Initiator) -> None:
    usual: dict[str, Any] = {
        "disruption": None,
        "pod_reason": None,
        "deleted": True,
        "verb": "delete",
        "told": True,
        "ended": True,
    }
    assert initiator(**{**usual, **given}) is found


def test_every_way_to_terminate_pods_has_its_initiator() -> None:
    assert VERBS.keys() == {str(verb) for verb in Trigger} - {Trigger.NONE}
    assert len(set(VERBS.values())) == len(VERBS)
    assert Initiator.UNKNOWN not in VERBS.values()


# --- whole recordings -------------------------------------------------------------------


def test_an_exit_after_sigterm() -> None:
    found = end(served(5100), log(TERM), s.cluster(0, 5200))
    assert (found.ended_by, found.initiator) == (EndedBy.EXIT, Initiator.API_DELETE)
    assert (found.exit_code, found.reason) == (0, "Completed")
    assert (found.in_flight_at_sigterm, found.oldest_in_flight_ns) == (3, 250 * MS)
    assert found.deletion_ns == (0, 12 * MS)
    assert found.sigterm_ns == (40 * MS, 40 * MS)
    assert found.expected_kill_ns == (10_000 * MS, 10_040 * MS)
    assert found.ended_ns == (round(5099.8 * MS), 5200 * MS)
    assert (found.pre_stop, found.pre_stop_ns) == (PreStopOutcome.NONE, None)


def test_sigkill_at_the_end_of_the_grace_period() -> None:
    found = end(served(10_050), log(TERM), s.cluster(137, 10_100))
    assert found.ended_by is EndedBy.SIGKILL_AT_GRACE


def test_a_signal_that_the_app_never_got() -> None:
    """Case C22. The same end with an app that logs the signal is another verdict."""
    found = end(served(10_050), log(), s.cluster(137, 10_100))
    assert found.ended_by is EndedBy.SIGNAL_NOT_DELIVERED
    assert found.sigterm_ns is None
    assert found.expected_kill_ns == (10_000 * MS, 10_012 * MS)
    assert found.in_flight_at_sigterm is None
    assert "PID 1" in found.evidence[1]


@pytest.mark.parametrize(
    "lines",
    [
        log(complete=False),
        [s.log_ended(complete=True)],  # nothing in it at all
        [s.log(Event.LISTENING, -5950, nonce="n"), s.log_ended(complete=True)],  # nor its beginning
        [s.log(Event.PROBE_STARTED, -5950, nonce="n")],  # an older recording does not say
    ],
)
def test_a_log_that_may_lack_a_line_does_not_say_that_no_signal_came(
    lines: list[Observation],
) -> None:
    found = end(served(10_050), lines, s.cluster(137, 10_100))
    assert found.ended_by is EndedBy.UNKNOWN


def test_a_kill_before_the_rule_allows_it() -> None:
    found = end(served(4900), log(TERM), s.cluster(137, 5000))
    assert found.ended_by is EndedBy.KILLED_EARLY


def test_a_kill_that_nobody_watched_is_not_judged() -> None:
    """The last sign of life is 3 s before the frame: it may have been early."""
    found = end(served(7000), log(TERM), s.cluster(137, 10_100))
    assert found.ended_by is EndedBy.UNKNOWN
    assert found.ended_ns == (round(6999.8 * MS), 10_100 * MS)


@pytest.mark.parametrize(
    ("logged_ms", "verdict"),
    [
        (40, EndedBy.SIGKILL_AT_GRACE),
        (140, EndedBy.SIGKILL_AT_GRACE),
        (350, EndedBy.SIGKILL_AT_GRACE),
        # The kubelet may have begun so late, and somebody else have killed it a second sooner.
        (1540, EndedBy.UNKNOWN),
    ],
)
def test_a_sigterm_logged_late_makes_no_early_kill(logged_ms: float, verdict: EndedBy) -> None:
    """A busy app's handler runs late: the kill counts from the deletion."""
    found = end(served(10_030), log(term(logged_ms)), s.cluster(137, 10_100))
    assert found.ended_by is verdict
    assert found.expected_kill_ns == (10_000 * MS, round((10_000 + logged_ms) * MS))
    early = end(served(9900), log(term(logged_ms)), s.cluster(137, 9990))
    assert early.ended_by is EndedBy.KILLED_EARLY


@pytest.mark.parametrize(
    ("ended_ms", "verdict"), [(1990, EndedBy.KILLED_EARLY), (2050, EndedBy.UNKNOWN)]
)
def test_two_seconds_count_from_the_deletion_where_the_grace_was_shortened(
    ended_ms: float, verdict: EndedBy
) -> None:
    shorter = s.pod(
        OLD, 100, containers=[s.LIVE], deletion_timestamp="then", deletion_grace_period_s=1
    )
    frames = s.cluster(137, ended_ms)
    found = end(served(ended_ms - 40), log(term(1500)), [shorter], frames)
    assert found.ended_by is verdict
    assert found.expected_kill_ns is None


def test_a_sigterm_before_the_deletion_starts_no_grace_period_of_its() -> None:
    """A failed liveness probe had begun its end: when the kill is due, nothing says."""
    leaving = {"deletion_timestamp": "then", "deletion_grace_period_s": 10}
    other = [
        s.log(Event.SIGTERM_RECEIVED, -6500, uid=OTHER, nonce="o"),
        s.pod(OTHER, -6000, containers=[s.LIVE]),
        s.pod(OTHER, 100, containers=[s.LIVE], **leaving),
        s.pod(OTHER, 150, containers=[s.gone(137)], **leaving),
    ]
    found = ends(served(5100), log(TERM), s.cluster(0, 5200), other)[1]
    assert found.sigterm_ns == (-6500 * MS, -6500 * MS)
    assert (found.expected_kill_ns, found.ended_by) == (None, EndedBy.UNKNOWN)


def test_a_late_kill_is_one_at_grace_and_says_how_late() -> None:
    """Case C24 on an old kubelet: twice the grace period."""
    found = end(served(20_000), log(TERM), s.cluster(137, 20_100))
    assert found.ended_by is EndedBy.SIGKILL_AT_GRACE
    assert any("10.0 s later than the kubelet's rule" in text for text in found.evidence)


def test_an_exit_without_sigterm() -> None:
    gone = s.log(Event.EXITING, 30, nonce="n", code=0)
    found = end(served(20), log(gone, complete=False), s.cluster(0, 300))
    assert found.ended_by is EndedBy.EXIT_BEFORE_SIGTERM
    found = end(served(20), log(complete=False), s.cluster(0, 300))
    assert found.ended_by is EndedBy.UNKNOWN


@pytest.mark.parametrize("gone", [{"exit_code": 143}, {"exit_code": 0, "signal": 15}])
def test_a_death_by_sigterm_is_no_exit_before_it(gone: dict[str, object]) -> None:
    """Without a handler the log is complete and silent: who sent the signal, nothing says."""
    state: dict[str, object] = {"reason": "Error", **gone}
    found = end(served(40), log(), s.cluster(end_ms=100, gone=state))
    assert found.ended_by is EndedBy.UNKNOWN
    assert any("death by SIGTERM" in text for text in found.evidence)
    handled = end(served(90), log(TERM), s.cluster(end_ms=100, gone=state))
    assert handled.ended_by is EndedBy.EXIT
    other = end(
        served(40), log(), s.cluster(end_ms=100, gone={**state, "exit_code": 1, "signal": None})
    )
    assert other.ended_by is EndedBy.EXIT_BEFORE_SIGTERM


@pytest.mark.parametrize(
    ("gone", "verdict"),
    [
        ({"exit_code": 137, "reason": "OOMKilled"}, EndedBy.OOM_KILLED),
        ({"exit_code": 0, "reason": "OOMKilled"}, EndedBy.EXIT),  # a child's, not its own
        ({"exit_code": 137, "reason": "Error"}, EndedBy.KILLED_EARLY),
        # The kubelet's word for a container that it lost, with SIGKILL's code.
        ({"exit_code": 137, "reason": "ContainerStatusUnknown"}, EndedBy.UNKNOWN),
        ({"exit_code": None, "reason": None}, EndedBy.UNKNOWN),
        ({"exit_code": 0, "signal": 9, "reason": "Error"}, EndedBy.KILLED_EARLY),
    ],
)
def test_what_the_status_says_of_an_early_end(gone: dict[str, object], verdict: EndedBy) -> None:
    found = end(served(900), log(TERM), s.cluster(end_ms=1000, gone=gone))
    assert found.ended_by is verdict


def test_a_grace_period_shortened_on_the_way_has_no_expected_kill() -> None:
    shorter = s.pod(
        OLD, 2000, containers=[s.LIVE], deletion_timestamp="then", deletion_grace_period_s=1
    )
    found = end(served(4000), log(TERM), [shorter], s.cluster(137, 4100))
    assert found.expected_kill_ns is None
    assert found.ended_by is EndedBy.UNKNOWN
    assert any("shortened" in text for text in found.evidence)


def test_the_removal_of_the_object_is_no_shortening() -> None:
    """The kubelet's last delete sets 0, and here nobody saw the container's end before it."""
    live = s.pod(OLD, -6000, containers=[s.LIVE])
    leaving = {"containers": [s.LIVE], "deletion_timestamp": "then"}
    removed = s.pod(OLD, 10_110, type="DELETED", deletion_grace_period_s=0, **leaving)
    asked = s.pod(OLD, 12, deletion_grace_period_s=10, **leaving)
    found = end(served(10_050), log(TERM), [live, asked, removed])
    assert found.deletion_grace_period_s == 10
    # A forced deletion shows nothing but the removal.
    assert end(served(50), log(TERM), [live, removed]).deletion_grace_period_s == 0


def test_an_answer_after_the_end_bounds_nothing() -> None:
    """Evidence against itself: the last line of the log bounds the end then."""
    found = end(served(5300), log(TERM), s.cluster(0, 5200))
    assert found.ended_ns == (40 * MS, 5200 * MS)


def test_a_deletion_that_nobody_watched_may_precede_the_trigger() -> None:
    blind = Observation(
        source=Source.K8S,
        event=Event.WATCH_GAP,
        at=at(-2000, 12),
        data={"resource": "pods", "reason": "410"},
    )
    found = end(served(10_050), log(), [blind], s.cluster(137, 10_100))
    assert found.deletion_ns == (-2000 * MS, 12 * MS)
    assert found.expected_kill_ns == (8000 * MS, 10_012 * MS)
    assert end(served(10_050), log(), s.cluster(137, 10_100)).deletion_ns == (0, 12 * MS)


@pytest.mark.parametrize("shown_ms", [790, 810])
def test_a_deletion_that_a_resumed_watch_tells_late_may_precede_the_trigger(
    shown_ms: float,
) -> None:
    """The gap is recorded when the watch is open again, the frame that it hid after that."""
    blind = Observation(
        source=Source.K8S,
        event=Event.WATCH_GAP,
        at=at(-500, 800),
        data={"resource": "pods", "reason": "closed"},
    )
    leaving = {"deletion_timestamp": "then", "deletion_grace_period_s": 10}
    live = s.pod(OLD, -6000, containers=[s.LIVE])
    frames = [
        s.pod(OLD, shown_ms, containers=[s.LIVE], **leaving),
        s.pod(OLD, 9800, containers=[s.gone(137)], **leaving),
    ]
    hidden = (-500 * MS, round(shown_ms * MS))

    def told(*parts: list[Observation]) -> TrialReport:
        seen = ([s.accepted()], served(9500), [live], frames, *parts)
        return derive(s.recording(*seen, config=NO_HOOK)).trial

    trial = told([blind])
    (found,) = trial.pod_ends
    assert (found.deletion_ns, found.ended_by) == (hidden, EndedBy.UNKNOWN)
    assert trial.trigger.effective_ns == hidden
    entries = [e for e in trial.timeline if e.event == "pod_deletion_timestamp_set"]
    assert [(e.t_ns, e.approximate) for e in entries] == [(hidden, True)]
    # Without the gap, or with a frame after it that shows the pod as it was: not hidden.
    since = s.pod(OLD, 805, containers=[s.LIVE])
    for seen in (told(), *([told([blind], [since])] if shown_ms > 805 else [])):
        (found,) = seen.pod_ends
        assert found.deletion_ns == seen.trigger.effective_ns == (0, hidden[1])
        assert found.ended_by is EndedBy.KILLED_EARLY
        entries = [e for e in seen.timeline if e.event == "pod_deletion_timestamp_set"]
        assert [(e.t_ns, e.approximate) for e in entries] == [((0, hidden[1]), False)]


def test_a_target_that_did_not_end_is_unknown() -> None:
    live = s.pod(OLD, -6000, containers=[s.LIVE])
    leaving = s.pod(OLD, 12, containers=[s.LIVE], deletion_timestamp="then")
    found = end(served(9000), log(TERM), [live, leaving])
    assert (found.ended_by, found.ended_ns) == (EndedBy.UNKNOWN, None)
    assert found.initiator is Initiator.API_DELETE


# --- others than the trigger ------------------------------------------------------------


def test_the_eviction_api_says_so_itself() -> None:
    found = end(served(5100), log(TERM), s.cluster(0, 5200, disruption="EvictionByEvictionAPI"))
    assert found.initiator is Initiator.API_EVICT


def test_each_run_of_a_restarted_target_has_its_own_end() -> None:
    """It crashed by itself and came back before the trigger: the second run is judged apart."""
    again = {**s.LIVE, "restarts": 1}
    died = {**again, "state": "terminated", "exit_code": 137, "reason": "Error"}
    leaving = {"deletion_timestamp": "then", "deletion_grace_period_s": 10}
    frames = [
        s.pod(OLD, -9000, containers=[s.LIVE]),
        s.pod(OLD, -8000, containers=[s.gone(1, reason="Error")]),
        s.pod(OLD, -7000, containers=[again]),
        s.pod(OLD, 12, containers=[again], **leaving),
        s.pod(OLD, 10_100, containers=[died], **leaving),
    ]
    lines = [
        s.log(Event.PROBE_STARTED, -8900, nonce="m"),
        *log(s.log(Event.SIGTERM_RECEIVED, 40, nonce="n")),
    ]
    first, second = ends(served(10_050), lines, frames)
    assert (first.restart, first.initiator, first.exit_code) == (0, Initiator.CONTAINER, 1)
    assert (first.ended_by, first.sigterm_ns) == (EndedBy.EXIT_BEFORE_SIGTERM, None)
    # The log that was read to its end is the second run's.
    assert any("not known to be complete" in text for text in first.evidence)
    assert (second.restart, second.initiator) == (1, Initiator.API_DELETE)
    assert second.ended_by is EndedBy.SIGKILL_AT_GRACE


def began_before() -> tuple[list[Observation], list[Observation]]:
    """A target that had restarted before anybody watched: its frames, and both runs' logs."""
    again = {**s.LIVE, "restarts": 1, "last_state": s.gone(1, reason="Error")}
    leaving = {"deletion_timestamp": "then", "deletion_grace_period_s": 10}
    frames = [
        s.pod(OLD, -6000, containers=[again]),
        s.pod(OLD, 12, containers=[again], **leaving),
        s.pod(OLD, 5200, containers=[{**s.gone(0), "restarts": 1}], **leaving),
    ]
    lines = [
        s.log(Event.PROBE_STARTED, -9000, nonce="m"),
        s.log(Event.EXITING, -6900, nonce="m"),
    ]
    return frames, lines


def test_a_restart_before_the_first_frame_is_none_of_the_trial() -> None:
    frames, earlier = began_before()
    trial = derive(
        s.recording([s.accepted()], served(5100), log(TERM), frames, config=NO_HOOK)
    ).trial
    (found,) = trial.pod_ends
    assert (found.restart, found.ended_by) == (1, EndedBy.EXIT)
    assert not any("restarted during the trial" in note for note in trial.notes)
    assert not any(e.event == "container_restarted" for e in trial.timeline)
    # With the log of both processes the SIGTERM is still the second's own.
    (both,) = ends(served(5100), earlier, log(TERM), frames)
    assert (both.ended_by, both.sigterm_ns) == (EndedBy.EXIT, (40 * MS, 40 * MS))
    # One that comes while somebody watches is the trial's, and is named.
    during = [s.pod(OLD, -6000, containers=[s.LIVE]), replace(frames[0], at=at(-5500)), *frames[1:]]
    trial = derive(
        s.recording([s.accepted()], served(5100), log(TERM), during, config=NO_HOOK)
    ).trial
    assert [(e.restart, e.ended_ns) for e in trial.pod_ends if not e.restart] == [
        (0, (-6000 * MS, -5500 * MS))
    ]
    assert sum("restarted during the trial" in note for note in trial.notes) == 1


def test_an_end_that_the_first_frame_shows_has_no_time() -> None:
    """It may have ended long before anybody looked."""
    done = [s.pod(OTHER, -6000, containers=[s.gone(1, reason="Error")])]
    found = ends(served(5100), log(TERM), s.cluster(0, 5200), done)[1]
    assert (found.pod_uid, found.ended_ns) == (OTHER, None)
    assert (found.ended_by, found.exit_code) == (EndedBy.EXIT_BEFORE_SIGTERM, 1)
    assert any("nothing tells when" in text for text in found.evidence)
    # Its own log says since when at the earliest.
    lines = [s.log(Event.PROBE_STARTED, -9000, uid=OTHER, nonce="o")]
    found = ends(served(5100), log(TERM), s.cluster(0, 5200), done, lines)[1]
    assert found.ended_ns == (-9000 * MS, -6000 * MS)


def test_lines_of_one_process_too_many_belong_to_nobody() -> None:
    """Whose SIGTERM it was cannot be told, so nobody gets it."""
    lines = [s.log(Event.PROBE_STARTED, -9000, nonce="m"), *log(TERM)]
    found = end(served(10_050), lines, s.cluster(137, 10_100))
    assert (found.sigterm_ns, found.ended_by) == (None, EndedBy.UNKNOWN)


def test_a_sidecars_end_is_not_the_probes() -> None:
    """SIGTERM in the probe's log says nothing of another container's."""
    both = [s.gone(0, reason="Completed"), {**s.gone(137, reason="Error"), "name": "proxy"}]
    live = [s.LIVE, {**s.LIVE, "name": "proxy"}]
    leaving = {"deletion_timestamp": "then", "deletion_grace_period_s": 10}
    frames = [
        s.pod(OLD, -6000, containers=live),
        s.pod(OLD, 12, containers=live, **leaving),
        s.pod(OLD, 10_100, containers=both, **leaving),
    ]
    found = {e.container: e for e in ends(served(9000), log(TERM), frames)}
    assert found["probe"].ended_by is EndedBy.EXIT
    assert (found["proxy"].ended_by, found["proxy"].sigterm_ns) == (EndedBy.UNKNOWN, None)


def test_answers_of_two_processes_are_nobodys_sign_of_life_without_a_log() -> None:
    """With one process they are the container's; whose end they bound is certain then."""
    one = end(served(10_050), s.cluster(137, 10_100))
    assert one.ended_ns == (round(10_049.8 * MS), 10_100 * MS)
    other = [s.client(Event.FLOW_ANSWERED, "tcp-0002", at(-900, 50), responder=f"{OLD}/m")]
    two = end(served(10_050), other, s.cluster(137, 10_100))
    assert two.ended_ns == (-6000 * MS, 10_100 * MS)
    assert two.ended_by is EndedBy.UNKNOWN


# --- less evidence, less certainty ------------------------------------------------------


def stories() -> dict[str, tuple[list[Observation], dict[str, object]]]:
    """One for each verdict."""
    killing = [s.cluster_event("Killing")]
    failed = [*killing, s.cluster_event("FailedPreStopHook")]
    gone = s.log(Event.EXITING, 5110, nonce="n", code=0)
    return {
        "exit": ([*served(5100), *log(TERM, gone), *s.cluster(0, 5200)], NO_HOOK),
        "at-grace": ([*served(10_050), *log(TERM), *s.cluster(137, 10_100)], NO_HOOK),
        "not-delivered": ([*served(10_050), *log(), *s.cluster(137, 10_100)], NO_HOOK),
        "early": ([*served(4900), *log(TERM), *s.cluster(137, 5000)], NO_HOOK),
        "slept": ([*served(4100), *log(term(3050)), *s.cluster(0, 4200)], SLEEPS),
        "failed": ([*served(1000), *log(term(90)), *failed, *s.cluster(0, 1100)], EXECS),
        "hung": ([*served(12_030), *log(term(10_020)), *failed, *s.cluster(137, 12_100)], EXECS),
        "ran": ([*served(1000), *log(term(90)), *killing, *s.cluster(0, 1100)], EXECS),
        "evicted": (
            [
                *served(5100),
                *log(TERM),
                *s.cluster(0, 5200, disruption="EvictionByEvictionAPI"),
            ],
            NO_HOOK,
        ),
    }


def drops(seen: list[Observation]) -> Iterator[tuple[str, list[Observation]]]:
    """Each source, each kind, and each single frame or answer taken away."""
    for source in {o.source for o in seen}:
        yield str(source), [o for o in seen if o.source is not source]
    # Lines of a log that is known to be complete cannot be lost one kind at a time.
    whole = {o.event for o in seen if o.source is Source.PROBE}
    for event in {o.event for o in seen} - whole:
        yield str(event), [o for o in seen if o.event is not event]
    for n, o in enumerate(seen):
        if o.event in (Event.POD, Event.FLOW_ANSWERED, Event.LOG_ENDED):
            yield f"{o.event} {n}", [*seen[:n], *seen[n + 1 :]]


@pytest.mark.parametrize("story", stories())
def test_without_evidence_a_verdict_becomes_unknown_and_never_another(story: str) -> None:
    seen, config = stories()[story]
    sure = end(seen, config=config)
    assert sure.ended_by is not EndedBy.UNKNOWN
    judged = 0
    for lost, left in drops(seen):
        try:
            (less,) = [e for e in ends(left, config=config) if e.pod_uid == OLD]
        except (CannotDerive, ValueError):
            continue
        judged += 1
        assert less.ended_by in (sure.ended_by, EndedBy.UNKNOWN), lost
        assert less.initiator in (sure.initiator, Initiator.UNKNOWN), lost
        assert less.pre_stop in (sure.pre_stop, None), lost
        for name in ("sigterm_ns", "ended_ns", "deletion_ns", "pre_stop_ns"):
            was, now = getattr(sure, name), getattr(less, name)
            if was is not None and now is not None:
                assert now[0] <= was[0] <= was[1] <= now[1], (lost, name)
        if sure.expected_kill_ns and less.expected_kill_ns:
            # The upper end takes for prompt what nothing shows to have been late.
            assert less.expected_kill_ns[0] <= sure.expected_kill_ns[0], lost
    assert judged >= 5
