"""What does having the plugin installed cost a pytest run that uses none of it?

    python -m bench.import_cost [--rounds 40]

One test that does nothing, run by pytest with the plugin and with ``-p no:drainwatch`` in turn,
each in a process of its own; pytest-kind, on which fixtures may rest, is switched off in
both. Prints medians, and those of the differences within a round. The goal is for processor
time: such a run waits for nothing, so on a quiet machine it is what a person waits longer, and
on a busy one that wait says more of the others. Exit code: 0 within the goal, 1 not, 3
could not measure.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.arguments import positive

WITHIN, DEARER, CANNOT = 0, 1, 3
GOAL_MS = 15
TEST = "def test_nothing():\n    pass\n"
WITHOUT = ("-p", "no:drainwatch")
# Nothing of ours, and no cache on disk that only the first run fills.
COMMON = ("-p", "no:cacheprovider", "-p", "no:kind")
MS_PER_S = 1000


class CannotMeasure(Exception):
    """A run failed, or did not load what it should have; says what it printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one run, in milliseconds."""

    wall_ms: float
    cpu_ms: float


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.import_cost", description="what the plugin costs those without use"
    )
    parser.add_argument("--rounds", type=positive, default=40, help="of two runs (%(default)s)")
    arguments = parser.parse_args(argv)
    plain: list[Cost] = []
    loaded: list[Cost] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "test_nothing.py").write_text(TEST)
            _check(folder)
            for number in range(arguments.rounds + 1):
                # Which of them goes first changes, and the first round fills the caches.
                order = (WITHOUT, ()) if number % 2 else ((), WITHOUT)
                costs = {more: run(folder, more) for more in order}
                if number:
                    plain.append(costs[WITHOUT])
                    loaded.append(costs[()])
    except CannotMeasure as error:
        print(f"could not measure: {error}", file=sys.stderr)
        return CANNOT
    for figure in (
        _figure("pytest_without_ms", [cost.wall_ms for cost in plain]),
        _figure("pytest_with_ms", [cost.wall_ms for cost in loaded]),
        _figure("import_cost_wall_ms", differences(plain, loaded, "wall_ms")),
        _figure("import_cost_ms", differences(plain, loaded, "cpu_ms"), f"<= {GOAL_MS}"),
    ):
        print(json.dumps(figure), flush=True)
    return verdict(plain, loaded)


def verdict(plain: Sequence[Cost], loaded: Sequence[Cost]) -> int:
    """The exit code."""
    return WITHIN if median(differences(plain, loaded, "cpu_ms")) <= GOAL_MS else DEARER


def differences(plain: Sequence[Cost], loaded: Sequence[Cost], name: str) -> list[float]:
    """By how much the run with the plugin cost more, round by round."""
    pairs = zip(plain, loaded, strict=True)
    return [getattr(with_it, name) - getattr(without, name) for without, with_it in pairs]


def run(folder: str, more: Sequence[str]) -> Cost:
    """One pytest run. Raises :class:`CannotMeasure`."""
    before, begun = _spent_s(), time.perf_counter()
    done = _pytest(folder, *more)
    took_s, spent_s = time.perf_counter() - begun, _spent_s() - before
    if done.returncode != 0:
        raise CannotMeasure(f"pytest ended with {done.returncode}: {done.stdout[-500:]}")
    return Cost(wall_ms=took_s * MS_PER_S, cpu_ms=spent_s * MS_PER_S)


def _spent_s() -> float:
    """The processor time of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _check(folder: str) -> None:
    """Both runs are what they should be: one knows our options, and the other does not."""
    for more, known in (((), True), (WITHOUT, False)):
        if ("--dw-cluster" in _pytest(folder, "--help", *more).stdout) is not known:
            raise CannotMeasure(
                f"pytest {' '.join(more)} {'does not know' if known else 'knows'} --dw-cluster; "
                "expected the plugin to be installed: pip install -e ."
            )


def _pytest(folder: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *COMMON, *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _figure(name: str, values: Sequence[float], goal: str | None = None) -> dict[str, object]:
    return {"figure": name, "value": round(median(values), 2), "unit": "ms", "goal": goal}


if __name__ == "__main__":
    sys.exit(main())
