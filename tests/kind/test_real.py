"""Trials on a real kind cluster, through the real pytest-kind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded.rootfs import root_filesystem
from pytest_drainwatch.cluster.kind.shape import Shape
from tests.kind.lab import Place

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.alone]

SUITE = """
import os
from dataclasses import replace
import pytest
from pytest_drainwatch import App, Behavior, Flows, Scenario, Service
from pytest_drainwatch.core.interval import NS_PER_S

QUICK = Scenario(
    app=App(behavior=Behavior.EXIT_NOW, grace_period_s=3, replicas=2),
    flows=Flows(tcp=3, udp=3),
    settle_ns=2 * NS_PER_S,
)

INSIDE = replace(QUICK, service=Service(access="clusterip"))

# A pod's network is entered by root alone.
@pytest.mark.parametrize("scenario", [QUICK, INSIDE if os.geteuid() == 0 else QUICK])
@pytest.mark.parametrize("number", range(2))
def test_quick(trial, number):
    assert trial.tcp.mechanisms == {"rst": 3}
"""


@pytest.fixture(autouse=True)
def _nothing_is_left(kind_place: Place) -> Iterator[None]:
    before = kind_place.containers()
    yield
    assert kind_place.containers() == before


def pytest_words(place: Place, folder: Path) -> list[str]:
    image = ["--kind-image", place.node_image] if place.node_image else []
    return [
        *(sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-W", "error"),
        *("--dw-cluster=kind", "--dw-out", str(folder / "results"), *image),
    ]


def variables(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": PATHS, "DW_STATE": str(folder / "state")}


def pytest_run(
    place: Place, folder: Path, *arguments: str, cwd: Path | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """What a run of pytest printed, and the reports of its trials."""
    done = place.run(
        *pytest_words(place, folder), *arguments, cwd=cwd or folder, more=variables(folder)
    )
    reports = [
        json.loads(path.read_text()) for path in sorted(folder.glob("results/2*/*/*/report.json"))
    ]
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, reports


def until(process: subprocess.Popen[str], sign: str) -> None:
    """Read what it says up to a sign."""
    assert process.stdout
    said = []
    for line in process.stdout:
        said.append(line)
        if sign in line:
            return
    raise AssertionError("".join(said))


TERMINATION = ("scenarios/test_termination.py", "-k", "drain and delete")
TWO_NODES = ("--dw-nodes", "2")


@pytest.mark.parametrize(
    ("asked", "containers", "trials"),
    [
        (TERMINATION, 1, 1),
        ((*TERMINATION, *TWO_NODES), 3, 1),
        (("scenarios/test_nodes.py", *TWO_NODES), 3, 2),
    ],
    ids=["one-node", "two-workers", "nodes"],
)
def test_the_scenarios_pass_unchanged(
    kind_place: Place, tmp_path: Path, asked: tuple[str, ...], containers: int, trials: int
) -> None:
    name = f"dw-scenarios-{containers}"
    try:
        words = (*asked, "--cluster-name", name)
        _, reports = pytest_run(kind_place, tmp_path, *words, cwd=ROOT)
    finally:
        shutil.rmtree(ROOT / ".pytest-kind" / name, ignore_errors=True)
    assert len(reports) == trials
    for report in reports:
        environment = report["environment"]
        assert environment["provider"] == "kind"
        assert environment["node_count"] == containers
        assert environment["kube_proxy_mode"] == "iptables"
        assert environment["min_sync_period_ms"] == 1000
        assert re.fullmatch(r"v1\.\d+\.\d+.*", environment["kubernetes_version"])
        # Docker's containers have the harness's clock, so nothing about it is estimated.
        assert all(clock["same_clock"] for clock in report["trial"]["clock"])
        looks = report["trial"]["mechanism"]
        assert [look["problem"] for look in looks] == [None] * len(looks)
        assert all(look["rules"] for look in looks if look["occasion"] == "trigger")


def test_a_node_without_pods_forwards_packets_to_the_others(
    kind_place: Place, tmp_path: Path
) -> None:
    """Or a trial whose connections enter there is void: kind relies on it, and so does this."""
    words = ["--name", "dw-forwards", "--kubeconfig", str(tmp_path / "kubeconfig")]
    image = ["--image", kind_place.node_image] if kind_place.node_image else []
    config = Shape(nodes=2).config()
    try:
        made = kind_place.run(
            *("kind", "create", "cluster", *words, *image, "--config", "-"), said=config or ""
        )
        assert made.returncode == 0, made.stderr
        for role in ("control-plane", "worker", "worker2"):
            read = ("docker", "exec", f"dw-forwards-{role}", "cat", "/proc/sys/net/ipv4/ip_forward")
            assert kind_place.run(*read).stdout.strip() == "1", role
    finally:
        kind_place.run("kind", "delete", "cluster", *words)


def test_two_workers_share_one_cluster_of_two_workers_and_a_control_plane(
    kind_place: Place, tmp_path: Path
) -> None:
    (tmp_path / "test_quick.py").write_text(SUITE)
    said, reports = pytest_run(
        kind_place,
        tmp_path,
        *("test_quick.py", "-n", "2", "--dw-nodes", "2", "--cluster-name", "dw-shared"),
        *("--dw-proxy-mode", "nftables", "--dw-min-sync-period", "2s"),
    )
    assert said.count("making kind cluster dw-shared") == 1
    assert len(reports) == 4
    assert set(re.findall(r"\[gw(\d)\]", said)) == {"0", "1"}
    for report in reports:
        environment = report["environment"]
        assert environment["node_count"] == 3
        assert environment["kube_proxy_mode"] == "nftables"
        assert environment["min_sync_period_ms"] == 2000


def test_a_killed_runs_cluster_serves_the_next_run_and_ends_with_it(
    kind_place: Place, tmp_path: Path
) -> None:
    (tmp_path / "test_quick.py").write_text(SUITE)
    words = [*pytest_words(kind_place, tmp_path), "test_quick.py", "--cluster-name", "dw-killed"]
    killed = kind_place.start(words, cwd=tmp_path, more=variables(tmp_path))
    until(killed, "drainwatch: settle")
    killed.kill()
    killed.communicate()
    shutil.rmtree(tmp_path / ".pytest-kind")
    said, reports = pytest_run(
        kind_place,
        tmp_path,
        "test_quick.py::test_quick[0-exit-now-delete0]",
        "--cluster-name",
        "dw-killed",
    )
    assert "kind cluster dw-killed is there already" in said
    assert re.search(r"removed namespace \S+, left by a run that is gone", said)
    assert len(reports) == 1


@pytest.mark.parametrize("shape", [(), ("--dw-nodes", "2")], ids=["fixture", "shaped"])
def test_an_interrupt_while_the_cluster_is_made_leaves_nothing(
    kind_place: Place, tmp_path: Path, shape: tuple[str, ...]
) -> None:
    (tmp_path / "test_quick.py").write_text(SUITE)
    words = [*pytest_words(kind_place, tmp_path), "test_quick.py", *shape]
    stopped = kind_place.start(words, cwd=tmp_path, more=variables(tmp_path))
    until(stopped, "making kind cluster pytest-kind")
    deadline = time.monotonic() + 120
    while "pytest-kind-control-plane" not in kind_place.containers():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    stopped.terminate()
    said, _ = stopped.communicate(timeout=180)
    assert stopped.returncode == pytest.ExitCode.INTERRUPTED, said


def test_an_image_that_docker_builds_and_an_agent_in_the_nodes_network(
    kind_place: Place, tmp_path: Path
) -> None:
    """As with a rootless daemon, whose nodes do not answer from the harness; and with no image
    of the embedded cluster at hand. Here both are taken to be so.
    """
    (tmp_path / "test_quick.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text(
        "from pytest_drainwatch.cluster.kind import image, reach\n"
        "image.probe_image_if_cached = lambda **_: ()\n"
        "reach.source_towards = lambda address: None\n"
    )
    _give_base_image(kind_place)
    said, (report,) = pytest_run(
        kind_place, tmp_path, "test_quick.py::test_quick[0-exit-now-delete0]"
    )
    assert "building the probe's image with Docker" in said
    (deviation,) = report["trial"]["deviations"]
    assert "flow agent: runs in the network of node pytest-kind-control-plane" in deviation
    assert all(clock["same_clock"] for clock in report["trial"]["clock"])


def _give_base_image(place: Place) -> None:
    """A python:3-slim where none can be pulled: the probe's root file system under that name."""
    if place.node_image is None:
        return
    try:
        base = root_filesystem(print)
    except ClusterError as error:
        pytest.skip(f"no base image can be had: {error}")
    built = place.run("docker", "image", "ls", "--quiet", "drainwatch/probe").stdout.split()
    if built:
        place.run("docker", "image", "rm", "--force", *built)
    done = place.run("docker", "import", str(base.path), "python:3-slim")
    assert done.returncode == 0, done.stderr


