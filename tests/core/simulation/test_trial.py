"""A whole simulated trial: every arm of the published matrix, against what was measured of it."""

from __future__ import annotations

import functools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_drainwatch import report as reports
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import Recording, dumps, loads, merge
from pytest_drainwatch.core.scenario import (
    App,
    Behavior,
    ClusterNeeds,
    Flows,
    Pid1,
    PreStop,
    Readiness,
    Scenario,
    ScenarioError,
    Trigger,
)
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.trial import simulate_trial
from pytest_drainwatch.render.page.trial import trial as page_trial
from pytest_drainwatch.render.trace.trials import picture
from scenarios.test_published_matrix import DRAINING, EXITING, FLOWS, IGNORING

SAMPLE = Path(__file__).resolve().parents[3] / "results" / "sample"
ARMS = [*EXITING, *IGNORING, *DRAINING]
SHORT = Scenario(
    app=App(drain_ns=4 * NS_PER_S, grace_period_s=10),
    flows=replace(FLOWS, tcp=3, udp=3),
    settle_ns=1 * NS_PER_S,
)


def judged(scenario: Scenario, took: Latencies | None = None) -> Report:
    return derive(simulate_trial(scenario, took))


def short(**app: object) -> Scenario:
    """The short trial with another application."""
    return replace(SHORT, app=replace(SHORT.app, **app))  # type: ignore[arg-type]


def how(told: Report, role: str = "target") -> Counter[tuple[str, str, str]]:
    """How flows ended: transport, outcome, mechanism."""
    return Counter(
        (str(flow.proto), str(flow.outcome), str(flow.mechanism))
        for flow in told.trial.flows
        if flow.role == role
    )


def bounds_of(at: Bounds | None) -> Bounds:
    assert at is not None
    return at


def windows(told: Report) -> list[tuple[object, ...]]:
    """Of each window of the target: was its end seen? Of the fallbacks how many there were."""
    return [
        (
            pod.advertised.closes_ns is not None,
            pod.ready_routable.closes_ns is not None,
            [span.closes_ns is not None for span in pod.fallback_routable or ()],
            pod.dead_endpoint.lasts_ns is not None,
        )
        for pod in told.trial.windows
    ]


@functools.cache
def measured(arm: str) -> tuple[Report, ...]:
    found = sorted(SAMPLE.glob(f"kubernetes-*/{arm}/r0*/report.json"))
    return tuple(reports.loads(path.read_text(encoding="utf-8")) for path in found)


@pytest.mark.parametrize("scenario", ARMS, ids=lambda arm: arm.id)
def test_each_arm_ends_as_it_was_measured(scenario: Scenario) -> None:
    """Outcomes of all flows, who ended the pod and how, and which windows there are."""
    mine, theirs = judged(scenario), measured(scenario.id)
    assert len(theirs) == 10
    found = how(mine)
    ends = {(e.ended_by, e.initiator, e.exit_code, e.pre_stop) for e in mine.trial.pod_ends}
    for other in theirs:
        # A request that is under way when the kernel closes makes an RST of a FIN: by chance.
        known = Counter[tuple[str, str, str]]()
        for (proto, outcome, mechanism), number in how(other).items():
            chance = scenario in IGNORING and mechanism == "rst"
            known[proto, outcome, "fin-unannounced" if chance else mechanism] += number
        assert found == known
        assert ends == {
            (e.ended_by, e.initiator, e.exit_code, e.pre_stop) for e in other.trial.pod_ends
        }
        assert windows(mine) == windows(other)
        assert mine.trial.config.keys() == other.trial.config.keys()


@pytest.mark.parametrize("scenario", ARMS, ids=lambda arm: arm.id)
def test_new_connections_fail_as_they_were_measured_to(scenario: Scenario) -> None:
    """As many as in one of ten repeats or another."""
    (mine,) = judged(scenario).trial.new_connections
    theirs = [other.trial.new_connections[0] for other in measured(scenario.id)]
    failed = [each.failed for each in theirs]
    assert min(failed) <= mine.failed <= max(failed)
    assert (mine.failed > 0) == (min(failed) > 0)


