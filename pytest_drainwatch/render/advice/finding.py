"""What is found of one part of a trial, and how it is said that nothing carries advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.render.text import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Because:
    """What brought something about, as far as it was seen, and what would change it.

    ``advice`` is empty where the evidence carries none: then ``why`` says what is not known.
    """

    why: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One part of a trial: ``tcp``, ``udp``, ``new``, ``http …``, ``exit`` or ``others``.

    ``broken``: some of its connections were hurt; None: it is not known whether, or which.
    ``what`` says how many, in which way and when; ``which`` names them.
    """

    part: str
    broken: bool | None
    what: str
    which: str = ""
    because: tuple[Because, ...] = ()


def sleep_of(seconds: int, grace_s: int | None, *, hook: bool) -> str:
    """A preStop sleep, as one writes it; with the grace period it takes, if that is short.

    ``hook``: there is another hook already, which would have to last as long.
    """
    text = f"a preStop sleep of {seconds} s or more (lifecycle.preStop.sleep.seconds: {seconds})"
    if hook:
        text = f"a preStop hook that takes {seconds} s or more, by a sleep in the one it has"
    if grace_s is not None and seconds >= grace_s:
        text += (
            f", and terminationGracePeriodSeconds well above that: it is {grace_s}, and the "
            "sleep counts"
        )
    return text


def at(bounds: Bounds | None) -> str:
    """``at 31 ms``, or ``at an unknown time``."""
    return "at an unknown time" if bounds is None else f"at {duration(bounds)}"


def span(found: Sequence[Bounds]) -> Bounds | None:
    """From the first's earliest to the last's latest instant."""
    return (min(lo for lo, _ in found), max(hi for _, hi in found)) if found else None


def named(ids: Sequence[str], most: int = 4) -> str:
    """``tcp-0001 … tcp-0010``; the first few and how many more, where some between are not."""
    if len(ids) <= most:
        return ", ".join(ids)
    if _in_a_row(ids):
        return f"{ids[0]} … {ids[-1]}"
    return f"{', '.join(ids[:most])} and {len(ids) - most:,} more"


def _in_a_row(ids: Sequence[str]) -> bool:
    numbers = [each.rpartition("-")[2] for each in ids]
    if not all(number.isdigit() for number in numbers):
        return False
    return int(numbers[-1]) - int(numbers[0]) == len(ids) - 1
