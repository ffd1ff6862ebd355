"""Instants and durations in sentences, for people who read: one number where that is enough.

What is exact stands in the picture and in the evidence.
"""

from __future__ import annotations

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds
from pytest_drainwatch.render.page.moments import moment
from pytest_drainwatch.render.text import duration

# So wide, or such a part of the whole, makes no difference to a reader.
_NARROW_NS, _PART = 5 * NS_PER_MS, 0.05


def at(bounds: Bounds) -> str:
    """``at +46.4 ms``, ``at about +45 ms``, ``within the first 35 ms``, ``between … and …``."""
    near = _near(bounds)
    if near is not None:
        return f"at {near}"
    if _begins_at_once(bounds):
        return f"within {_first(bounds)}"
    return f"between {_round(bounds[0], up=False)} and {_round(bounds[1], up=True)}"


def since(bounds: Bounds) -> str:
    """``from about +45 ms on``."""
    near = _near(bounds)
    if near is not None:
        return f"from {near} on"
    return f"from {_first(bounds) if _begins_at_once(bounds) else moment(bounds)} on"


def lasting(bounds: Bounds) -> str:
    """How long something lasted: ``2.15–3.13 s``, or ``up to 1.88 s`` where it may have been
    over at once.
    """
    lo, hi = bounds
    return duration(bounds) if lo > _PART * hi else f"up to {most(hi)}"


def most(ns: int) -> str:
    """At most so long, rounded up: ``351 ms``."""
    step = NS_PER_S // 100 if ns >= NS_PER_S else NS_PER_MS
    up = -(-ns // step) * step
    return duration((up, up))


def near(bounds: Bounds) -> str:
    """The instant alone: ``about +45 ms``, ``+2.2–3.2 s``."""
    return _near(bounds) or moment(bounds)


def _near(bounds: Bounds) -> str | None:
    lo, hi = bounds
    if hi - lo > max(_NARROW_NS, _PART * max(abs(lo), abs(hi))):
        return None
    text = moment(bounds)
    if "–" not in text and " to " not in text:
        return text
    middle = (lo + hi) / 2
    if abs(middle) >= NS_PER_S:
        return f"about {middle / NS_PER_S:+.2f} s"
    return f"about {middle / NS_PER_MS:+.0f} ms"


def _begins_at_once(bounds: Bounds) -> bool:
    """Whether it may have been right after t = 0, as far as a reader cares."""
    return -_NARROW_NS <= bounds[0] <= _PART * bounds[1]


def _first(bounds: Bounds) -> str:
    return f"the first {_round(bounds[1], up=True).removeprefix('+')}"


def _round(ns: int, *, up: bool) -> str:
    """Two or three digits of it, away from what lies between."""
    unit, scale, step = ("s", NS_PER_S, NS_PER_S // 10)
    if abs(ns) < NS_PER_S:
        unit, scale, step = "ms", NS_PER_MS, NS_PER_MS
    rounded = (-(-ns // step) if up else ns // step) * step
    digits = 1 if unit == "s" else 0
    return f"{rounded / scale:+.{digits}f} {unit}"