def test_nothing_is_said_that_was_not_seen() -> None:
    """The model is exact, so nothing of a judged recording is doubtful."""
    for scenario in ARMS:
        told = judged(scenario).trial
        assert told.degraded == ()
        assert told.gaps == told.stalls == ()
        assert told.sending.missed_slots == 0
        assert not [flow for flow in told.flows if flow.outcome == "not-measured"]


def test_it_says_of_itself_that_it_is_simulated() -> None:
    rec = simulate_trial(SHORT)
    assert rec.header.simulated
    assert derive(rec).simulated
    assert not derive(replace(rec, header=replace(rec.header, simulated=False))).simulated


# --- each verdict, and the neighbour that gives the other one ----------------------------------


def udp_moves_ns(told: Report) -> int:
    """When the first UDP flow of the target surely had another responder."""
    return min(f.terminal_ns[1] for f in told.trial.flows if f.proto == "udp" and f.terminal_ns)


def test_a_probe_that_stays_ready_keeps_its_udp_flows_until_it_exits() -> None:
    fails = judged(short(readiness_on_drain=Readiness.FAIL, drain_ns=8 * NS_PER_S))
    keeps = judged(short(readiness_on_drain=Readiness.KEEP, drain_ns=8 * NS_PER_S))
    assert udp_moves_ns(fails) < 3 * NS_PER_S
    assert udp_moves_ns(keeps) > 8 * NS_PER_S


def test_a_drain_that_outlasts_its_grace_period_is_killed() -> None:
    drains = judged(short(drain_ns=9 * NS_PER_S, grace_period_s=10))
    killed = judged(short(drain_ns=11 * NS_PER_S, grace_period_s=10))
    assert how(drains)["tcp", "drained-clean-close", "announced-fin"] == 3
    assert how(killed)["tcp", "severed", "fin-unannounced"] == 3
    assert [end.ended_by for end in drains.trial.pod_ends] == [EndedBy.EXIT]
    assert [end.ended_by for end in killed.trial.pod_ends] == [EndedBy.SIGKILL_AT_GRACE]


def test_exit_now_resets_unless_it_only_exits() -> None:
    resets = judged(short(behavior=Behavior.EXIT_NOW))
    exits = judged(short(behavior=Behavior.EXIT_NOW, exit_now_reset=False))
    assert how(resets)["tcp", "severed", "rst"] == 3
    assert how(exits)["tcp", "severed", "fin-unannounced"] == 3


def test_a_hook_lets_new_connections_move_before_the_listener_closes() -> None:
    without = judged(SHORT).trial
    with_hook = judged(short(pre_stop=PreStop(sleep_s=4))).trial
    assert without.new_connections[0].failed > 0
    assert with_hook.new_connections[0].failed == 0
    assert [end.pre_stop for end in with_hook.pod_ends] == [PreStopOutcome.COMPLETED]
    assert [end.pre_stop for end in without.pod_ends] == [PreStopOutcome.NONE]
    waited = with_hook.summary.trigger_to_sigterm_ns, without.summary.trigger_to_sigterm_ns
    assert [a - b for a, b in zip(*map(bounds_of, waited), strict=True)] == [4 * NS_PER_S] * 2


def test_a_hook_that_takes_the_whole_grace_period_leaves_two_seconds() -> None:
    """FACTS K5."""
    cut_off = judged(short(pre_stop=PreStop(http_ns=30 * NS_PER_S), drain_ns=9 * NS_PER_S)).trial
    (end,) = cut_off.pod_ends
    assert end.pre_stop is PreStopOutcome.CUT_OFF
    assert end.ended_by is EndedBy.SIGKILL_AT_GRACE
    assert end.ended_ns is not None
    assert 12 * NS_PER_S < end.ended_ns[1] < 13 * NS_PER_S


def test_with_another_replica_new_connections_fail_half_as_often_and_no_bystander_is_lost() -> None:
    alone, beside = judged(SHORT).trial, judged(short(replicas=2))
    assert how(beside, "bystander")["tcp", "survived-observation-window", "none"] == 3
    assert how(beside, "bystander")["udp", "survived-observation-window", "none"] == 3
    assert 0 <= beside.trial.new_connections[0].failed < alone.new_connections[0].failed / 2


