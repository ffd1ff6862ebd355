"""On which node a container is found, and what is told if none has it or one cannot be asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind import kill
from pytest_drainwatch.cluster.kind.containers import NodeContainer

UID, CONTAINER = "1a8fc32f-5685-42c5-bc81-49b2481bee38", "c0ffee" * 8
# docker exec --interactive NODE crictl … | sh -c …
DOCKER = """#!/bin/sh
echo "$*" >> {here}/said
test -e {here}/broken && {{ echo "Cannot connect to the Docker daemon" >&2; exit 1; }}
case "$3 $4 $5" in
"w2 crictl ps") echo {container} ;;
"w2 crictl inspect") echo 4711 ;;
*" crictl inspect") echo "no such container" >&2; exit 1 ;;
esac
"""
NODES = [NodeContainer(name=name, pid=1, alive=None) for name in ("w1", "w2")]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "docker"
    program.write_text(DOCKER.format(here=tmp_path, container=CONTAINER))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin:/bin")
    return tmp_path


def test_it_is_killed_on_the_node_that_runs_it(here: Path) -> None:
    kill.find(UID, CONTAINER, NODES, cluster="k")()
    last = (here / "said").read_text().splitlines()[-1]
    assert last.startswith("exec --interactive w2 sh -c")
    assert last.endswith(f"kill {CONTAINER} 4711")


def test_one_that_no_node_runs_is_told_so() -> None:
    with pytest.raises(ClusterError, match=f"no node of kind cluster k runs .* of pod {UID}"):
        kill.find(UID, CONTAINER, NODES[:1], cluster="k")


def test_a_docker_that_does_not_answer_is_not_taken_for_a_node_without_it(here: Path) -> None:
    (here / "broken").touch()
    with pytest.raises(ClusterError, match="Cannot connect to the Docker daemon"):
        kill.find(UID, CONTAINER, NODES, cluster="k")
