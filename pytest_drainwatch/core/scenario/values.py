"""How a scenario's fields are checked: each error names the field and what it accepts."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)


class ScenarioError(ValueError):
    """A scenario that cannot mean anything; the text names the field and what it accepts."""


def member(field_name: str, value: str, kind: type[E]) -> E:
    """The member of ``kind`` that ``value`` names."""
    try:
        return kind(value)
    except ValueError:
        accepted = ", ".join(kind)
        raise ScenarioError(f"{field_name} is {value!r}, expected one of: {accepted}") from None


def become(asked: object, field_name: str, kind: type[StrEnum]) -> None:
    """Turn a frozen field's text into the member that it names: both mean the very same."""
    object.__setattr__(asked, field_name, member(field_name, getattr(asked, field_name), kind))


def check_kind(field_name: str, value: object, *kinds: type | None) -> None:
    """Refuse a value that is of none of these types."""
    if not any(value is None if kind is None else isinstance(value, kind) for kind in kinds):
        names = " or ".join("None" if kind is None else kind.__name__ for kind in kinds)
        raise ScenarioError(f"{field_name} is {value!r}, expected {names}")


def check_within(field_name: str, value: int, low: int, high: int) -> None:
    """Refuse what is no whole number from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ScenarioError(f"{field_name} is {value!r}, expected a whole number {low}..{high}")