def test_without_pytest_it_makes_a_cluster_of_its_own(kind_place: Place, tmp_path: Path) -> None:
    image = ("--kind-image", kind_place.node_image) if kind_place.node_image else ()
    done = kind_place.run(
        *(sys.executable, "-m", "pytest_drainwatch", "run", "--cluster", "kind", *image),
        *("--drain-behavior", "exit-now", "--grace-period", "3", "--settle", "2s"),
        *("--out", str(tmp_path / "results")),
        cwd=tmp_path,
        more=variables(tmp_path),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "making kind cluster drainwatch-" in done.stderr + done.stdout


def test_without_pytest_a_killed_runs_cluster_is_removed_by_the_next_run(
    kind_place: Place, tmp_path: Path
) -> None:
    image = ("--kind-image", kind_place.node_image) if kind_place.node_image else ()
    words = [
        *(sys.executable, "-m", "pytest_drainwatch", "run", "--cluster", "kind", *image),
        *("--drain-behavior", "exit-now", "--grace-period", "3", "--settle", "2s"),
        *("--out", str(tmp_path / "results")),
    ]
    killed = kind_place.start(words, cwd=tmp_path, more=variables(tmp_path))
    until(killed, "settle")
    killed.kill()
    killed.communicate()
    (left,) = (
        each.removesuffix("-control-plane")
        for each in kind_place.containers()
        if each.startswith("drainwatch-")
    )
    done = kind_place.run(*words, cwd=tmp_path, more=variables(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"removing kind cluster {left}, left by a run that is gone" in done.stderr + done.stdout
