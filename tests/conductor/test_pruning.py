"""``--dw-keep-runs``: old runs go, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytest_drainwatch.repeats.pruning import prune
from pytest_drainwatch.results import new_run_id


@pytest.fixture(scope="module")
def dead() -> int:
    """The id of a process that has ended."""
    return _ended()


def _ended() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def living() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def run(out: Path, number: int, pid: int) -> Path:
    """The ``number``-th run there was; with something in it."""
    folder = out / f"20261130T1011{number:02d}Z-{pid}"
    (folder / "drain" / "r00").mkdir(parents=True)
    (folder / "drain" / "r00" / "report.json").write_text("{}")
    return folder


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir())


@pytest.mark.parametrize("keep", [1, 2, 3, 9])
def test_the_newest_stay_and_the_current_one_counts(tmp_path: Path, keep: int, dead: int) -> None:
    runs = [run(tmp_path, number, dead) for number in range(4)]
    current = runs[-1].name
    assert prune(tmp_path, keep, current) == []
    assert names(tmp_path) == [path.name for path in runs[-min(keep, 4) :]]


def test_a_run_that_is_needed_still_stays_beside_the_newest(tmp_path: Path, dead: int) -> None:
    runs = [run(tmp_path, number, dead) for number in range(5)]
    (tmp_path / "link").symlink_to(runs[1])
    spare = frozenset({runs[0], tmp_path / "link" / "drain", tmp_path / "elsewhere"})
    assert prune(tmp_path, 2, runs[-1].name, spare) == []
    stay = {path.name for path in (runs[0], runs[1], runs[3], runs[4])}
    assert {path.name for path in tmp_path.iterdir()} == stay | {"link"}


def test_the_current_run_stays_even_if_it_is_the_oldest(tmp_path: Path, dead: int) -> None:
    """A clock may have been set back."""
    current, _, newest = (run(tmp_path, number, dead) for number in range(3))
    assert prune(tmp_path, 2, current.name) == []
    assert names(tmp_path) == [current.name, newest.name]


def test_only_runs_go(tmp_path: Path, dead: int) -> None:
    old = run(tmp_path, 0, dead)
    current = run(tmp_path, 9, dead)
    (tmp_path / "sample" / "r00").mkdir(parents=True)
    (tmp_path / "20261130T101101Z").mkdir()
    (tmp_path / f"20261130T101102Z-{dead}.kept").mkdir()
    (tmp_path / f"20261130T101103Z-{dead}").write_text("a file of that name")
    (tmp_path / "latest").symlink_to(current.name)
    before = names(tmp_path)
    assert prune(tmp_path, 1, current.name) == []
    assert names(tmp_path) == [name for name in before if name != old.name]
    assert (tmp_path / "latest").resolve() == current


def test_what_links_lead_to_stays(tmp_path: Path, dead: int) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("dear")
    current = run(out, 9, dead)
    link = out / f"20261130T101101Z-{dead}"
    link.symlink_to(precious)
    inside = run(out, 2, dead)
    (inside / "away").symlink_to(precious)
    assert prune(out, 1, current.name) == []
    assert (precious / "file").read_text() == "dear"
    assert link.is_symlink(), "a link is no folder"
    assert not inside.exists()


def test_a_run_that_goes_on_stays(tmp_path: Path, living: int, dead: int) -> None:
    now = datetime.now(UTC)
    going = tmp_path / f"{now:%Y%m%dT%H%M%SZ}-{living}"
    going.mkdir()
    current = run(tmp_path, 9, dead).name
    # As if it were newer than the one that goes on.
    late = f"{now + timedelta(hours=1):%Y%m%dT%H%M%SZ}-{dead}"
    (tmp_path / current).rename(tmp_path / late)
    assert prune(tmp_path, 1, late) == []
    assert names(tmp_path) == sorted([going.name, late])


def test_a_later_process_of_the_same_number_keeps_nothing(tmp_path: Path, living: int) -> None:
    """Numbers are used again, at once within a container."""
    old = run(tmp_path, 0, living)
    long_ago = old.with_name(f"20200101T000000Z-{living}")
    old.rename(long_ago)
    ours = tmp_path / f"20200101T000001Z-{os.getpid()}"
    ours.mkdir()
    current = new_run_id()
    (tmp_path / current).mkdir()
    assert prune(tmp_path, 1, current) == []
    assert names(tmp_path) == [current]


def test_what_cannot_go_is_one_line_and_the_others_go(
    tmp_path: Path, dead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, free, current = (run(tmp_path, number, dead) for number in range(3))
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self == stuck:
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    assert prune(tmp_path, 1, current.name) == [f"old run {stuck} stays: Permission denied"]
    assert names(tmp_path) == [stuck.name, current.name]
    assert not free.exists()


def test_what_an_interrupted_pruning_left_goes(tmp_path: Path, dead: int) -> None:
    current = run(tmp_path, 9, dead)
    (tmp_path / f".pruned-20261130T101101Z-{dead}" / "drain").mkdir(parents=True)
    (tmp_path / ".pruned-mine").mkdir()
    assert prune(tmp_path, 1, current.name) == []
    assert names(tmp_path) == [".pruned-mine", current.name]


def test_where_there_are_no_results(tmp_path: Path) -> None:
    assert prune(tmp_path / "missing", 1, "x") == []
    (tmp_path / "file").write_text("")
    (line,) = prune(tmp_path / "file", 1, "x")
    assert "cannot look into" in line
