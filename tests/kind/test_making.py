"""Clusters of our own: what a killed run left is removed by the next one, and nothing else.

With a `kind` that notes what it is told; what a real one does is in test_real.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError, ClusterSettings
from pytest_drainwatch.cluster.kind.cluster import Given
from pytest_drainwatch.cluster.kind.making import make
from tests.kind.test_borrowing import DOCKER, KIND

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from pytest_drainwatch.cluster import ClusterSettings
from pytest_drainwatch.cluster.kind.making import make
print(make(ClusterSettings(provider="kind"), log=lambda line: None).name, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `kind` and a `docker` on PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"kind": KIND, "docker": DOCKER}.items():
        (programs / name).write_text(text.format(here=tmp_path))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))
    return tmp_path


def made(log: list[str] | None = None) -> Given:
    said: list[str] = [] if log is None else log
    return make(ClusterSettings(provider="kind"), log=said.append)


def clusters(here: Path) -> list[str]:
    return (here / "clusters").read_text().split()


def files(here: Path) -> list[str]:
    return sorted(file.name for file in (here / "state" / "kind").iterdir())


@contextmanager
def a_run() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process with a cluster of its own, by that name."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        yield process, process.stdout.readline().strip()
        process.kill()


def test_what_a_killed_run_left_is_removed_and_told(here: Path) -> None:
    with a_run() as (killed, name):
        killed.kill()
        killed.wait()
    assert clusters(here) == [name]
    log: list[str] = []
    given = made(log)
    assert clusters(here) == [given.name] != [name]
    assert f"removing kind cluster {name}, left by a run that is gone" in log
    assert given.end
    given.end()
    given.end()
    assert clusters(here) == []
    assert files(here) == ["drainwatch.lock"]


def test_that_of_a_run_that_lives_is_not(here: Path) -> None:
    with a_run() as (_, name):
        log: list[str] = []
        given = made(log)
        assert clusters(here) == [name, given.name]
        assert log == [f"making kind cluster {given.name}"]


def test_nor_one_that_was_kept_or_is_somebody_elses(here: Path) -> None:
    (here / "clusters").write_text("drainwatch-mine\n")
    kept = made()
    assert kept.leave
    kept.leave()
    given = made()
    assert clusters(here) == ["drainwatch-mine", kept.name, given.name]


def test_an_attempt_that_failed_leaves_nothing(here: Path) -> None:
    (here / "broken").touch()
    with pytest.raises(ClusterError, match="no such image"):
        made()
    assert clusters(here) == []
    assert files(here) == ["drainwatch.lock"]