def test_after_scaling_to_zero_nobody_serves_and_after_a_delete_somebody_does() -> None:
    scaled = judged(replace(SHORT, trigger=Trigger.SCALE))
    deleted = judged(SHORT)
    assert {m for proto, _, m in how(scaled) if proto == "udp"} <= {"refused", "unreachable"}
    assert {m for proto, _, m in how(deleted) if proto == "udp"} == {"rehomed"}
    last = [tried.trial.new_connections[0].runs[-1].result for tried in (scaled, deleted)]
    assert last[0] in (Result.REFUSED, Result.TIMEOUT)
    assert last[1] == Result.ANSWERED


def test_linux_tells_six_flows_of_a_closed_port_and_no_more() -> None:
    """FACTS K13: of four all hear of it, of forty six do."""
    few = judged(replace(short(behavior=Behavior.EXIT_NOW), flows=replace(FLOWS, tcp=1, udp=4)))
    many = judged(replace(short(behavior=Behavior.EXIT_NOW), flows=replace(FLOWS, tcp=1, udp=40)))
    assert how(few)["udp", "severed", "refused"] == 4
    assert how(many)["udp", "severed", "refused"] == 6


def test_a_shorter_sync_period_moves_udp_sooner() -> None:
    drains = short(drain_ns=8 * NS_PER_S)
    slow = judged(replace(drains, cluster=ClusterNeeds(min_sync_period_ms=5000)))
    quick = judged(replace(drains, cluster=ClusterNeeds(min_sync_period_ms=0)))
    assert udp_moves_ns(quick) < 1600 * NS_PER_MS
    assert udp_moves_ns(slow) > 5000 * NS_PER_MS


def test_requests_under_way_are_answered_by_a_drain_and_lost_with_an_exit() -> None:
    slow = {"response_delay_ns": 500 * NS_PER_MS}
    drains = judged(short(**slow))
    exits = judged(short(behavior=Behavior.EXIT_NOW, **slow))
    assert all(f.unanswered == 0 for f in drains.trial.flows if f.proto == "tcp")
    assert any(f.unanswered for f in exits.trial.flows if f.proto == "tcp")
    (end,) = exits.trial.pod_ends
    assert end.in_flight_at_sigterm
    assert end.oldest_in_flight_ns is not None
    assert 0 < end.oldest_in_flight_ns <= 500 * NS_PER_MS
    assert [end.in_flight_at_sigterm for end in judged(SHORT).trial.pod_ends] == [0]


@pytest.mark.parametrize(
    ("scenario", "names"),
    [
        (replace(SHORT, trigger=Trigger.ROLLOUT), "trigger"),
        (short(pid1=Pid1.SHELL), "pid1"),
        (short(grace_period_s=0, drain_ns=0), "grace_period_s"),
        (replace(SHORT, flows=replace(FLOWS, tcp=0)), "TCP flow"),
        (replace(SHORT, cluster=ClusterNeeds(nodes=3)), "3 nodes"),
        (replace(SHORT, cluster=ClusterNeeds(proxy_mode="ipvs")), "ipvs"),  # type: ignore[arg-type]
    ],
)
def test_what_is_not_modelled_is_refused_by_name(scenario: Scenario, names: str) -> None:
    with pytest.raises(ScenarioError, match=names):
        simulate_trial(scenario)


@pytest.mark.parametrize("value", [-1, 3_600_000_000_001, 1.5, True, float("nan"), "1", None])
def test_latencies_that_cannot_be_are_refused_by_name(value: object) -> None:
    with pytest.raises(ScenarioError, match="sync_ns"):
        simulate_trial(SHORT, Latencies(sync_ns=value))  # type: ignore[arg-type]


# --- properties ----------------------------------------------------------------------------------

