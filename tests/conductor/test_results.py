"""Names of folders: what is given can be read again, and attempts never share one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.results import Attempt, attempt_of, claim_folder, new_run_id, run_of


def test_a_runs_name_says_when_and_which_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: 4711)
    found = run_of(new_run_id())
    assert found is not None
    assert found.pid == 4711
    assert abs((datetime.now(UTC) - found.began).total_seconds()) < 60


@pytest.mark.parametrize(
    "name",
    [
        "sample",
        "latest",
        "20261130T101112Z",
        "20261130T101112Z-",
        "20261130T101112Z-77.tar",
        "20261330T101112Z-77",
        "20261130T101112Z-77 ",
        "20261130T101112Z--77",
        "x20261130T101112Z-77",
        "20261130T101112Z-\u0667\u0667",  # digits, but not ours
        ".20261130T101112Z-77",
        "20261130T101112Z-77\n",
    ],
)
def test_other_names_are_no_runs(name: str) -> None:
    assert run_of(name) is None
    assert run_of("20261130T101112Z-77") is not None


@pytest.mark.parametrize(
    "name", ["r0", "r", "r1.2", "r00.", "r00.x", "x00", "r00.2.3", "r\u0660\u0660"]
)
def test_other_names_are_no_attempts(name: str) -> None:
    assert attempt_of(name) is None


@given(st.integers(0, 300), st.integers(1, 3))
def test_a_claimed_folder_says_which_attempt_it_is(repeat: int, attempts: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as out:
        folders = [claim_folder(Path(out), "run", "a/../b", repeat) for _ in range(attempts)]
    assert len(set(folders)) == attempts
    assert {folder.parent.name for folder in folders} == {"a_.._b"}
    found = [attempt_of(folder.name) for folder in folders]
    assert found == [
        Attempt(repeat=repeat, attempt=n, first=f"r{repeat:02d}") for n in range(1, attempts + 1)
    ]
