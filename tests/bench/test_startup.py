"""What bench.startup makes of what it saw."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.startup import Start, Usage, _pss_mb, figures, steps, table

LOG = """\
  0.004 s  the file system view is built
 12.500 s  gate api-ready is open
some program's own words 3 s
"""


def usage(component: str, cpu_s: float, *, inotify: int = 1) -> Usage:
    return Usage(component=component, cpu_s=cpu_s, pss_mb=10, inotify=inotify)


def start(
    *, took_s: float = 4.0, ready_s: float = 2.0, cpu_s: float = 1.0, inotify: int = 1
) -> Start:
    return Start(
        took_s=took_s,
        ready_s=ready_s,
        whole_s=3.5,
        steps=((0.5, "etcd started"),),
        whole=(usage("etcd", cpu_s), usage("kubelet", 2.0, inotify=inotify)),
        idle=(usage("etcd", cpu_s + 0.1), usage("kubelet", 2.3)),
        idle_s=10.0,
    )


def values(rounds: list[list[Start]]) -> dict[object, object]:
    return {figure["figure"]: figure["value"] for figure in figures(rounds)}


def test_reads_what_the_node_said(tmp_path: Path) -> None:
    (tmp_path / "node.log").write_text(LOG)
    assert list(steps(tmp_path / "node.log")) == [
        (0.004, "the file system view is built"),
        (12.5, "gate api-ready is open"),
    ]


def test_medians_of_starts_and_the_last_of_each_round() -> None:
    rounds = [[start(ready_s=1, took_s=3), start(ready_s=2, took_s=9)], [start(ready_s=4)] * 2]
    found = values(rounds)
    assert found["clusters_at_once"] == 2
    assert found["ready_s"] == 3.0
    assert found["all_whole_s"] == 6.5
    assert found["step etcd started"] == 0.5


def test_totals_are_of_one_cluster_and_inotify_is_the_worst() -> None:
    found = values([[start(cpu_s=1, inotify=5)], [start(cpu_s=1, inotify=7)]])
    assert found["start_cpu"] == 3.0
    assert found["pss"] == 20.0
    assert found["inotify"] == 8
    assert found["etcd idle_cpu"] == 1.0
    assert found["idle_cpu"] == 4.0


def test_the_goal_is_for_a_cluster_alone() -> None:
    def goal(rounds: list[list[Start]]) -> object:
        return next(f["goal"] for f in figures(rounds) if f["figure"] == "ready_s")

    assert goal([[start()]]) == "<= 3"
    assert goal([[start(), start()]]) is None
    assert any(line.endswith("goal <= 3") for line in table([[start()]]))


def test_looks_at_a_real_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        folder = Path(f"/proc/{process.pid}")
        assert _pss_mb(folder) > 0
        process.communicate(b"\n")
    with pytest.raises(OSError, match=str(process.pid)):
        _pss_mb(folder)
    assert _pss_mb(Path(f"/proc/{os.getpid()}")) > 1
