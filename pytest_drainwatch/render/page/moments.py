"""Instants for the page: whole microseconds as data; as text with the precision they have."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log10

from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds
from pytest_drainwatch.render.page.data import At

NS_PER_US = 1_000
_FINEST_S, _FINEST_MS = NS_PER_MS, NS_PER_MS // 10  # the last digit of what is known well


def at(bounds: Bounds) -> At:
    """Nanoseconds -> microseconds, outward: what is shown holds what is meant."""
    return bounds[0] // NS_PER_US, -(-bounds[1] // NS_PER_US)


def at_or_none(bounds: Bounds | None) -> At | None:
    """The same, of what may not be known."""
    return None if bounds is None else at(bounds)


def within(found: Iterable[Bounds]) -> Bounds | None:
    """What holds all of them; None if there are none."""
    every = list(found)
    if not every:
        return None
    return min(lo for lo, _ in every), max(hi for _, hi in every)


def first(found: Iterable[Bounds]) -> Bounds | None:
    """When the first of several things happened."""
    every = list(found)
    return (min(lo for lo, _ in every), min(hi for _, hi in every)) if every else None


def last(found: Iterable[Bounds]) -> Bounds | None:
    """When the last of several things had happened."""
    every = list(found)
    return (max(lo for lo, _ in every), max(hi for _, hi in every)) if every else None


def recorded(trial: TrialReport) -> Bounds:
    """From the first flow, or attempt, to the last thing known, in ns since t = 0."""
    begins = [step.at_ns[0] for flow in trial.flows for step in flow.history[:1]]
    ends = [step.at_ns[1] for flow in trial.flows for step in flow.history[-1:]]
    runs = [run.at_ns for prober in trial.new_connections for run in prober.runs]
    entries = [entry.t_ns[1] for entry in trial.timeline]
    lo = min([*begins, *(run[0] for run in runs), *entries, 0])
    hi = max([*ends, *(run[1] for run in runs), *entries, 0])
    return lo, hi


def moment(bounds: Bounds) -> str:
    """An instant since t = 0: ``+25.048 s``, or both bounds where they differ: ``+2.352–2.394 s``.

    Its width has two digits; more would say nothing.
    """
    lo, hi = bounds
    seconds = max(abs(lo), abs(hi)) >= NS_PER_S
    unit, scale, finest = ("s", NS_PER_S, _FINEST_S) if seconds else ("ms", NS_PER_MS, _FINEST_MS)
    if hi - lo < finest:
        middle = round((lo + hi) / 2 / finest) * finest
        return f"{_signed(middle, scale, finest)} {unit}"
    step = max(finest, min(10 ** (floor(log10(hi - lo)) - 1), scale))
    low, high = lo // step * step, -(-hi // step) * step
    if low < 0:
        return f"{_signed(low, scale, step)} to {_signed(high, scale, step)} {unit}"
    return f"+{_number(low, scale, step)}–{_number(high, scale, step)} {unit}"


def since_when(bounds: Bounds) -> str:
    """An instant; long before the trigger digits do not matter: ``12.6 s before t = 0``."""
    lo, hi = bounds
    return f"{-hi / NS_PER_S:.1f} s before t = 0" if hi < -NS_PER_S else f"at {moment((lo, hi))}"


def _signed(ns: int, scale: int, step: int) -> str:
    return ("-" if ns < 0 else "+") + _number(abs(ns), scale, step)


def _number(ns: int, scale: int, step: int) -> str:
    digits = len(str(scale // step)) - 1
    return f"{ns / scale:.{digits}f}"
