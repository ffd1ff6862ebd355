"""Trials side by side are held against those in turn; either verdict can come out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import matrix
from bench.matrix import BLURRED, CANNOT, HOLDS, Spread, compare, iqr_ns, verdict
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.metrics import Metric, Reading
from pytest_drainwatch.core.repeats.summary import Planned
from tests.cli.folders import measured, recorded, void, write_summary


def repeats(metric: Metric, values_ms: Sequence[float | None]) -> list[Repeat]:
    """Repeats that agree in all but one figure."""
    return [
        Repeat(
            label=str(number),
            conditions={},
            metrics={
                **{name: Reading(shown_ns=0) for name in Metric},
                metric: None if ms is None else Reading(shown_ns=round(ms * NS_PER_MS)),
            },
            fates={},
        )
        for number, ms in enumerate(values_ms)
    ]


def judged(metric: Metric, first: Sequence[float | None], then: Sequence[float | None]) -> int:
    found = compare({"B": repeats(metric, first)}, {"B": repeats(metric, then)})
    return verdict(tuple(found), kept=True)


@pytest.mark.parametrize("metric", matrix.JUDGED)
@pytest.mark.parametrize(
    ("first", "then", "code"),
    [
        ([0, 0, 0, 0, 0], [0, 0, 10, 20, 500], HOLDS),  # 20 ms are always allowed
        ([0, 0, 0, 0, 0], [0, 0, 10, 21, 500], BLURRED),
        ([0, 10, 30, 40, 99], [0, 0, 0, 60, 60], HOLDS),  # twice 30
        ([0, 10, 30, 40, 99], [0, 0, 0, 61, 61], BLURRED),
        ([0, None, None, 0, 0], [0, 0, 0, None, 0], HOLDS),
        ([0, None, None, None, 0], [0, 0, 0, 0, 0], CANNOT),
        ([0, 0, 0, 0, 0], [None, None, None, 0, 0], CANNOT),
    ],
)
def test_the_criterion(
    metric: Metric, first: list[float | None], then: list[float | None], code: int
) -> None:
    assert judged(metric, first, then) == code


def test_a_figure_that_nobody_promised_anything_about_is_not_judged() -> None:
    assert judged(Metric.LAST_UDP, [0, 0, 0, 0, 0], [0, 500, 1000, 1500, 2000]) == HOLDS


@given(st.lists(st.integers(-(10**12), 10**12), min_size=3, max_size=9), st.integers(0, 10**9))
def test_a_spread_does_not_depend_on_where_or_in_which_order(values: list[int], by: int) -> None:
    def spread(shown: list[int]) -> int | None:
        return iqr_ns(repeats(Metric.SIGTERM, [ns / NS_PER_MS for ns in shown]), Metric.SIGTERM)

    found, moved = spread(values), spread([value + by for value in reversed(values)])
    assert found is not None
    assert moved is not None
    assert abs(found - moved) <= 2
    assert 0 <= found <= max(values) - min(values) + 1


def test_what_was_seen_wide_is_not_saved_by_what_was_not_measured() -> None:
    def spread(parallel_ns: int | None) -> Spread:
        return Spread(scenario="B", metric=Metric.SIGTERM, sequential_ns=0, parallel_ns=parallel_ns)

    assert verdict([spread(0), spread(None)], kept=True) == CANNOT
    assert verdict([spread(21 * NS_PER_MS), spread(None)], kept=True) == BLURRED
    assert verdict([spread(0)], kept=False) == BLURRED, "a trial broke its promise"
    assert verdict([], kept=True) == CANNOT


def test_two_folders_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (filled(tmp_path / name) for name in ("one", "other"))
    assert matrix.main(["--from", str(one), str(other)]) == HOLDS
    told: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["figure"].split()[1] for line in told} == set(matrix.JUDGED)
    assert all(line["holds"] for line in told)


def test_a_folder_that_is_none_and_one_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert matrix.main(["--from", str(tmp_path / "none"), str(tmp_path)]) == CANNOT
    one, other = filled(tmp_path / "one"), filled(tmp_path / "other", "another")
    assert matrix.main(["--from", str(one), str(other)]) == CANNOT
    assert "expected the same ones" in capsys.readouterr().err


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("summarised", [True, False])
def test_a_trial_that_was_not_measured_is_no_broken_promise(
    side: int, summarised: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [filled(tmp_path / name) for name in ("one", "other")]
    recorded(folders[side] / "run", "drain-delete", "r03", void("no flows were answered"))
    if summarised:
        write_summary(folders[side] / "run")
    assert matrix.main(["--from", *map(str, folders)]) == CANNOT
    assert "r03 is void: no flows were answered" in capsys.readouterr().err


def test_a_trial_that_never_began_is_none_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [filled(tmp_path / name) for name in ("one", "other")]
    planned = [Planned(scenario="drain-delete", repeat=3, test="test_x[r03]")]
    write_summary(folders[0] / "run", planned)
    assert matrix.main(["--from", *map(str, folders)]) == CANNOT
    assert "did not run" in capsys.readouterr().err


@pytest.mark.parametrize("field", ["environment.kernel", "config.drain_max_seconds"])
def test_runs_of_other_conditions_are_refused(field: str) -> None:
    def sides(value: str) -> dict[str, list[Repeat]]:
        same = repeats(Metric.SIGTERM, [0, 0, 0])
        return {"B": [replace(one, conditions={field: value}) for one in same]}

    assert verdict(tuple(compare(sides("one"), sides("one"))), kept=True) == HOLDS
    with pytest.raises(matrix.CannotMeasure, match=rf"{field} is 'one' in turn and 'other' side"):
        list(compare(sides("one"), sides("other")))


@pytest.mark.parametrize(
    ("took_s", "judged", "holds"),
    [(240.0, True, True), (240.1, True, False), (1300.0, False, None)],
)
def test_four_minutes_side_by_side(took_s: float, judged: bool, holds: bool | None) -> None:
    told = matrix.wall_time("x", took_s, judged=judged)
    assert told["holds"] is holds
    assert (told["goal"] is None) is not judged


def filled(folder: Path, name: str = "drain-delete") -> Path:
    """Results of three repeats."""
    for number in range(3):
        measured(folder / "run", name, f"r{number:02d}")
    return folder
