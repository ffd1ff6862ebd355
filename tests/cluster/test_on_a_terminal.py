"""A real trial on a terminal: what is seen of it live is what its report says afterwards."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from pytest_drainwatch import trial as conductor
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.showing.progress import PlainProgress
from tests.cluster.harness import QUICK, never
from tests.showing.terminal import Terminal

pytestmark = pytest.mark.cluster


def test_what_is_seen_live_is_what_the_report_says(
    dw_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal, over = Terminal(120, 40), threading.Event()

    def look() -> None:
        while not over.is_set():
            terminal.read()

    watching = threading.Thread(target=look)
    watching.start()
    try:
        with os.fdopen(terminal.theirs, "w") as stream:
            progress = PlainProgress(stream, trial="quick")
            folder = tmp_path / "quick" / "r00"
            trial = conductor.run_trial(
                dw_cluster, QUICK, folder=folder, keep=never, progress=progress
            )
    finally:
        over.set()
        watching.join()
        terminal.close()
    seen = "\n".join(terminal.seen)
    for phase in ("prepare", "deploy", "settle", "observe"):
        assert f"drainwatch: quick  {phase}" in seen
    assert "TCP 2 alive, 0 ended · UDP 2 alive" in seen
    assert "TCP 0 alive, 2 ended" in seen
    (sigterm,) = set(re.findall(r"\+(\d+\.\d\d) s  SIGTERM: ", seen))
    told = trial.summary.trigger_to_sigterm_ns
    assert told is not None
    assert sigterm == f"{told[1] / NS_PER_S:.2f}"
    (gone,) = set(re.findall(r"\+(\d+\.\d\d) s  endpoint removed: ", seen))
    removed = trial.summary.trigger_to_endpoint_removed_ns
    assert removed is not None
    assert gone == f"{removed[1] / NS_PER_S:.2f}", "when its frame was received"
    # A wait for other runs of this machine is said for good.
    left = [line for line in terminal.shown.splitlines() if ": waiting for " not in line]
    assert "".join(left) == "", "and nothing is left of it"
