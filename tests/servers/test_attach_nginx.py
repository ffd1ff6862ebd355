"""`drainwatch attach` on somebody's nginx, without and with a preStop sleep: the difference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.http.document import KindRequests
from pytest_drainwatch.core.http.ending import LaneKind
from scenarios.servers.images import NGINX, NotHad
from scenarios.servers.running import Server

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SLEEP = {"preStop": {"sleep": {"seconds": 3}}}
TWO_OF_THEM = Server(name="nginx", image=NGINX, replicas=2)


def attach(cluster: Cluster, server: Server, folder: Path) -> tuple[KindRequests, str]:
    """What requests over new connections met in a rollout, and what was printed."""
    try:
        with server.running(cluster, print) as namespace:
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "pytest_drainwatch", "attach", "deployment/nginx"),
                    *("--namespace", namespace, "--protocol", "http", "--trigger", "rollout"),
                    *("--new", "8", "--rate-hz", "20", "--settle", "4s", "--out", str(folder)),
                    *("--cluster", "existing", "--kubeconfig", str(cluster.kubeconfig)),
                ],
                capture_output=True,
                text=True,
                check=False,
                timeout=180,
            )
    except NotHad as reason:
        pytest.skip(str(reason))
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (folder / "latest").glob("*/r00/report.json")
    found = report.loads(path.read_text()).trial.requests
    assert found is not None
    (kind,) = (each for each in found.kinds if each.kind is LaneKind.NEW)
    return kind, done.stdout


def test_a_sleep_is_the_difference(dw_cluster: Cluster, tmp_path: Path) -> None:
    """Failed requests with their window and count; and none of so many."""
    without, told = attach(dw_cluster, TWO_OF_THEM, tmp_path / "without")
    assert without.failing is not None, told
    assert f"{without.failed} of " in told
    assert "first failure at" in told
    hooked, told = attach(dw_cluster, TWO_OF_THEM.with_(lifecycle=SLEEP), tmp_path / "hooked")
    assert hooked.failed == 0, told
    assert f"no request of {hooked.attempts:,} failed" in told
