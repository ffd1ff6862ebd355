"""`drainwatch cluster up|list|down`: a cluster that outlives who started it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.cluster.embedded import records
from tests.embedded.live import host

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]
PROGRAM = """
import argparse, sys
from pytest_drainwatch.cluster import commands
parser = argparse.ArgumentParser(prog="drainwatch")
commands.register(parser.add_subparsers(required=True))
arguments = parser.parse_args()
sys.exit(arguments.run(arguments))
"""


def drainwatch(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run the commands as a process of their own, as a person does."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def listed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(drainwatch("cluster", "list", "--json").stdout)
    return found


@pytest.mark.alone
def test_up_lives_on_until_down() -> None:
    name = "by-hand"
    before = host.snapshot()
    up = drainwatch("cluster", "up", "--name", name)
    try:
        assert up.returncode == 0, up.stderr
        (record,) = listed()
        assert (record["name"], record["owner"]) == (name, None)
        assert f"export KUBECONFIG={record['kubeconfig']}" in up.stdout
        assert Path(record["kubeconfig"]).exists()
        second = drainwatch("cluster", "up", "--name", name)
        assert second.returncode == 3
        assert f"a cluster named {name} is running" in second.stderr
        assert [entry["name"] for entry in listed()] == [name]
    finally:
        down = drainwatch("cluster", "down", "--name", name)
    assert down.returncode == 0, down.stderr
    assert listed() == []
    assert not (records.clusters_dir() / name).exists()
    assert Path(record["logs"], "kubelet.log").exists()
    assert host.differences(before, host.snapshot(), cluster=name, link="dwh") == []


def test_interrupted_up_leaves_nothing() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "cluster", "up", "--name", "interrupted"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    state = records.clusters_dir() / "interrupted"
    assert host.eventually((state / "node.pid").exists, within_s=10)
    process.send_signal(2)
    _, errors = process.communicate()
    assert process.returncode == 3
    assert "interrupted; nothing is left running" in errors
    assert not state.exists()
    assert not [path for path in host.cgroups() if "interrupted" in path]
