"""Runs in processes of their own, to be interrupted and killed, and what they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
import pytest
from pytest_drainwatch import App, Scenario
from pytest_drainwatch.core.interval import NS_PER_S

LONG = Scenario(app=App(grace_period_s=60, drain_ns=55 * NS_PER_S), settle_ns=4 * NS_PER_S)

@pytest.mark.parametrize("scenario", [LONG])
def test_long(trial): pass
"""


@pytest.fixture
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A pytest run of its own, in the phase asked for (in the middle of settling)."""
    sign = getattr(request, "param", "drainwatch: settle")
    (tmp_path / "test_long.py").write_text(SUITE)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-v", "--dw-cluster=embedded", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout
    for line in process.stdout:
        if sign in line:
            break
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def run_drainwatch(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, run to its end."""
    return subprocess.run(
        [sys.executable, "-m", "pytest_drainwatch", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def left_behind(folder: Path) -> list[str]:
    """Processes that still name the killed run's folder, or its cluster's."""
    names = [str(folder)]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if any(name in command for name in names):
                found.append(command)
    return found
