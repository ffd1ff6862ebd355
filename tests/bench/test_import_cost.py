"""What is measured of an idle pytest run is the difference, and it can be too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import import_cost
from bench.import_cost import DEARER, GOAL_MS, WITHIN, WITHOUT, CannotMeasure, Cost, verdict


def costs(*cpu_ms: float) -> list[Cost]:
    return [Cost(wall_ms=1000, cpu_ms=ms) for ms in cpu_ms]


@pytest.mark.parametrize(
    ("more", "code"), [(0, WITHIN), (GOAL_MS, WITHIN), (GOAL_MS + 1, DEARER), (-5, WITHIN)]
)
def test_the_difference_within_a_round_is_judged(more: float, code: int) -> None:
    """One round on a slow moment of the machine, and one with an accident, say nothing."""
    plain = costs(300, 300, 900, 300, 300)
    assert verdict(plain, costs(300 + more, 300 + more, 900 + more, 800, 300 + more)) == code


def test_both_runs_are_what_they_should_be(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(import_cost.TEST)
    import_cost._check(str(tmp_path))
    for more in ((), WITHOUT):
        found = import_cost.run(str(tmp_path), more)
        assert found.cpu_ms > 0
        assert found.wall_ms > 0


def test_a_run_that_fails_is_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("def test_broken():\n    assert False\n")
    with pytest.raises(CannotMeasure, match="pytest ended with 1"):
        import_cost.run(str(tmp_path), ())
