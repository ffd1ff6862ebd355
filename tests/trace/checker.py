"""The Trace Event Format's rules, as far as readers depend on them; and those of our own files."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

Event = Mapping[str, Any]

PHASES = frozenset("XBEbnestfiCM")
METADATA = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def problems(text: str) -> list[str]:
    """Everything that is wrong with a file; empty if nothing is."""
    try:
        document = json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        return [f"no JSON: {error}"]
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        return ["no object with a list traceEvents"]
    events: list[Event] = document["traceEvents"]
    found = [] if document.get("displayTimeUnit") in ("ms", "ns") else ["displayTimeUnit"]
    found += [f"event {n}: {why}" for n, event in enumerate(events) for why in _fields(event)]
    if found:
        return found
    return [
        *_order(events),
        *_names(events),
        *_nesting(events),
        *_async_pairs(events),
        *_arrows(events),
        *_as_perfetto_binds(events),
    ]


def _no_number(said: str) -> NoReturn:
    raise ValueError(f"{said} is no JSON")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fields(event: Event) -> Iterator[str]:
    phase = event.get("ph")
    if phase not in PHASES:
        yield f"ph {phase!r}"
        return
    for name in ("pid", "tid"):
        value = event.get(name)
        if not isinstance(value, int) or not 0 <= value < 2**31:
            yield f"{name} {value!r}"
    ts: Any = event.get("ts")
    if not _is_number(ts) or ts < 0:
        yield f"ts {ts!r}"
    if not isinstance(event.get("name"), str) or not event["name"]:
        yield f"name {event.get('name')!r}"
    args = event.get("args", {})
    if not isinstance(args, dict) or any(isinstance(v, dict | list) for v in args.values()):
        yield f"args {args!r}"
        return
    match phase:
        case "X":
            if not _is_number(event.get("dur")) or event["dur"] <= 0:
                yield f"dur {event.get('dur')!r}"
        case "C":
            if not args or not all(_is_number(value) for value in args.values()):
                yield f"values {args!r}"
        case "M":
            wanted = METADATA.get(event["name"])
            if wanted is None or wanted not in args:
                yield f"metadata {event['name']!r} {args!r}"
        case "i":
            if event.get("s", "t") not in ("g", "p", "t"):
                yield f"scope {event.get('s')!r}"
        case "s" | "t" | "f" | "b" | "n" | "e":
            if not isinstance(event.get("id"), int | str) or not event.get("cat"):
                yield f"id {event.get('id')!r}, cat {event.get('cat')!r}"


def _order(events: list[Event]) -> Iterator[str]:
    """Not the format's rule, but who reads a file in pieces is glad of it."""
    last = 0.0
    for n, event in enumerate(events):
        if event["ph"] == "M":
            continue
        if event["ts"] < last:
            yield f"event {n}: before its predecessor"
        last = event["ts"]


def _names(events: list[Event]) -> Iterator[str]:
    named = {(e["name"], e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    processes: dict[int, set[int]] = defaultdict(set)
    for event in events:
        if event["ph"] != "M":
            processes[event["pid"]].add(event["tid"])
        if event["ph"] == "X" and ("thread_name", event["pid"], event["tid"]) not in named:
            yield f"thread {event['tid']} has no name"
    for pid in processes:
        if not any(name == "process_name" and of == pid for name, of, _ in named):
            yield f"process {pid} has no name"
    # Perfetto finds a thread by its number alone.
    owners: dict[int, set[int]] = defaultdict(set)
    for pid, tids in processes.items():
        for tid in tids:
            owners[tid].add(pid)
    yield from (f"thread {tid} is of {pids}" for tid, pids in owners.items() if len(pids) > 1)


def _nesting(events: list[Event]) -> Iterator[str]:
    """Slices of a thread lie within each other or beside each other."""
    threads: dict[tuple[int, int], list[tuple[float, float, str]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lo, hi = event["ts"], event["ts"] + event["dur"]
            threads[event["pid"], event["tid"]].append((lo, -hi, event["name"]))
    for (_, tid), slices in threads.items():
        open_until: list[float] = []
        for lo, negative_hi, name in sorted(slices):
            while open_until and open_until[-1] <= lo:
                open_until.pop()
            if open_until and -negative_hi > open_until[-1]:
                yield f"thread {tid}: {name!r} overlaps"
            open_until.append(-negative_hi)


def _async_pairs(events: list[Event]) -> Iterator[str]:
    open_ones: dict[tuple[Any, ...], int] = defaultdict(int)
    for event in events:
        key = (event["pid"], event.get("cat"), event.get("id"), event["name"])
        if event["ph"] == "b":
            open_ones[key] += 1
        elif event["ph"] == "e":
            open_ones[key] -= 1
            if open_ones[key] < 0:
                yield f"{key}: e without b"
    yield from (f"{key}: b without e" for key, number in open_ones.items() if number > 0)


def _arrows(events: list[Event]) -> Iterator[str]:
    """Each arrow has a begin and an end, in this order, and each at exactly one slice.

    Where slices nest, readers choose differently among them: so an arrow's thread must hold
    only one at that time.
    """
    slices: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    ends: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] in ("s", "f"):
            ends[event["cat"], event["id"], event["name"]].append(event)
            at = [lo for lo, hi in slices[event["tid"]] if lo <= event["ts"] < hi]
            if len(at) != 1:
                yield f"arrow {event['id']}: {len(at)} slices at its {event['ph']}"
            if event["ph"] == "f" and event.get("bp") != "e":
                yield f"arrow {event['id']}: binds to the next slice"
    for (_, number, _), found in ends.items():
        if [event["ph"] for event in found] != ["s", "f"]:
            yield f"arrow {number}: {[event['ph'] for event in found]}"
    numbers = [number for _, number, _ in ends]
    if len(numbers) != len(set(numbers)):
        yield "one id for several arrows"


def _as_perfetto_binds(events: list[Event]) -> Iterator[str]:
    """Perfetto takes events one after the other: an arrow's end is tied to the slice that began
    last on its thread, even if it is over. That must be the one that holds the time.
    """
    began_last: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        on = began_last[event["tid"]]
        if event["ph"] == "X":
            while on and on[-1][1] <= event["ts"]:
                on.pop()
            on.append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in ("s", "f"):
            if not on:
                yield f"arrow {event['id']}: no slice has begun at its {event['ph']}"
            elif not on[-1][0] <= event["ts"] < on[-1][1]:
                yield f"arrow {event['id']}: its {event['ph']} is tied to a slice that is over"
