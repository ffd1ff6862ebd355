"""Durations as the advisor's texts show them."""

from __future__ import annotations

from pytest_drainwatch.core.interval import NS_PER_S


def seconds(ns: int) -> str:
    """ "5 s", "1.5 s": exact, without zeros that say nothing."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    whole, rest = divmod(ns, NS_PER_S)
    return f"{sign}{whole}{f'.{rest:09d}'.rstrip('0') if rest else ''} s"
