"""Run-length coding of attempts: nothing is lost, nothing is invented."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.attempts import probers
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import dump_observation, parse_observation
from pytest_drainwatch.flows.probing.runs import LONGEST_RUN_NS, Runs, Settled

PERIOD_NS = 5_000_000
WAYS = st.sampled_from(
    [
        (Result.ANSWERED, "pod-a/1", None),
        (Result.ANSWERED, "pod-b/2", None),
        (Result.REFUSED, None, "ECONNREFUSED"),
        (Result.CLIENT_LIMIT, None, "EMFILE"),
        (Result.CLIENT_LIMIT, None, "EADDRNOTAVAIL"),
        (Result.TIMEOUT, None, None),
        (Result.UNFINISHED, None, None),
    ]
)


@st.composite
def attempts(draw: st.DrawFn) -> list[Settled]:
    """Attempts in slot order, some slots missed, now and then for seconds; dense and sparse."""
    found, slot, every = [], 0, 1
    for _ in range(draw(st.integers(0, 60))):
        every = draw(st.sampled_from([every, every, every, 1, 10]))
        slot += 1 + draw(st.sampled_from([0, 0, 0, 0, 1, 3, 900])) * every
        slot += -slot % every
        began_ns = slot * PERIOD_NS + draw(st.integers(0, PERIOD_NS - 1))
        took_ns = draw(st.integers(0, 1_100_000_000))
        found.append(Settled(slot, began_ns, took_ns, *draw(WAYS), every))
    return found


def coded(settled: list[Settled]) -> tuple[Runs, list[Observation]]:
    """As they come back from a file."""
    lines: list[str] = []
    runs = Runs("tcp-new", lambda seen: lines.append(dump_observation(seen)))
    for one in settled:
        runs.add(one)
    runs.close()
    return runs, [parse_observation(line, number) for number, line in enumerate(lines, 1)]


def whole(run: Observation) -> dict[str, Any]:
    """A run with all the fields that it had before those that tell nothing were left out."""
    begun_ns, took_ns = run.at.lo, run.at.width
    alone = {
        "last_slot": run.data["first_slot"],
        "count": 1,
        "first_ns": begun_ns,
        "last_ns": begun_ns,
        "first_took_ns": took_ns,
        "last_took_ns": took_ns,
        "took_min_ns": took_ns,
        "took_max_ns": took_ns,
    }
    rest = alone if "count" not in run.data else {}
    return {"proto": "tcp", "responder": None, "errno": None, "every": None, **run.data, **rest}


@given(attempts())
def test_every_attempt_is_in_exactly_one_run(settled: list[Settled]) -> None:
    runs, told = coded(settled)
    rest = list(settled)
    for run in told:
        assert (run.event, run.subject) == (Event.NEW_CONNECTIONS, "tcp-new")
        data = whole(run)
        mine, rest = rest[: data["count"]], rest[data["count"] :]
        assert len(mine) == data["count"]
        way = (data["result"], data["responder"], data["errno"], data["every"])
        assert {one.way for one in mine} == {way}
        assert (mine[0].slot, mine[-1].slot) == (data["first_slot"], data["last_slot"])
        assert (mine[0].begun_ns, mine[-1].begun_ns) == (data["first_ns"], data["last_ns"])
        took = [one.took_ns for one in mine]
        assert (took[0], took[-1]) == (data["first_took_ns"], data["last_took_ns"])
        assert (min(took), max(took)) == (data["took_min_ns"], data["took_max_ns"])
        assert run.at.lo == mine[0].begun_ns
        assert run.at.hi == max(one.begun_ns + one.took_ns for one in mine)
        assert mine[-1].begun_ns - mine[0].begun_ns < LONGEST_RUN_NS
    assert rest == []
    assert runs.counts == Counter(one.result for one in settled)


@given(attempts())
def test_a_recording_of_before_is_judged_the_same(settled: list[Settled]) -> None:
    """What is left out says nothing: with all fields written out the core reads the same."""
    _, told = coded(settled)
    summary = Observation(
        source=Source.CLIENT,
        event=Event.PROBER_SUMMARY,
        at=Interval(0, 10**12),
        subject="tcp-new",
        data={"period_ns": PERIOD_NS, "epoch_ns": 0, "attempts": len(settled), "late_max_ns": 9},
    )
    before = [replace(run, data=whole(run)) for run in told]
    (now,) = probers([*told, summary])
    (then,) = probers([*before, summary])
    assert now == then
    assert now.lost == 0
    assert sum(run.count for run in now.runs) == len(settled)


def test_one_attempt_alone_is_told_with_no_more_than_it_needs() -> None:
    settled = [
        Settled(7, 100, 9, Result.ANSWERED, "pod-a/1"),
        Settled(8, 200, 9, Result.REFUSED, None, "ECONNREFUSED"),
        Settled(9, 300, 9, Result.TIMEOUT),
    ]
    _, told = coded(settled)
    assert [dict(run.data) for run in told] == [
        {"result": "answered", "responder": "pod-a/1", "first_slot": 7},
        {"result": "refused", "errno": "ECONNREFUSED", "first_slot": 8},
        {"result": "timeout", "first_slot": 9},
    ]
    assert [(run.at.lo, run.at.hi) for run in told] == [(100, 109), (200, 209), (300, 309)]


def test_a_run_of_several_without_a_count_is_damaged_and_not_one_attempt() -> None:
    _, (run,) = coded([Settled(slot, slot, 1, Result.TIMEOUT) for slot in range(3)])
    lacking = {name: value for name, value in run.data.items() if name != "count"}
    (found,) = probers([replace(run, data=lacking)])
    assert found.runs == ()


@given(attempts())
def test_no_run_ends_without_a_reason(settled: list[Settled]) -> None:
    _, told = coded(settled)
    for before, after in pairwise(told):
        one, other = whole(before), whole(after)
        same = all(one[name] == other[name] for name in ("result", "responder", "errno", "every"))
        assert not same or other["first_ns"] - one["first_ns"] >= LONGEST_RUN_NS


def test_a_steady_minute_is_a_line_every_ten_seconds() -> None:
    steady = [Settled(n, n * PERIOD_NS, 9, Result.ANSWERED, "pod-a/1") for n in range(12_000)]
    _, told = coded(steady)
    assert [run.data["count"] for run in told] == [2000] * 6
