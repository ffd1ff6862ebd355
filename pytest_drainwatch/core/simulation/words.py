"""Instants and durations of a simulated pod, as people read them."""

from __future__ import annotations


def seconds(ns: int) -> str:
    """To the millisecond, and no digit more than that needs: ``10 s``, ``2.667 s``."""
    sign = "-" if ns < 0 else ""
    whole, ms = divmod((abs(ns) + 500_000) // 1_000_000, 1000)
    text = f"{whole}.{ms:03}".rstrip("0").rstrip(".")
    return f"{sign}{text} s"


def when(ns: int) -> str:
    """An instant within a sentence: ``at 10 s``, ``2.5 s before the deletion``."""
    return f"at {seconds(ns)}" if ns >= 0 else f"{seconds(-ns)} before the deletion"


def named(source: str) -> str:
    """A source within a sentence: ``node 3``, ``the load balancer``."""
    return source if source.startswith("node ") else f"the {source}"


def counted(count: int, thing: str) -> str:
    """``1 request``, ``2 requests``."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
