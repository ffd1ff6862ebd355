"""What a comparison says: values, with the field names of its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.repeats.alike import Difference
from pytest_drainwatch.core.repeats.judged import Unit

COMPARE_SCHEMA = 1


class Verdict(StrEnum):
    """What a comparison says; the worst comes first."""

    REGRESSION = "regression"
    INSUFFICIENT_EVIDENCE = "insufficient-evidence"  # these repeats could not have decided
    IMPROVEMENT = "improvement"
    NO_CHANGE = "no-change"  # they could have, and did not


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A figure in one of the two runs; a value is ``(lo, hi)``, or None where not measured.

    ``median`` is that of the measured ones.
    """

    values: tuple[Bounds | None, ...]
    median: Bounds | None
    not_measured: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftFound:
    """By how much the run lies above the baseline: the median of all differences.

    ``within`` holds the shift with probability ``coverage``, or with a greater one.
    """

    median: Bounds
    within: Bounds
    coverage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """How many repeats could decide, at least."""

    of_run: int  # beside the baseline as it is
    of_each: int  # if both are measured anew


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFound:
    """A figure compared; ``verdict`` is None for one that is only shown, and ``why`` says why.

    ``p`` is two-sided, for the truth that suits the claim worst; ``p_corrected`` is to be
    held against the level. ``p_smallest`` is what so many repeats can reach at all.
    """

    name: str
    unit: Unit
    verdict: Verdict | None = None
    why: str | None = None
    baseline: Side
    run: Side
    shift: ShiftFound | None
    least_effect: int
    p: float | None = None
    p_corrected: float | None = None
    p_smallest: float | None = None
    needed: Needed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherFound:
    """Connections lost, of all ``scenarios`` together; ``moved`` are those that show it most,
    or seem to.

    ``p`` and ``p_corrected`` are as in :class:`FigureFound`.
    """

    name: str
    verdict: Verdict
    why: str | None
    scenarios: tuple[str, ...]
    moved: tuple[str, ...]
    p: float
    p_corrected: float
    needed: Needed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFound:
    """A scenario that both runs have."""

    id: str
    verdict: Verdict
    repeats: tuple[int, int]  # baseline, run
    asked: tuple[Difference, ...]
    across: tuple[Difference, ...]
    figures: tuple[FigureFound, ...]
    not_measured: tuple[str, ...]  # figures that neither side has
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What ``drainwatch compare --json`` prints."""

    compare_schema: int
    baseline: str
    run: str
    verdict: Verdict
    level: float
    least_effect_ns: int
    questions: int  # figures of single scenarios that the correction counted
    questions_together: int  # and those of all scenarios together
    together: tuple[TogetherFound, ...]
    scenarios: tuple[ScenarioFound, ...]
    only_in_baseline: tuple[str, ...]
    only_in_run: tuple[str, ...]
    left_out: Mapping[str, str]  # scenarios that have no repeats, or such that differ, and how
