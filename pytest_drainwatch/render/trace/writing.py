"""Pictures as JSON in the Trace Event Format.

Both readers are kept in mind. Slices of one thread may only nest, so those that overlap get
threads of their own; Perfetto binds an arrow's end to the slice that began last on a thread,
chrome://tracing to the one that holds the time: a thread on which no slices overlap makes
that the same slice. Times are whole microseconds: readers take them for floating-point numbers
and cut, and a nanosecond less would make neighbours overlap. Thread numbers are unique in the
file, for Perfetto looks threads up by them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from pytest_drainwatch.render.text import plain
from pytest_drainwatch.render.trace.picture import Arrow, Lane, Picture, Span

# An arrow is tied to a slice's inside: at its ends it might be tied to a neighbour.
_INSIDE_US = 0.5
# At one time a slice comes before the arrows that begin or end at it.
_ORDER = {"i": 0, "X": 1, "s": 2, "f": 3, "C": 4}

Event = dict[str, object]


def dumps(pictures: Sequence[Picture], made_by: str) -> str:
    """The file, one event a line. Every picture's t = 0 is at the same time of it."""
    t0_us = max((-each.begins_us for each in pictures), default=0)
    numbers = count(1)
    metadata: list[Event] = []
    timed: list[Event] = []
    arrows = count(1)
    for order, picture in enumerate(pictures):
        process = _Process(next(numbers), t0_us)
        metadata += process.named(picture, order)
        for lane in picture.lanes:
            for row, spans in enumerate(_rows(lane.spans)):
                thread = next(numbers)
                metadata += process.thread(thread, lane, row)
                for each in spans:
                    timed += process.slices(each, thread)
        timed += process.counts(picture)
        for arrow in picture.arrows:
            timed += process.arrow(arrow, next(arrows))
    timed.sort(key=lambda event: (event["ts"], _ORDER[str(event["ph"])]))
    other = {
        "made_by": made_by,
        "t0_us": t0_us,
        "t0": "where t = 0 of each trial is in this file: its accepted trigger call was sent",
        "notes": {plain(each.name): [plain(note) for note in each.notes] for each in pictures},
    }
    lines = ",\n".join(_json(event) for event in (*metadata, *timed))
    # What readers take from the head alone comes first.
    head = '{"displayTimeUnit": "ms",\n"traceEvents": [\n'
    return f'{head}{lines}\n],\n"otherData": {_json(other)}}}\n'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _rows(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """As few rows as it takes for no two spans of a row to overlap."""
    rows: list[list[Span]] = []
    for each in sorted(spans, key=lambda one: (one.at_us[0], -one.at_us[1])):
        free = next((row for row in rows if row[-1].at_us[1] <= each.at_us[0]), None)
        if free is None:
            rows.append([each])
        else:
            free.append(each)
    yield from rows


class _Process:
    """One picture in the file. Remembers on which thread each span is."""

    def __init__(self, number: int, t0_us: int) -> None:
        self._number = number
        self._t0_us = t0_us
        self._threads: dict[Span, int] = {}

    def named(self, picture: Picture, order: int) -> Iterator[Event]:
        """What it is called, its place, and a line at t = 0."""
        for name, args in (
            ("process_name", {"name": plain(picture.name)}),
            ("process_labels", {"labels": plain(picture.label)}),
            ("process_sort_index", {"sort_index": order}),
        ):
            yield self._metadata(name, args, self._number)

    def thread(self, number: int, lane: Lane, row: int) -> Iterator[Event]:
        """What it is called, and its place: in the order of the numbers."""
        name = plain(lane.name) + (f" ({row + 1})" if row else "")
        yield self._metadata("thread_name", {"name": name}, number)
        yield self._metadata("thread_sort_index", {"sort_index": number}, number)

    def slices(self, of: Span, thread: int) -> Iterator[Event]:
        """A span and those inside it."""
        self._threads[of] = thread
        lo, hi = of.at_us
        event: Event = {
            "ph": "X",
            "pid": self._number,
            "tid": thread,
            "ts": lo + self._t0_us,
            "dur": hi - lo,
            "name": plain(of.name),
            "cat": of.kind,
        }
        if of.colour is not None:
            event["cname"] = of.colour
        args = _args(of.args)
        if args:
            event["args"] = args
        yield event
        for each in of.inside:
            yield from self.slices(each, thread)

    def counts(self, picture: Picture) -> Iterator[Event]:
        """Its counters, and the line at t = 0."""
        yield {
            "ph": "i",
            "s": "p",
            "pid": self._number,
            "tid": self._number,
            "ts": self._t0_us,
            "name": "t = 0",
            "cat": "trial",
        }
        for each in picture.counts:
            yield {
                "ph": "C",
                "pid": self._number,
                "tid": self._number,
                "ts": each.at_us + self._t0_us,
                "name": plain(each.name),
                "args": dict(each.values),
            }

    def arrow(self, of: Arrow, number: int) -> Iterator[Event]:
        """From the begin of the cause to that of the effect, or as early as it can have been."""
        begins = of.cause.at_us[0]
        ends = max(of.effect.at_us[0], begins)
        for phase, at_us, at in (("s", begins, of.cause), ("f", ends, of.effect)):
            event: Event = {
                "ph": phase,
                "id": number,
                "pid": self._number,
                "tid": self._threads[at],
                "ts": at_us + _INSIDE_US + self._t0_us,
                "name": plain(of.name),
                "cat": "cause",
            }
            if phase == "s":
                event["args"] = {"why": plain(of.why)}
            else:
                event["bp"] = "e"  # to the slice that holds it, and not to the next one
            yield event

    def _metadata(self, name: str, args: Mapping[str, object], thread: int) -> Event:
        return {"ph": "M", "pid": self._number, "tid": thread, "ts": 0, "name": name, "args": args}


def _args(given: Mapping[str, object]) -> dict[str, object]:
    """What is known of them."""
    return {
        name: plain(value) if isinstance(value, str) else value
        for name, value in given.items()
        if value is not None
    }
