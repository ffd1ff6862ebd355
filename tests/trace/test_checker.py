"""The checker finds what it is there to find: a file that is right, and each way to spoil it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.trace.checker import problems

GOOD: list[dict[str, Any]] = [
    {"ph": "M", "pid": 1, "tid": 1, "ts": 0, "name": "process_name", "args": {"name": "p"}},
    {"ph": "M", "pid": 1, "tid": 2, "ts": 0, "name": "thread_name", "args": {"name": "t"}},
    {"ph": "M", "pid": 1, "tid": 3, "ts": 0, "name": "thread_name", "args": {"name": "u"}},
    {"ph": "X", "pid": 1, "tid": 2, "ts": 0, "dur": 10, "name": "cause", "cat": "c"},
    {"ph": "s", "pid": 1, "tid": 2, "ts": 0, "id": 1, "name": "a", "cat": "x"},
    {"ph": "X", "pid": 1, "tid": 3, "ts": 5, "dur": 10, "name": "effect", "cat": "c"},
    {"ph": "f", "bp": "e", "pid": 1, "tid": 3, "ts": 5, "id": 1, "name": "a", "cat": "x"},
    {"ph": "b", "pid": 1, "tid": 3, "ts": 6, "id": 2, "name": "w", "cat": "x"},
    {"ph": "e", "pid": 1, "tid": 3, "ts": 7, "id": 2, "name": "w", "cat": "x"},
    {"ph": "C", "pid": 1, "tid": 1, "ts": 8, "name": "n", "args": {"v": 1}},
    {"ph": "i", "pid": 1, "tid": 1, "ts": 9, "name": "t = 0", "s": "p"},
]


def written(events: list[dict[str, Any]]) -> str:
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events})


def test_a_right_file_is_right() -> None:
    assert problems(written(GOOD)) == []


SLICE, BEGIN, EFFECT, END, B, E, COUNTER, INSTANT = 3, 4, 5, 6, 7, 8, 9, 10


@pytest.mark.parametrize(
    ("event", "changes", "said"),
    [
        (SLICE, {"ph": "Z"}, "ph 'Z'"),
        (SLICE, {"dur": 0}, "dur 0"),
        (SLICE, {"dur": -1}, "dur -1"),
        (SLICE, {"ts": -1}, "ts -1"),
        (SLICE, {"ts": "0"}, "ts '0'"),
        (SLICE, {"name": ""}, "name ''"),
        (SLICE, {"pid": 2**31}, "pid"),
        (SLICE, {"args": {"a": {}}}, "args"),
        (SLICE, {"ts": 20}, "before its predecessor"),
        (SLICE, {"tid": 4}, "thread 4 has no name"),
        (EFFECT, {"pid": 2}, "process 2 has no name"),
        (COUNTER, {"args": {"v": None}}, "values"),
        (COUNTER, {"args": {}}, "values"),
        (COUNTER, {"pid": 2}, "thread 1 is of"),
        (INSTANT, {"s": "x"}, "scope 'x'"),
        (END, {"bp": None}, "binds to the next slice"),
        (END, {"id": 7}, "arrow 7: ['f']"),
        (END, {"cat": "y"}, "['f']"),
        (END, {"tid": 2, "ts": 50}, "0 slices at its f"),
        (BEGIN, {"tid": 3}, "0 slices at its s"),
        (BEGIN, {"tid": 3}, "no slice has begun at its s"),
        (E, {"id": 3}, "b without e"),
        (B, {"id": 3}, "e without b"),
        (0, {"name": "thread"}, "metadata"),
    ],
)
def test_each_fault_is_found(event: int, changes: dict[str, Any], said: str) -> None:
    events = copy.deepcopy(GOOD)
    events[event].update(changes)
    assert any(said in problem for problem in problems(written(events)))


def test_slices_that_overlap_are_found() -> None:
    beside = {**GOOD[SLICE], "ts": 10}
    within = {**GOOD[SLICE], "ts": 5, "dur": 5}
    across = {**GOOD[SLICE], "ts": 5}
    ordered = sorted(GOOD[3:], key=lambda e: e["ts"])
    for more, wrong in ((beside, False), (within, False), (across, True)):
        events = GOOD[:3] + sorted([*ordered, more], key=lambda e: e["ts"])
        assert any("overlaps" in p for p in problems(written(events))) is wrong


def test_an_arrow_among_nested_slices_is_found() -> None:
    nested = {**GOOD[SLICE], "dur": 5}
    events = [*GOOD[:4], nested, *GOOD[4:]]
    assert problems(written(events)) == ["arrow 1: 2 slices at its s"]


def test_an_arrow_after_a_nested_slice_is_found() -> None:
    """At that time there is one slice, and Perfetto still has the one that was in it."""
    outer = {**GOOD[SLICE], "dur": 100}
    inner = {**GOOD[SLICE], "ts": 1, "dur": 1}
    late = {**GOOD[BEGIN], "ts": 4}
    events = [*GOOD[:3], outer, inner, late, *GOOD[5:]]
    assert problems(written(events)) == ["arrow 1: its s is tied to a slice that is over"]


def test_what_is_no_json_is_found() -> None:
    assert "NaN" in problems('{"traceEvents": [{"ts": NaN}]}')[0]
    assert problems("[]") == ["no object with a list traceEvents"]
