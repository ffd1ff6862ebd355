"""The parts of the kind provider that need no kind."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch.cluster import ClusterError, ClusterFacts
from pytest_drainwatch.cluster.kind import containers, image, reach
from pytest_drainwatch.cluster.kind.cluster import _is_settled
from pytest_drainwatch.cluster.kind.programs import find_kind, run
from pytest_drainwatch.core.scenario import ClusterNeeds
from pytest_drainwatch.core.scenario.needs import ProxyMode
from pytest_drainwatch.suiting import refuse

ROOT = Path(__file__).parents[2]


def test_a_programs_failure_tells_its_last_words_and_what_to_type() -> None:
    script = "import sys; print('the cause', file=sys.stderr); sys.exit(3)"
    with pytest.raises(ClusterError, match=r"failed \(status 3\): the cause\. Expected a wonder"):
        run([sys.executable, "-c", script], expected="a wonder")


def test_a_program_that_hangs_or_is_not_there_is_told_so() -> None:
    with pytest.raises(ClusterError, match="did not end within 0 s"):
        run(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            expected="a wonder",
            timeout_s=0.2,
        )
    with pytest.raises(ClusterError, match="none cannot be run"):
        run(["/none"], expected="a wonder")


def test_a_kind_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=f"kind is not at {tmp_path}"):
        find_kind(str(tmp_path))


def test_a_container_whose_process_ended_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        watched = containers.NodeContainer(
            name="n", pid=process.pid, alive=os.pidfd_open(process.pid)
        )
        assert not watched.ended()
        process.kill()
        process.wait()
        assert watched.ended()
        watched.forget()
        assert not watched.ended()


def test_somebody_elses_process_of_that_number_is_not_taken_for_the_container() -> None:
    """The daemon's numbers may be those of another machine."""
    assert containers._watch(os.getpid(), "0123456789abcdef" * 4) is None
    cgroup = Path("/proc/self/cgroup").read_text().strip().splitlines()[0].rpartition(":")[2]
    descriptor = containers._watch(os.getpid(), cgroup)
    assert descriptor is not None
    os.close(descriptor)


@pytest.fixture
def kubelet(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.2", 0)) as server:
        monkeypatch.setattr(reach, "_KUBELET_PORT", server.getsockname()[1])
        yield server


def test_a_node_that_answers_is_reached_from_the_address_that_the_route_gives(
    kubelet: socket.socket,
) -> None:
    assert reach.source_towards("127.0.0.2") is not None


def test_one_that_refuses_is_reached_too(kubelet: socket.socket) -> None:
    assert reach.source_towards("127.0.0.3") is not None


def test_one_that_no_route_leads_to_is_not() -> None:
    # Loopback's broadcast address: the kernel refuses to connect to it.
    assert reach.source_towards("127.255.255.255") is None


def test_what_docker_builds_from_is_all_that_the_dockerfile_copies() -> None:
    files = image._context()
    copied = re.findall(r"^COPY (\S+) ", (ROOT / "probe_image" / "Dockerfile").read_text(), re.M)
    assert len(copied) >= 4
    for source in copied:
        assert any(name == source or name.startswith(f"{source}/") for name in files), source
    assert sum(len(content) for content, _ in files.values()) < 2_000_000


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        (ClusterNeeds(nodes=2), r"--dw-nodes 2; kind delete cluster --name k\)"),
        (ClusterNeeds(proxy_mode=ProxyMode.NFTABLES), "--dw-proxy-mode nftables; kind delete"),
        (ClusterNeeds(min_sync_period_ms=2000), "--dw-min-sync-period 2000ms; kind delete"),
        (ClusterNeeds(kube_version="1.37"), "--kind-image kindest/node:v…; kind delete"),
    ],
)
def test_what_a_runs_cluster_is_not_is_refused_with_how_to_make_it_so(
    needs: ClusterNeeds, told: str
) -> None:
    facts = ClusterFacts(
        provider="kind",
        kube_version="1.34",
        proxy_mode="iptables",
        min_sync_period_ms=1000,
        nodes=1,
    )
    found: Any = SimpleNamespace(provider="kind", name="k", facts=lambda: facts)
    with pytest.raises(ClusterError, match=told):
        refuse(found, needs)
    refuse(found, ClusterNeeds(nodes=1, proxy_mode=ProxyMode.IPTABLES, kube_version="1.34"))


@pytest.mark.parametrize(
    ("ready", "taint", "settled"),
    [
        ("True", None, True),
        ("False", None, False),
        ("True", "node.kubernetes.io/not-ready", False),
        ("True", "node.kubernetes.io/unschedulable", True),
        ("True", "node-role.kubernetes.io/control-plane", True),
    ],
)
def test_a_node_is_settled_when_no_taint_of_its_start_is_left(
    ready: str, taint: str | None, settled: bool
) -> None:
    """Else a worker that is Ready already counts as one that takes no pods."""
    node = SimpleNamespace(
        spec=SimpleNamespace(taints=[SimpleNamespace(key=taint)] if taint else None),
        status=SimpleNamespace(conditions=[SimpleNamespace(type="Ready", status=ready)]),
    )
    assert _is_settled(node) is settled
