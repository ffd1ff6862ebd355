"""Any picture becomes a file that is right, whatever overlaps in it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.render.trace.picture import Arrow, Count, Lane, Picture, Span, seen
from pytest_drainwatch.render.trace.writing import dumps
from tests.trace.checker import problems

US = st.integers(-20_000_000, 100_000_000)
TIMES = st.tuples(US, st.integers(0, 5_000_000)).map(lambda at: seen((at[0], at[0] + at[1])))
SPANS = st.builds(
    Span,
    name=st.text(min_size=1, max_size=8),
    kind=st.just("kind"),
    at_us=TIMES,
    args=st.dictionaries(st.text(max_size=4), st.none() | st.text(max_size=8) | st.integers()),
)
LANES = st.builds(Lane, name=st.text(max_size=8), spans=st.lists(SPANS, max_size=8).map(tuple))
COUNTS = st.builds(
    Count,
    name=st.just("n"),
    at_us=US,
    values=st.dictionaries(st.sampled_from("ab"), US, min_size=1),
)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    lanes = tuple(draw(st.lists(LANES, max_size=4)))
    spans = [span for lane in lanes for span in lane.spans]
    pairs = draw(
        st.lists(st.tuples(*[st.integers(0, max(0, len(spans) - 1))] * 2), max_size=4)
        if spans
        else st.just([])
    )
    return Picture(
        name=draw(st.text(max_size=8)),
        label="",
        lanes=lanes,
        counts=tuple(draw(st.lists(COUNTS, max_size=3))),
        arrows=tuple(
            Arrow(cause=spans[a], effect=spans[b], name="arrow", why="")
            for a, b in pairs
            # What order refutes is not drawn: arrows.py sees to it.
            if a != b and spans[a].at_us[0] < spans[b].at_us[1]
        ),
        notes=tuple(draw(st.lists(st.text(max_size=8), max_size=2))),
    )


def events(text: str, phase: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


@given(st.lists(pictures(), max_size=3))
def test_any_pictures_make_a_right_file(drawn: list[Picture]) -> None:
    text = dumps(drawn, made_by="test")
    assert problems(text) == []
    spans = [span for each in drawn for lane in each.lanes for span in lane.spans]
    slices = events(text, "X")
    t0_us = json.loads(text)["otherData"]["t0_us"]
    assert sorted((e["ts"] - t0_us, e["dur"]) for e in slices) == sorted(
        (span.at_us[0], span.at_us[1] - span.at_us[0]) for span in spans
    )
    assert len(events(text, "s")) == len(events(text, "f")) == sum(len(p.arrows) for p in drawn)


@given(st.lists(pictures(), min_size=1, max_size=3))
def test_every_trial_has_its_zero_at_the_same_time(drawn: list[Picture]) -> None:
    text = dumps(drawn, made_by="test")
    t0_us = json.loads(text)["otherData"]["t0_us"]
    assert [event["ts"] for event in events(text, "i")] == [t0_us] * len(drawn)
    assert t0_us == max(-picture.begins_us for picture in drawn)


def span(name: str, lo: int, hi: int, **more: Any) -> Span:
    return Span(name=name, kind="kind", at_us=(lo, hi), **more)


def test_overlapping_spans_have_rows_of_their_own_and_others_share_one() -> None:
    lane = Lane(name="app", spans=(span("a", 0, 10), span("b", 5, 15), span("c", 10, 20)))
    text = dumps([Picture(name="p", label="", lanes=(lane,))], made_by="test")
    rows = {e["tid"]: e["args"]["name"] for e in events(text, "M") if e["name"] == "thread_name"}
    assert {e["name"]: rows[e["tid"]] for e in events(text, "X")} == {
        "a": "app",
        "b": "app (2)",
        "c": "app",
    }


def test_what_is_inside_a_span_shares_its_row() -> None:
    outer = span("outer", 0, 10, inside=(span("inner", 2, 8),))
    text = dumps([Picture(name="p", label="", lanes=(Lane(name="x", spans=(outer,)),))], "test")
    assert len({e["tid"] for e in events(text, "X")}) == 1
    assert problems(text) == []


def test_an_arrow_does_not_end_before_it_begins() -> None:
    """Two instants that are known within bounds may be either way around."""
    cause, effect = span("cause", 50, 60), span("effect", 0, 100)
    picture = Picture(
        name="p",
        label="",
        lanes=(Lane(name="x", spans=(cause,)), Lane(name="y", spans=(effect,))),
        arrows=(Arrow(cause=cause, effect=effect, name="a", why="w"),),
    )
    text = dumps([picture], "test")
    assert problems(text) == []
    assert [e["ts"] for phase in "sf" for e in events(text, phase)] == [50.5, 50.5]


def test_control_characters_and_markup_are_plain_text() -> None:
    picture = Picture(
        name="a\x1b[31mb\ud800",
        label="",
        lanes=(Lane(name="</script>\n", spans=(span('"\\\0', 0, 1),)),),
    )
    text = dumps([picture], "test")
    assert problems(text) == []
    text.encode()
    assert not any(ord(letter) < 32 and letter != "\n" for letter in text)
    assert "</script>?" in text
