"""Run-length coding of attempts: nothing is lost, nothing is invented."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.observation import Event, Observation
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
    """Attempts in slot order, some slots missed, now and then for seconds."""
    found, slot = [], 0
    for _ in range(draw(st.integers(0, 60))):
        slot += 1 + draw(st.sampled_from([0, 0, 0, 0, 1, 3, 900]))
        began_ns = slot * PERIOD_NS + draw(st.integers(0, PERIOD_NS - 1))
        took_ns = draw(st.integers(0, 1_100_000_000))
        found.append(Settled(slot, began_ns, took_ns, *draw(WAYS)))
    return found


def coded(settled: list[Settled]) -> tuple[Runs, list[Observation]]:
    """As they come back from a file."""
    lines: list[str] = []
    runs = Runs("tcp-new", "tcp", lambda seen: lines.append(dump_observation(seen)))
    for one in settled:
        runs.add(one)
    runs.close()
    return runs, [parse_observation(line, number) for number, line in enumerate(lines, 1)]


@given(attempts())
def test_every_attempt_is_in_exactly_one_run(settled: list[Settled]) -> None:
    runs, told = coded(settled)
    rest = list(settled)
    for run in told:
        data: Any = run.data
        assert (run.event, run.subject, data["proto"]) == (Event.NEW_CONNECTIONS, "tcp-new", "tcp")
        mine, rest = rest[: data["count"]], rest[data["count"] :]
        assert len(mine) == data["count"]
        assert {one.way for one in mine} == {(data["result"], data["responder"], data["errno"])}
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
    assert runs.last == (settled[-1].result if settled else None)


@given(attempts())
def test_no_run_ends_without_a_reason(settled: list[Settled]) -> None:
    _, told = coded(settled)
    for before, after in pairwise(told):
        one: Any = before.data
        other: Any = after.data
        same = all(one[name] == other[name] for name in ("result", "responder", "errno"))
        assert not same or other["first_ns"] - one["first_ns"] >= LONGEST_RUN_NS


def test_a_steady_minute_is_a_line_every_ten_seconds() -> None:
    steady = [Settled(n, n * PERIOD_NS, 9, Result.ANSWERED, "pod-a/1") for n in range(12_000)]
    _, told = coded(steady)
    assert [run.data["count"] for run in told] == [2000] * 6
