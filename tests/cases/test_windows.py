"""Cases about new connections and endpoints, on hand-made recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Integrity, TrialReport
from pytest_drainwatch.core.flow.classify import Outcome
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.render import probing
from pytest_drainwatch.render.terminal import show
from tests.core import story as s
from tests.core.story import NEW, OLD, OTHER, at
from tests.core.tries import Try, prober, tries

MS = NS_PER_MS
READY, FALLBACK, UNREADY = (True, True, False), (False, True, True), (False, False, True)


def judged(
    *parts: Iterable[Observation],
    targets: tuple[str, ...] = (OLD,),
    verb: str = "delete",
    config: dict[str, object] | None = None,
) -> TrialReport:
    trigger = [s.accepted(targets=targets, verb=verb)]
    return derive(s.recording(trigger, *parts, config=config)).trial


def tried(trial: TrialReport) -> NewConnections:
    (found,) = trial.new_connections
    return found


def among(attempts: list[Try], failed: Sequence[int], result: Result) -> list[Try]:
    """The same attempts; those in these slots failed."""
    return [
        Try(one.slot, one.ms, result, None, one.took_ms) if one.slot in failed else one
        for one in attempts
    ]


def test_c09_whatever_the_counts_a_foreign_answer_marks_the_trial() -> None:
    """The address was recycled: another service answers, to a flow, or to a new connection."""
    alien = s.responder("udp-0001", "uid-alien", 2900, 3000, previous=OLD)
    flow = [*s.alive("udp-0001", 2900), alien]
    silent = judged(s.cluster(), s.alive("udp-0001", 2900))
    assert silent.integrity is Integrity.OK
    met = judged(s.cluster(), flow)
    assert met.integrity is Integrity.FOREIGN_RESPONDER
    attempts = [*tries(0, 400), *tries(2000, 1, who="uid-alien"), *tries(2005, 400)]
    new = judged(s.cluster(), prober(attempts))
    assert new.integrity is Integrity.FOREIGN_RESPONDER
    assert tried(new).failed == 1
    assert tried(new).results["foreign"] == 1
    report = derive(s.recording([s.accepted()], s.cluster(), prober(attempts)))
    assert "! foreign responder" in show(report)


@pytest.mark.parametrize("sleeps", [False, True])
def test_c11_a_rollout_of_four_refuses_until_kube_proxy_has_heard(*, sleeps: bool) -> None:
    """Four pods end one after the other; without a preStop sleep some connects are refused."""
    pods = (OLD, OTHER, "uid-c", "uid-d")
    cluster = [s.pod(uid, -6000) for uid in pods]
    cluster += [s.deleted(uid, 2000.0 * n + 12) for n, uid in enumerate(pods)]
    gaps: list[int] = []
    for n in range(4):
        first = round((2000 * n + 50 + 10_000) / 5)
        gaps += [] if sleeps else range(first, first + 3)
    attempts = among(tries(-2000, 2400), gaps, Result.REFUSED)
    found = tried(judged(cluster, prober(attempts), targets=pods, verb="rollout"))
    assert found.attempts == 2000
    if sleeps:
        assert (found.failed, found.observed_failing) == (0, None)
        assert probing.cell([found]) == "0/2,000 failed (<0.15 %)"
        return
    assert found.failed == 12
    failing = found.observed_failing
    assert failing is not None
    assert failing.failures == 12
    assert failing.attempts > 1000, "most of those between the first and the last were served"
    assert failing.lasts_ns[0] > 5999 * MS
    refused = [run for run in found.runs if run.result == Result.REFUSED]
    assert [run.count for run in refused] == [3, 3, 3, 3], "one gap for each pod"


def test_c18_105_of_456_000_are_not_nothing() -> None:
    """0.023 %: shown with counts and an interval, never as 0.0 % and never as none."""
    attempts = tries(0, 456_000, period_ms=0.12, took_ms=0.1)
    lost = {attempts[n].slot for n in range(0, 105 * 4000, 4000)}
    failed = among(attempts, sorted(lost), Result.RESET)
    report = derive(s.recording([s.accepted()], s.cluster(), prober(failed, period_ms=0.12)))
    found = tried(report.trial)
    assert (found.attempts, found.failed) == (456_000, 105)
    assert found.failure_rate is not None
    assert found.failure_rate.low == pytest.approx(0.000188, abs=1e-6)
    assert found.failure_rate.high == pytest.approx(0.000279, abs=1e-6)
    text = show(report)
    assert "105" in text
    assert "456,000" in text
    assert "0.018–0.028 %" in text
    assert " 0.0 %" not in text
    assert " 0 %" not in text
    assert probing.cell([found]).startswith("105/456,000 failed, ")


@pytest.mark.parametrize("readiness", ["fail", "keep"])
def test_c37_the_last_pod_is_a_last_resort_while_it_is_ready(readiness: str) -> None:
    """One replica, its listener open for 5 s; the replacement is Ready after 3 s."""
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(20, (OLD, *FALLBACK))]
    if readiness == "fail":
        slices += [
            s.endpoints(1030, (OLD, *UNREADY)),
            s.endpoints(3000, (OLD, *UNREADY), NEW_READY),
        ]
        attempts = [
            *tries(-1000, 420),  # to 1.1 s
            *tries(1100, 390, Result.REFUSED),  # to 3.05 s
            *tries(3050, 400, who=NEW),
        ]
    else:
        slices.append(s.endpoints(3000, (OLD, *FALLBACK), NEW_READY))
        attempts = [*tries(-1000, 810), *tries(3050, 400, who=NEW)]
    pods = [s.pod(OLD, -6000), s.deleted(), s.pod(NEW, 100, ready=False)]
    trial = judged(slices, pods, prober(attempts))
    found, (windows,) = tried(trial), trial.windows
    (span,) = windows.fallback_routable or ()
    assert span.opens_ns == (0, 20 * MS)
    served = {pod.pod_uid: pod for pod in found.answered_by}
    assert served[OLD].role == "target"
    assert span.closes_ns is not None
    if readiness == "fail":
        assert span.closes_ns == (0, 1030 * MS)
        assert found.results["refused"] == 390
        assert found.observed_failing is not None
        assert found.observed_failing.first_ns[0] > span.closes_ns[1], "not before it failed"
        assert found.observed_failing.last_ns[1] < 3050 * MS
    else:
        assert span.closes_ns == (0, 3000 * MS)
        assert found.failed == 0
        assert (found.by_terminating or 0) > 500, "served by the old pod for three seconds"


NEW_READY = (NEW, True, True, False)


def test_c40_connections_that_still_reach_an_unready_pod_are_counted() -> None:
    """IPVS keeps a server at weight 0 and goes on leading reused source ports to it."""
    slices = [
        s.endpoints(-100, (OLD, *READY), (OTHER, *READY)),
        s.endpoints(20, (OLD, *FALLBACK), (OTHER, *READY)),
    ]
    pods = [s.pod(OLD, -6000), s.pod(OTHER, -6000), s.deleted()]
    whose = [OTHER, OLD]
    attempts = [one for n in range(400) for one in tries(5 * n, 1, who=whose[n % 10 == 0])]
    found = tried(judged(slices, pods, prober(attempts)))
    assert found.failed == 0, "each of them was served: that is not what is wrong"
    assert found.after_unready == 39, "all of the old pod's but the one at 0 ms"
    clean = [*tries(0, 4), *tries(20, 400, who=OTHER)]
    assert tried(judged(slices, pods, prober(clean))).after_unready == 0


def test_c44_published_though_not_ready_it_stays_ready_to_its_end() -> None:
    """ready:false never comes: null with the reason, and terminating is still timed."""
    kept = (True, True, True)
    slices = [s.endpoints(-100, (OLD, *READY)), s.endpoints(20, (OLD, *kept)), s.endpoints(5100)]
    config: dict[str, object] = {"publish_not_ready_addresses": True}
    term = [s.client(
        Event.CLOCK_EXCHANGE, f"{OLD}/n", at(-50, -49.8), clock=s.CLOCK,
        t1=s.ns(-50), t2=s.ns(-49.9), t3=s.ns(-49.9), t4=s.ns(-49.8),
    ), s.log(Event.SIGTERM_RECEIVED, 40)]  # fmt: skip
    trial = judged(slices, [s.deleted()], term, config=config)
    assert trial.summary.trigger_to_sigterm_ms == 40
    assert trial.summary.sigterm_to_ready_false_ms is None
    assert trial.summary.sigterm_to_ready_false_ns is None
    assert any("publishNotReadyAddresses" in note for note in trial.notes)
    (windows,) = trial.windows
    assert windows.ready_false_ns is None
    assert windows.terminating_ns == (0, 20 * MS)
    assert windows.ready_routable.closes_ns == (0, 5100 * MS)
    assert windows.ready_routable.note is not None
    assert windows.fallback_routable == (), "it was ready: nobody had to fall back to it"


def test_c47_an_endpoint_is_gone_with_its_last_family() -> None:
    """The IPv4 slice loses the entry 400 ms before the IPv6 one."""
    both = [
        s.endpoints(-100, (OLD, *READY), name="v4", family="IPv4"),
        s.endpoints(-100, (OLD, *READY), name="v6", family="IPv6"),
        s.endpoints(20, (OLD, *FALLBACK), name="v4", family="IPv4"),
        s.endpoints(25, (OLD, *FALLBACK), name="v6", family="IPv6"),
        s.endpoints(5100, name="v4", family="IPv4"),
        s.endpoints(5500, name="v6", family="IPv6"),
    ]
    ended = [
        *s.alive("tcp-0001", 5049),
        s.client(Event.FLOW_RESET, "tcp-0001", at(5050, 5051), errno="ECONNRESET"),
    ]
    trial = judged(both, ended, [s.deleted()])
    assert [flow.outcome for flow in trial.flows] == [Outcome.SEVERED]
    (windows,) = trial.windows
    assert windows.removed_by_family_ns == {"IPv4": (0, 5100 * MS), "IPv6": (0, 5500 * MS)}
    assert windows.removed_ns == (0, 5500 * MS)
    assert windows.ready_false_ns == (0, 25 * MS), "it was ready in one family for so long"
    assert trial.summary.trigger_to_endpoint_removed_ms == 5500
    assert trial.summary.dead_endpoint_window_ms == 449, "and not negative by the other family"


def test_c69_our_own_ports_ran_out_and_the_trial_is_called_degraded() -> None:
    """EADDRNOTAVAIL is ours: not in the window, not in the rate, and said aloud."""
    limited = [Try(one.slot, one.ms, Result.CLIENT_LIMIT, None, 0.1, "EADDRNOTAVAIL")
               for one in tries(100, 300, Result.CLIENT_LIMIT)]  # fmt: skip
    attempts = [*tries(-500, 120), *limited, *tries(1600, 200, who=NEW)]
    report = derive(s.recording([s.accepted()], s.cluster(), prober(attempts)))
    found = tried(report.trial)
    assert (found.failed, found.observed_failing) == (0, None)
    assert found.attempts == 220
    assert found.results["client-limit"] == 300
    assert [run.errno for run in found.runs] == [None, "EADDRNOTAVAIL", None]
    (reason,) = report.trial.degraded
    assert "300 attempt(s)" in reason
    assert "! degraded: tcp-new: 300 attempt(s)" in show(report)
    refused = [Try(o.slot, o.ms, Result.REFUSED, None, 0.1, "ECONNREFUSED") for o in limited]
    blamed = judged(s.cluster(), prober([*tries(-500, 120), *refused]))
    assert blamed.degraded == ()
    assert tried(blamed).failed == 300
