"""Reading what a recording holds: JSON values of whatever kind, never trusted.

A field of another kind than expected counts as absent: an old recording, or one
made by hand, must still be judged, and ``True`` is no number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# What a stamp, a count or an errno can be: beyond 64 bits nothing was measured.
_MAX_INTEGER = 2**63 - 1


def integer(value: object, default: int = 0) -> int:
    """The integer, or ``default`` for anything else."""
    return value if type(value) is int and -_MAX_INTEGER <= value <= _MAX_INTEGER else default


def integer_or_none(value: object) -> int | None:
    """The integer, or None for anything else, and for one that 64 bits do not hold."""
    return value if type(value) is int and -_MAX_INTEGER <= value <= _MAX_INTEGER else None


def number(value: object) -> float | None:
    """The number, whole or not; None for anything else."""
    whole = integer_or_none(value)
    return value if isinstance(value, float) else None if whole is None else float(whole)


def text(value: object) -> str:
    """The text; empty for anything else."""
    return value if isinstance(value, str) else ""


def texts(value: object) -> tuple[str, ...]:
    """The items of a list as texts; empty for anything else."""
    return tuple(str(v) for v in value) if isinstance(value, list | tuple) else ()


def objects(value: object) -> list[Mapping[str, object]]:
    """The objects in a list; empty for anything else."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def nesting(value: object) -> int:
    """How deep the innermost value lies: 0 for a plain one, 1 for those of a flat list."""
    depth, level = 0, [value]
    while level := [inner for outer in level for inner in _inside(outer)]:
        depth += 1
    return depth


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
