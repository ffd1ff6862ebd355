"""A plan changes when flows send, and what was sent when is written down."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows import limits
from pytest_drainwatch.flows.config import parse_plan
from pytest_drainwatch.flows.fields import ConfigError
from pytest_drainwatch.flows.schedule import first_slot_ns
from pytest_drainwatch.flows.selector import DENSE_QUANTUM_NS, SPARSE_QUANTUM_NS
from tests.loopback.rig import Agent, Part, Rig
from tests.loopback.tried import Tried, await_tried, trying

FLOWS = 3
RATES = {"tcp": (20, 5), "udp": (60, 10)}
SPARSE: dict[str, Any] = {"tcp_sparse_rate_hz": 5, "udp_sparse_rate_hz": 10}


def planned(part: Part, told: Observation, until_ns: int) -> int:
    """How many slots the stretch holds for flows 1..FLOWS, by epoch, phase and rate."""
    epoch_ns = part.all(Event.AGENT_SUMMARY)[0].at.lo
    rate = told.data["rate_hz"]
    assert isinstance(rate, int)
    period_ns = round(NS_PER_S / rate)
    count = 0
    for index in range(1, FLOWS + 1):
        slot_ns = first_slot_ns(epoch_ns, index, period_ns, told.at.lo)
        if slot_ns < until_ns:
            count += 1 + (until_ns - 1 - slot_ns) // period_ns
    return count


def sent(told: Observation) -> int:
    """What became of those slots."""
    sends, missed = told.data["sends"], told.data["missed_slots"]
    assert isinstance(sends, int)
    assert isinstance(missed, int)
    return sends + missed


def holding(rig: Rig, **config: Any) -> Agent:
    probe = rig.probe()
    agent = rig.agent(tcp=(probe.tcp_port, FLOWS), udp=(probe.udp_port, FLOWS), **config)
    agent.holding()
    return agent


def say(agent: Agent, dense: Sequence[tuple[int, int]]) -> None:
    pairs = ", ".join(f"[{lo}, {hi}]" for lo, hi in dense)
    agent.say(f'{{"do": "plan", "dense": [{pairs}]}}')


def test_a_plan_changes_the_rate_and_its_books_balance(rig: Rig) -> None:
    agent = holding(rig, **SPARSE)
    now_ns = time.monotonic_ns()
    lo_ns, hi_ns = now_ns + 700 * NS_PER_MS, now_ns + 1300 * NS_PER_MS
    say(agent, [(lo_ns, hi_ns)])
    time.sleep(2.0)
    part = rig.recorded(agent)
    for proto, (dense_hz, sparse_hz) in RATES.items():
        told = [o for o in part.all(Event.AGENT_SENDING) if o.data["proto"] == proto]
        assert [o.data["rate_hz"] for o in told] == [dense_hz, sparse_hz, dense_hz, sparse_hz]
        before, sparse, dense, after = told
        assert before.at.hi == sparse.at.lo
        assert now_ns < sparse.at.lo < lo_ns
        assert (sparse.at.hi, dense.at.hi) == (lo_ns, hi_ns)
        assert (dense.at.lo, after.at.lo) == (lo_ns, hi_ns)
        for stretch in (sparse, dense):
            assert stretch.data["flows"] == FLOWS
            assert sent(stretch) == planned(part, stretch, stretch.at.hi)
        # A slot that was due when the agent stopped is neither sent nor missed.
        left = planned(part, after, after.at.hi) - sent(after)
        assert 0 <= left <= FLOWS
    in_all = part.all(Event.AGENT_SUMMARY)[0].data
    for name in ("sends", "missed_slots"):
        assert in_all[name] == sum(int(str(o.data[name])) for o in part.all(Event.AGENT_SENDING))


def test_the_last_plan_counts(rig: Rig) -> None:
    """A trigger that is blocked moves the dense stretches."""
    agent = holding(rig, **SPARSE)
    now_ns = time.monotonic_ns()
    say(agent, [(now_ns + 60 * NS_PER_S, now_ns + 70 * NS_PER_S)])
    moved = now_ns + 300 * NS_PER_MS
    say(agent, [(now_ns, now_ns + 1), (moved, moved + 200 * NS_PER_MS)])
    time.sleep(0.8)
    part = rig.recorded(agent)
    udp = [o for o in part.all(Event.AGENT_SENDING) if o.data["proto"] == "udp"]
    assert [o.data["rate_hz"] for o in udp] == [60, 10, 60, 10]
    assert udp[2].at == Interval(moved, moved + 200 * NS_PER_MS)
    assert sent(udp[2]) == planned(part, udp[2], udp[2].at.hi)


def test_without_a_plan_one_stretch_is_dense(rig: Rig) -> None:
    part = rig.recorded(holding(rig, **SPARSE))
    told = part.all(Event.AGENT_SENDING)
    assert [(o.data["proto"], o.data["rate_hz"]) for o in told] == [("tcp", 20), ("udp", 60)]
    started = part.all(Event.AGENT_STARTED)[0].data
    assert (started["tcp_sparse_rate_hz"], started["udp_sparse_rate_hz"]) == (5, 10)


def test_with_one_rate_a_plan_changes_no_slot(rig: Rig) -> None:
    """No sparse rates given: they are the dense ones, and no slot is lost at the edges."""
    agent = holding(rig)
    now_ns = time.monotonic_ns()
    say(agent, [(now_ns + 100 * NS_PER_MS, now_ns + 200 * NS_PER_MS)])
    time.sleep(0.5)
    part = rig.recorded(agent)
    told = [o for o in part.all(Event.AGENT_SENDING) if o.data["proto"] == "udp"]
    assert [o.data["rate_hz"] for o in told] == [60, 60, 60, 60]
    whole = Observation(
        source=told[1].source,
        event=Event.AGENT_SENDING,
        at=Interval(told[1].at.lo, told[2].at.hi),
        data=told[1].data,
    )
    assert sent(told[1]) + sent(told[2]) == planned(part, whole, whole.at.hi)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"do": "plan"}', "unknown command"),
        ('{"do": "plan", "dense": [], "more": 1}', "unknown command"),
        ('{"do": "plan", "dense": {}}', "dense is {}"),
        ('{"do": "plan", "dense": [[1, 2, 3]]}', "dense holds [1, 2, 3]"),
        ('{"do": "plan", "dense": [[2, 1]]}', "dense holds [2, 1]"),
    ],
)
def test_a_wrong_plan_is_complained_about_and_ends_nothing(line: str, named: str, rig: Rig) -> None:
    agent = holding(rig, **SPARSE)
    agent.say(line)
    status = agent.await_line(lambda s: bool(s["error"]), "complaint")
    assert named in status["error"]["what"]
    agent.await_status(lambda s: s["phase"] == "holding" and not s["error"], "holding on")
    part = rig.recorded(agent)
    assert len(part.all(Event.AGENT_SENDING)) == 2, "the plan before it holds"


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "dense",
        [1],
        [[1]],
        [[1.0, 2.0]],
        [[True, 2]],
        [[-1, 2]],
        [[5, 5]],
        [[5, 9], [9, 12]],  # touching: those are one stretch
        [[5, 9], [1, 3]],
        [[1, 2**63]],
        [[n, n + 1] for n in range(0, 200, 2)],
    ],
)
def test_what_is_no_plan(wrong: object) -> None:
    with pytest.raises(ConfigError, match="dense"):
        parse_plan(wrong)


def test_what_is_a_plan() -> None:
    assert parse_plan([]) == ()
    assert parse_plan([[1, 2], [3, 9]]) == (Interval(1, 2), Interval(3, 9))


@pytest.mark.parametrize("every", [1, 10])
def test_a_prober_follows_the_plan_and_its_books_balance(rig: Rig, every: int) -> None:
    probe = rig.probe()
    probers = [trying(probe.tcp_port, sparse_every=every)]
    agent = rig.agent(tcp=(probe.tcp_port, FLOWS), probers=probers, **SPARSE)
    await_tried(agent, "answered", 20)
    now_ns = time.monotonic_ns()
    lo_ns, hi_ns = now_ns + 700 * NS_PER_MS, now_ns + 1100 * NS_PER_MS
    say(agent, [(lo_ns, hi_ns)])
    time.sleep(1.8)
    part = rig.recorded(agent)
    tried = Tried(part)  # every slot is where the plan has it, and none is lost
    stretches = tried.summary["stretches"]
    assert [s["every"] for s in stretches] == [1, every, 1, every]
    assert [s["at"] for s in stretches[1:3]] == [[stretches[0]["at"][1], lo_ns], [lo_ns, hi_ns]]
    assert stretches[2]["attempts"] + stretches[2]["missed_slots"] == 400 // 5
    assert {run["every"] for run in tried.runs} == {1, every}
    assert [way[0] for way in tried.ways] == [Result.ANSWERED]
    told = [o.data["quantum_ns"] for o in part.all(Event.AGENT_SENDING)]
    assert told == [DENSE_QUANTUM_NS, SPARSE_QUANTUM_NS] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as who may take a real-time priority")
def test_the_agent_itself_follows_the_plan(rig: Rig) -> None:
    """Read from the kernel: its policy, and how often it is woken while nothing happens."""
    # So many beside it that they need too much where it is dense, and little elsewhere.
    per_core = len(os.sched_getaffinity(0)) * limits.REALTIME_SENDS_PER_S_AND_CORE
    many = per_core // (FLOWS * sum(dense for dense, _ in RATES.values())) + 1
    agent = holding(rig, agents=many, **SPARSE)
    pid = agent.process.pid
    assert policy(pid) == os.SCHED_OTHER, "dense until a plan comes"
    dense_wakes = woken_per_s(pid)
    lo_ns = time.monotonic_ns() + 2 * NS_PER_S
    say(agent, [(lo_ns, lo_ns + NS_PER_S)])
    time.sleep(0.2)
    if policy(pid) != os.SCHED_RR:
        pytest.skip("this container or cgroup may not take a real-time priority")
    assert woken_per_s(pid) < dense_wakes / 2
    time.sleep(max(0, lo_ns + 200 * NS_PER_MS - time.monotonic_ns()) / NS_PER_S)
    assert policy(pid) == os.SCHED_OTHER
    time.sleep(1)
    assert policy(pid) == os.SCHED_RR
    part = rig.recorded(agent)
    started = part.all(Event.AGENT_STARTED)[0].data
    assert (started["scheduler"], started["sparse_scheduler"]) == ("other", "rr")


def policy(pid: int) -> int:
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK


def woken_per_s(pid: int) -> float:
    def woken() -> int:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(x.split()[1]) for x in lines if x.startswith("voluntary_ctxt_switches"))

    before, begun = woken(), time.monotonic()
    time.sleep(0.6)
    return (woken() - before) / (time.monotonic() - begun)