LATENCIES = st.builds(
    Latencies,
    deletion_ns=st.integers(0, 200 * NS_PER_MS),
    terminating_ns=st.integers(0, 200 * NS_PER_MS),
    endpoint_ns=st.integers(0, 200 * NS_PER_MS),
    sigterm_ns=st.integers(0, 300 * NS_PER_MS),
    unready_ns=st.integers(0, NS_PER_S),
    status_ns=st.integers(0, NS_PER_S),
    network_ns=st.integers(0, NS_PER_S),
    deleted_ns=st.integers(0, NS_PER_S),
    replacement_ns=st.integers(0, NS_PER_S),
    started_ns=st.integers(0, 2 * NS_PER_S),
    listening_ns=st.integers(0, 2 * NS_PER_S),
    ready_ns=st.integers(0, 3 * NS_PER_S),
    sync_ns=st.integers(0, 500 * NS_PER_MS),
    conntrack_ns=st.integers(0, 200 * NS_PER_MS),
)
SCENARIOS = st.builds(
    lambda behavior, readiness, replicas, trigger, hook_s, delay_ms: Scenario(
        app=App(
            behavior=behavior,
            readiness_on_drain=readiness,
            replicas=replicas,
            drain_ns=2 * NS_PER_S,
            grace_period_s=4,
            pre_stop=PreStop(sleep_s=hook_s) if hook_s else None,
            response_delay_ns=delay_ms * NS_PER_MS,
        ),
        flows=Flows(tcp=2, udp=2, tcp_rate_hz=5, udp_rate_hz=20, probe_interval_ns=50 * NS_PER_MS),
        trigger=trigger,
        settle_ns=1 * NS_PER_S,
    ),
    behavior=st.sampled_from(Behavior),
    readiness=st.sampled_from(Readiness),
    replicas=st.integers(1, 3),
    trigger=st.sampled_from((Trigger.DELETE, Trigger.EVICT, Trigger.SCALE)),
    hook_s=st.integers(0, 4),
    delay_ms=st.sampled_from((0, 400)),
)


@settings(max_examples=40)
@given(scenario=SCENARIOS, took=LATENCIES, seed=st.integers(0, 2**16))
def test_whatever_the_latencies_the_trial_is_whole(
    scenario: Scenario, took: Latencies, seed: int
) -> None:
    """It can be judged, read back, and made again; nobody is served after the exit."""
    rec = simulate_trial(scenario, took)
    text = dumps(rec)
    assert loads(text) == rec
    assert dumps(simulate_trial(scenario, took)) == text
    assert all(type(ns) is int for o in rec.observations for ns in (o.at.lo, o.at.hi))
    told = derive(rec)
    assert reports.dumps(derive(loads(text))) == reports.dumps(told)
    for end in told.trial.pod_ends:
        assert end.ended_ns is not None
        assert end.expected_kill_ns is not None
        assert end.ended_ns[0] <= end.expected_kill_ns[1] + took.kill_ns
    lived = [f for f in told.trial.flows if f.proto == "tcp" and f.role == "target"]
    assert all(flow.terminal_ns is not None for flow in lived)
    assert how(derive(_in_another_order(rec, seed))) == how(told)


def _in_another_order(rec: Recording, seed: int) -> Recording:
    """The same observations as other sources' order of writing has them merged."""
    parts: dict[tuple[str, str], list[Observation]] = {}
    for o in rec.observations:
        parts.setdefault((str(o.source), o.subject), []).append(o)
    found = list(parts.values())
    random.Random(seed).shuffle(found)
    return replace(rec, observations=merge(*found))


# --- shown as a measured trial is -----------------------------------------------------------------


@pytest.mark.parametrize("scenario", ARMS, ids=lambda arm: arm.id)
def test_page_and_trace_show_it_as_a_measured_one(scenario: Scenario) -> None:
    """With the lanes that every repeat has, and none that no repeat has."""
    mine, others = judged(scenario), measured(scenario.id)
    shown, pages = page_trial(mine), [page_trial(other) for other in others]
    lanes = [{lane["id"] for lane in page["lanes"]} for page in pages]
    found = {lane["id"] for lane in shown["lanes"]}
    assert set.intersection(*lanes) <= found <= set.union(*lanes)
    real = pages[0]
    assert len(shown["flows"]) == len(real["flows"])
    assert (shown["hurt"] is None) == (real["hurt"] is None)
    assert shown["simulated"]
    assert not real["simulated"]
    traces = [{lane.name for lane in picture(other).lanes} for other in others]
    drawn = {lane.name for lane in picture(mine).lanes}
    assert set.intersection(*traces) <= drawn <= set.union(*traces)
