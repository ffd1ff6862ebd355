"""Reading what a recording holds: JSON values of whatever kind, never trusted.

A field of another kind than expected counts as absent: an old recording, or one
made by hand, must still be judged, and ``True`` is no number.
"""

from __future__ import annotations

from collections.abc import Mapping


def integer(value: object, default: int = 0) -> int:
    """The integer, or ``default`` for anything else."""
    return value if type(value) is int else default


def integer_or_none(value: object) -> int | None:
    """The integer, or None for anything else."""
    return value if type(value) is int else None


def texts(value: object) -> tuple[str, ...]:
    """The items of a list as texts; empty for anything else."""
    return tuple(str(v) for v in value) if isinstance(value, list | tuple) else ()


def objects(value: object) -> list[Mapping[str, object]]:
    """The objects in a list; empty for anything else."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
