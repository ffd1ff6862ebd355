"""What became of a preStop hook, and what that makes of the kill that the kubelet owes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch.core.document import PodEnd
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.pod.ending import EndedBy, Hook, PreStopOutcome, pre_stop_outcome
from pytest_drainwatch.core.pod.kubelet import kill_after, sigterm_after
from tests.core import story as s
from tests.core.endings import ASKS, EXECS, SLEEPS, end, log, served, term
from tests.core.story import NEW

MS, S = NS_PER_MS, NS_PER_S


@pytest.mark.parametrize(
    ("hook", "found"),
    [
        (Hook(grace_ns=10 * S, until_sigterm_ns=40 * MS, failed=True), PreStopOutcome.FAILED),
        (Hook(grace_ns=10 * S, until_sigterm_ns=40 * MS, failed=False), PreStopOutcome.COMPLETED),
        (Hook(grace_ns=10 * S, until_sigterm_ns=40 * MS, failed=None), None),
        # What is cut off is called failed too, once its container is killed.
        (Hook(grace_ns=4 * S, until_sigterm_ns=4025 * MS, failed=True), PreStopOutcome.CUT_OFF),
        # Without that, a hook of 3.99 s and a kubelet that began late fit as well.
        (Hook(grace_ns=4 * S, until_sigterm_ns=4025 * MS, failed=False), None),
        (Hook(grace_ns=4 * S, until_sigterm_ns=4025 * MS), None),
        (Hook(grace_ns=None, until_sigterm_ns=4025 * MS, failed=False), None),
        (Hook(grace_ns=4 * S, until_sigterm_ns=None, failed=True), None),
        # The sleep action says itself how long it takes.
        (
            Hook(grace_ns=9 * S, lasts_ns=3 * S, sleeps=True, until_sigterm_ns=3025 * MS),
            PreStopOutcome.COMPLETED,
        ),
        (
            Hook(
                grace_ns=9 * S,
                lasts_ns=3 * S,
                sleeps=True,
                until_sigterm_ns=40 * MS,
                failed=True,
            ),
            PreStopOutcome.FAILED,
        ),
        (
            Hook(
                grace_ns=9 * S,
                lasts_ns=3 * S,
                sleeps=True,
                until_sigterm_ns=40 * MS,
                failed=False,
            ),
            None,
        ),
        (
            Hook(
                grace_ns=4 * S,
                lasts_ns=3 * S,
                sleeps=True,
                until_sigterm_ns=4200 * MS,
                failed=False,
            ),
            PreStopOutcome.COMPLETED,  # the kubelet began a second late
        ),
        (
            Hook(
                grace_ns=4 * S,
                lasts_ns=4 * S,
                sleeps=True,
                until_sigterm_ns=4025 * MS,
                failed=False,
            ),
            PreStopOutcome.CUT_OFF,
        ),
        # An httpGet hook takes so long at least, and may fail or hang.
        (Hook(grace_ns=4 * S, lasts_ns=5 * S, until_sigterm_ns=4025 * MS), PreStopOutcome.CUT_OFF),
        (Hook(grace_ns=4 * S, lasts_ns=3 * S, until_sigterm_ns=4025 * MS, failed=False), None),
        (
            Hook(grace_ns=4 * S, lasts_ns=3 * S, until_sigterm_ns=4025 * MS, failed=True),
            PreStopOutcome.CUT_OFF,
        ),
        (Hook(grace_ns=9 * S, lasts_ns=3 * S, until_sigterm_ns=3025 * MS), None),
        (
            Hook(grace_ns=9 * S, lasts_ns=3 * S, until_sigterm_ns=3025 * MS, failed=False),
            PreStopOutcome.COMPLETED,
        ),
        (Hook(grace_ns=9 * S, lasts_ns=3 * S, until_sigterm_ns=40 * MS, failed=False), None),
        (Hook(grace_ns=None, answered=True), PreStopOutcome.COMPLETED),
    ],
)
def test_what_became_of_the_hook(hook: Hook, found: PreStopOutcome | None) -> None:
    assert pre_stop_outcome(hook) is found


def test_a_sleep_that_ran_its_time() -> None:
    found = end(served(4100), log(term(3050)), s.cluster(0, 4200), config=SLEEPS)
    assert found.pre_stop is PreStopOutcome.COMPLETED
    assert found.pre_stop_ns == (3 * S, 3050 * MS)
    assert found.expected_kill_ns == (10_000 * MS, 10_050 * MS)


def test_whole_seconds_of_the_hook_are_taken_off() -> None:
    """A hook of 1.5 s costs one: the kill comes 0.5 s after the grace period."""
    called, answered = (
        s.log(Event.PRESTOP_CALLED, 30, nonce="n"),
        s.log(Event.PRESTOP_ANSWERED, 1531, nonce="n"),
    )
    lines = log(called, answered, term(1540))
    found = end(served(10_500), lines, s.cluster(137, 10_600), config=ASKS)
    assert found.pre_stop is PreStopOutcome.COMPLETED
    assert found.pre_stop_ns == (1500 * MS, 1540 * MS)
    assert found.expected_kill_ns == (10_500 * MS, 10_540 * MS)
    assert found.ended_by is EndedBy.SIGKILL_AT_GRACE


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        (["Killing", "FailedPreStopHook"], PreStopOutcome.FAILED),
        (["Killing"], PreStopOutcome.COMPLETED),
        ([], None),  # the kubelet's events were not read
    ],
)
def test_an_exec_hook_that_lasted_no_time(told: list[str], outcome: PreStopOutcome | None) -> None:
    """Case C27."""
    events = [s.cluster_event(reason) for reason in told]
    found = end(served(1000), log(term(90)), events, s.cluster(0, 1100), config=EXECS)
    assert found.pre_stop is outcome
    assert found.pre_stop_ns == (0, 90 * MS)
    assert any("FailedPreStopHook" in text for text in found.evidence) == (
        outcome is PreStopOutcome.FAILED
    )


def test_another_pods_or_containers_event_says_nothing_of_this_one() -> None:
    of_sidecar = s.cluster_event("FailedPreStopHook")
    of_sidecar = replace(of_sidecar, data={**of_sidecar.data, "container": "proxy"})
    of_pod = s.cluster_event("FailedPreStopHook", uid=NEW)
    events = [of_pod, of_sidecar, s.cluster_event("Killing")]
    found = end(served(1000), log(term(90)), events, s.cluster(0, 1100), config=EXECS)
    assert found.pre_stop is PreStopOutcome.COMPLETED


def test_a_hook_that_hangs() -> None:
    """Case C24: SIGTERM at the end of the grace period, SIGKILL two seconds later."""
    events = [s.cluster_event("Killing"), s.cluster_event("FailedPreStopHook")]
    frames = s.cluster(137, 12_100)
    found = end(served(12_030), log(term(10_020)), events, frames, config=EXECS)
    assert found.pre_stop is PreStopOutcome.CUT_OFF
    assert found.pre_stop_ns == (10 * S, 10_020 * MS)
    assert found.expected_kill_ns == (12_000 * MS, 12_020 * MS)
    assert found.ended_by is EndedBy.SIGKILL_AT_GRACE


def test_a_late_sigterm_alone_shows_no_hook_cut_off() -> None:
    """A command of 9.9 s and a kubelet that began 0.12 s late fit as well."""
    killing = [s.cluster_event("Killing")]
    found = end(served(10_500), log(term(10_020)), killing, s.cluster(0, 10_600), config=EXECS)
    assert (found.pre_stop, found.pre_stop_ns) == (None, (0, 10_020 * MS))
    found = end(served(10_500), log(term(9990)), killing, s.cluster(0, 10_600), config=EXECS)
    assert found.pre_stop is PreStopOutcome.COMPLETED


def asked(seconds: float, answered_ms: float | None, term_ms: float = 10_020) -> PodEnd:
    """An httpGet hook of a grace period of 10 s."""
    lines = [s.log(Event.PRESTOP_CALLED, 25, nonce="n")]
    if answered_ms is not None:
        lines.append(s.log(Event.PRESTOP_ANSWERED, answered_ms, nonce="n"))
    config: dict[str, object] = {"pre_stop": {"http_get_seconds": seconds}}
    told = [s.cluster_event("Killing")]
    return end(
        served(term_ms), log(*lines, term(term_ms)), told, s.cluster(0, 10_600), config=config
    )


def test_an_http_hook_is_cut_off_if_it_takes_longer_than_the_grace_period() -> None:
    cut = asked(12, None)
    assert (cut.pre_stop, cut.pre_stop_ns) == (PreStopOutcome.CUT_OFF, (10 * S, 10_020 * MS))
    assert asked(9.5, 9530, 9540).pre_stop is PreStopOutcome.COMPLETED
    # Answered when the kubelet may have given up, and logged before SIGTERM all the same.
    late = asked(9.5, 10_010)
    assert (late.pre_stop, late.pre_stop_ns) == (None, (0, 10_020 * MS))


@pytest.mark.parametrize("config", [{"replicas": 1}, {"pre_stop": "sleep 3"}])
def test_a_recording_that_does_not_say_whether_there_was_a_hook(config: dict[str, object]) -> None:
    found = end(served(1000), log(term(90)), s.cluster(0, 1100), config=config)
    assert (found.pre_stop, found.pre_stop_ns) == (None, None)


# --- a kubelet and an app, told in milliseconds, both as late as they like -----------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What happened in truth: the kubelet's delay, the hook, and how late things were logged."""

    grace_s: int
    deleted_ms: int
    kubelet_ms: int
    kind: str
    lasts_ms: int
    called_ms: int
    logged_ms: int
    events_read: bool

    @property
    def hook_ms(self) -> int:
        """How long the hook would take if nothing cut it off."""
        late_ms = self.called_ms if self.kind == "http" else 0
        return 0 if self.kind == "none" else self.lasts_ms + late_ms

    @property
    def began_ms(self) -> int:
        return self.deleted_ms + self.kubelet_ms

    @property
    def ran_ms(self) -> int:
        return sigterm_after(self.grace_s, self.hook_ms * MS) // MS

    @property
    def killed_ms(self) -> int:
        return self.began_ms + kill_after(self.grace_s, self.hook_ms * MS) // MS

    @property
    def outcome(self) -> PreStopOutcome:
        if self.kind == "none":
            return PreStopOutcome.NONE
        over = self.hook_ms >= self.grace_s * 1000
        return PreStopOutcome.CUT_OFF if over else PreStopOutcome.COMPLETED

    def judged(self) -> PodEnd:
        """The recording that this leaves, and what is made of it."""
        config: dict[str, dict[str, object] | None] = {
            "none": None,
            "sleep": {"sleep_seconds": self.lasts_ms // 1000},
            "exec": {"exec": ["flush"]},
            "http": {"http_get_seconds": self.lasts_ms / 1000},
        }
        lines = []
        if self.kind == "http":
            called_ms = self.began_ms + self.called_ms
            lines.append(s.log(Event.PRESTOP_CALLED, called_ms, nonce="n"))
            if called_ms + self.lasts_ms < self.killed_ms:
                answered = s.log(Event.PRESTOP_ANSWERED, called_ms + self.lasts_ms, nonce="n")
                lines.append(answered)
        term_ms = min(self.began_ms + self.ran_ms + self.logged_ms, self.killed_ms - 1)
        told = [s.cluster_event("Killing")] if self.events_read else []
        if self.events_read and self.outcome is PreStopOutcome.CUT_OFF and self.kind == "exec":
            told.append(s.cluster_event("FailedPreStopHook"))
        return end(
            served(self.killed_ms - 20),
            log(*lines, term(term_ms)),
            told,
            s.cluster(137, self.killed_ms + 40, grace_s=self.grace_s),
            config={"pre_stop": config[self.kind], "grace_period_seconds": self.grace_s},
        )


@st.composite
def tellings(draw: st.DrawFn) -> Told:
    kind = draw(st.sampled_from(["none", "sleep", "exec", "http"]))
    grace_s = draw(st.integers(1, 8))
    near = st.integers(max(0, grace_s * 1000 - 200), grace_s * 1000 + 200)
    lasts_ms = draw(st.one_of(st.integers(0, 10_000), near))
    if kind == "sleep":  # the API server refuses one beyond the grace period
        lasts_ms = min(lasts_ms // 1000, grace_s) * 1000
    late = st.one_of(st.integers(0, 200), st.integers(0, 3000))
    return Told(
        grace_s=grace_s,
        deleted_ms=draw(st.integers(0, 12)),
        kubelet_ms=draw(late),
        kind=kind,
        lasts_ms=lasts_ms,
        called_ms=draw(st.integers(0, 200)),
        logged_ms=draw(late),
        events_read=draw(st.booleans()),
    )


@settings(max_examples=150, deadline=None)
@given(tellings())
def test_no_delay_of_the_kubelet_or_the_app_makes_a_wrong_verdict(told: Told) -> None:
    """A kill by the rule is never early, and bounds that are given hold the truth."""
    found = told.judged()
    assert found.ended_by in (EndedBy.SIGKILL_AT_GRACE, EndedBy.UNKNOWN)
    assert found.expected_kill_ns is not None
    assert found.expected_kill_ns[0] <= told.killed_ms * MS
    assert found.pre_stop in (told.outcome, None)
    if told.kind == "none":
        assert found.pre_stop_ns is None
    else:
        assert found.pre_stop_ns is not None
        assert found.pre_stop_ns[0] <= told.ran_ms * MS <= found.pre_stop_ns[1]
