"""Does running trials side by side blur them? The published matrix, in turn and at once.

    python -m bench.matrix [--workers 5] [--repeat 5] [--out results/bench-matrix]
    python -m bench.matrix --from SEQUENTIAL PARALLEL

Runs ``pytest scenarios/test_published_matrix.py`` one trial after the other, which takes some
twenty minutes, and then with ``-n``; or reads two results folders of such runs. Prints one
JSON line per figure: both wall times, and of each scenario the spread (IQR) of when TCP flows
ended and SIGTERM came. Side by side it may be ``max(2 x in turn, 20 ms)``, and the whole may
take four minutes. Exit code: 0 it is and does, 1 it is not or a trial broke its promise, 3 could
not measure: a trial is void or unfinished, or the two runs were not measured under the same
conditions. A figure that one of the runs has fewer than three times is not measured, and no
pass. Of two folders wall times are not known, and not judged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from bench.arguments import positive
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.jsonvalue import texts
from pytest_drainwatch.core.repeats.aggregate import PoolError, Repeat
from pytest_drainwatch.core.repeats.alike import unlike
from pytest_drainwatch.core.repeats.metrics import Metric
from pytest_drainwatch.repeats.aggregation import AggregationError, read_repeats
from pytest_drainwatch.repeats.summary import FILE, summarise

HOLDS, BLURRED, CANNOT = 0, 1, 3
MATRIX = "scenarios/test_published_matrix.py"
JUDGED = (Metric.FIRST_TCP, Metric.LAST_TCP, Metric.SIGTERM)
FEWEST = 3  # of two values a spread says nothing
AS_WIDE, ALWAYS_NS = 2, 20 * NS_PER_MS
WALL_GOAL_S = 240
# What pytest returns where all trials were measured, and where some broke a promise.
MEASURED = {0: True, 1: False}

Repeats = Mapping[str, Sequence[Repeat]]


class CannotMeasure(Exception):
    """There are no two runs to compare; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One figure of one scenario, in both runs; None: measured too seldom."""

    scenario: str
    metric: Metric
    sequential_ns: int | None
    parallel_ns: int | None

    @property
    def most_ns(self) -> int | None:
        """How wide it may be side by side."""
        if self.sequential_ns is None:
            return None
        return max(AS_WIDE * self.sequential_ns, ALWAYS_NS)

    @property
    def holds(self) -> bool | None:
        """Whether it is no wider; None: not measured."""
        if self.parallel_ns is None or self.most_ns is None:
            return None
        return self.parallel_ns <= self.most_ns

    def figure(self) -> dict[str, object]:
        """As it is printed."""
        return {
            "figure": f"iqr {self.metric} {self.scenario}",
            "value": _ms(self.parallel_ns),
            "unit": "ms",
            "goal": None if self.most_ns is None else f"<= {_ms(self.most_ns):g}",
            "sequential": _ms(self.sequential_ns),
            "holds": self.holds,
        }


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.matrix", description="whether trials side by side blur each other"
    )
    parser.add_argument("--workers", type=positive, default=5, help="side by side (%(default)s)")
    parser.add_argument("--repeat", type=positive, default=5, help="of each scenario (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("results/bench-matrix"))
    parser.add_argument(
        "--from",
        dest="folders",
        nargs=2,
        type=Path,
        metavar=("SEQUENTIAL", "PARALLEL"),
        help="read these results instead of running",
    )
    arguments = parser.parse_args(argv)
    kept = True
    try:
        folders = arguments.folders
        if folders is None:
            folders = [arguments.out / name for name in ("sequential", "parallel")]
            at_once = ["-n", str(arguments.workers), "--dist", "worksteal"]
            for folder, more in zip(folders, ([], at_once), strict=True):
                kept = _run(folder, arguments.repeat, more) and kept
        spreads = tuple(compare(*map(_read, folders)))
    except CannotMeasure as error:
        print(f"could not measure: {error}", file=sys.stderr)
        return CANNOT
    for spread in spreads:
        print(json.dumps(spread.figure()), flush=True)
    return verdict(spreads, kept=kept)


def compare(sequential: Repeats, parallel: Repeats) -> Iterator[Spread]:
    """Every judged figure of every scenario. Raises :class:`CannotMeasure` unless both runs have
    the same ones, measured under the same conditions.
    """
    if sequential.keys() != parallel.keys():
        raise CannotMeasure(
            f"one run has the scenarios {', '.join(sequential)} and the other "
            f"{', '.join(parallel)}; expected the same ones, of one run each"
        )
    for name in sequential:
        found = unlike(sequential[name][0].conditions, parallel[name][0].conditions)
        if different := (*found.asked, *found.refused):
            raise CannotMeasure(
                f"{name} was not measured under the same conditions: {different[0].field} is "
                f"{different[0].baseline!r} in turn and {different[0].run!r} side by side"
                + (f" ({len(different) - 1} more differ)" if len(different) > 1 else "")
                + "; expected two runs of one build on one machine. Next: measure both again"
            )
        for metric in JUDGED:
            yield Spread(
                scenario=name,
                metric=metric,
                sequential_ns=iqr_ns(sequential[name], metric),
                parallel_ns=iqr_ns(parallel[name], metric),
            )


def iqr_ns(repeats: Sequence[Repeat], metric: Metric) -> int | None:
    """From the lower to the upper quartile of the values that are shown."""
    readings = [repeat.metrics[metric] for repeat in repeats]
    seen = [reading.shown_ns for reading in readings if reading is not None]
    if len(seen) < FEWEST:
        return None
    lower, _, upper = quantiles(seen, n=4, method="inclusive")
    return round(upper - lower)


def verdict(spreads: Sequence[Spread], *, kept: bool) -> int:
    """The exit code."""
    if not kept or any(spread.holds is False for spread in spreads):
        return BLURRED
    return CANNOT if any(spread.holds is None for spread in spreads) or not spreads else HOLDS


def _run(folder: Path, repeat: int, more: Sequence[str]) -> bool:
    """Measure the matrix into ``folder``; whether all promises were kept, within the time."""
    if folder.exists():
        raise CannotMeasure(f"{folder} exists; expected an empty place. Next: --out ANOTHER, or rm")
    command = [sys.executable, "-m", "pytest", MATRIX, "-q", f"--dw-repeat={repeat}"]
    begun = time.monotonic()
    # Its progress is for people; stdout is for figures.
    done = subprocess.run([*command, f"--dw-out={folder}", *more], stdout=sys.stderr, check=False)
    took_s = time.monotonic() - begun
    if done.returncode not in MEASURED:
        raise CannotMeasure(f"pytest ended with {done.returncode}; expected 0 or 1. See above")
    figure = wall_time(folder.name, took_s, judged=bool(more))
    print(json.dumps(figure), flush=True)
    return MEASURED[done.returncode] and figure["holds"] is not False


def wall_time(name: str, took_s: float, *, judged: bool) -> dict[str, object]:
    """What a run took, as it is printed; there is a goal for trials side by side only."""
    return {
        "figure": f"wall time {name}",
        "value": round(took_s, 1),
        "unit": "s",
        "goal": f"<= {WALL_GOAL_S}" if judged else None,
        "holds": took_s <= WALL_GOAL_S if judged else None,
    }


def refuse_unmeasured(folder: Path) -> None:
    """Raise :class:`CannotMeasure` naming what the runs in a folder have not measured."""
    told = [path for path in sorted(folder.glob(f"*/{FILE}")) if not path.parent.is_symlink()]
    told += [folder / FILE] if (folder / FILE).is_file() else []
    try:
        # An interrupted run has none, and its folders tell.
        found = [why for path in told for why in _incomplete(path)]
        found += () if told else summarise(folder).incomplete_because
    except (OSError, ValueError) as error:
        raise CannotMeasure(f"{folder}: {error}") from error
    if found:
        raise CannotMeasure(f"{folder}: {'; '.join(found)}. Expected every trial to be measured")


def _incomplete(path: Path) -> tuple[str, ...]:
    raw = json.loads(path.read_text(encoding="utf-8"))
    return texts(raw.get("incomplete_because")) if isinstance(raw, dict) else (f"{path}: no run",)


def _read(folder: Path) -> Repeats:
    refuse_unmeasured(folder)
    try:
        return read_repeats(folder)
    except (AggregationError, PoolError) as error:
        raise CannotMeasure(str(error)) from error


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / NS_PER_MS, 3)


if __name__ == "__main__":
    sys.exit(main())
