"""Case C64: what a run that was killed leaves, and what the next one makes of it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.cluster.runs import left_behind, run_drainwatch

pytestmark = pytest.mark.cluster


def test_c64_kill_9_leaves_nothing_and_the_next_run_works(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    running.kill()
    running.wait()
    deadline = time.monotonic() + 20
    while (left := left_behind(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left
    assert not list(tmp_path.glob("results/2*/*/r00/report.json"))
    done = run_drainwatch(
        *("run", "--cluster", "embedded", "--drain-behavior", "exit-now"),
        *("--settle", "1", "--grace-period", "3", "--out", str(tmp_path / "next")),
    )
    assert done.returncode == 0, done.stderr
    assert "rst" in done.stdout
