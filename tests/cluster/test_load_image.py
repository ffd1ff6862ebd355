"""Images from archives: loaded once, and ended by the signal that they name (case C23)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.api import connect
from pytest_drainwatch.cluster import Cluster, ClusterError
from pytest_drainwatch.cluster.embedded.image import package_image
from pytest_drainwatch.cluster.embedded.rootfs import PROBE
from pytest_drainwatch.workload.namespace import trial_namespace

pytestmark = pytest.mark.cluster

NAME = "signalled"
ON_USR1, ON_TERM = 41, 42
PROGRAM = f"""
import signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit({ON_USR1}))
signal.signal(signal.SIGTERM, lambda *_: sys.exit({ON_TERM}))
while True:
    signal.pause()
"""


STARTED = """
import sys
caught = [line for line in open("/proc/1/status") if line.startswith("SigCgt")][0]
sys.exit(not int(caught.split()[1], 16) >> 14 & 1)
"""


def pod(reference: str) -> dict[str, Any]:
    container = {
        "name": NAME,
        "image": reference,
        "command": ["python3", "-c", PROGRAM],
        # Without it the pod runs before its program has handlers.
        "startupProbe": {
            "exec": {"command": ["python3", "-c", STARTED]},
            "periodSeconds": 1,
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
        },
    }


def exit_code(cluster: Cluster, reference: str) -> int:
    """What a pod of that image ends with when it is deleted."""
    from kubernetes import watch

    api = connect(cluster.kubeconfig, cluster.context)
    code = None
    try:
        own = f"dw-signalled-{reference[-6:]}"
        with trial_namespace(api, own, keep=lambda: False, say=print) as name:
            api.core.create_namespaced_pod(name, pod(reference))
            deleted = False
            stream = watch.Watch().stream(api.core.list_namespaced_pod, name, timeout_seconds=60)
            for event in stream:
                status = (event["object"].status.container_statuses or [None])[0]
                if status is not None and status.state.terminated is not None:
                    code = status.state.terminated.exit_code
                if status is not None and status.started and not deleted:
                    deleted = True
                    api.core.delete_namespaced_pod(NAME, name)
                if event["type"] == "DELETED":
                    break
    finally:
        api.close()
    assert code is not None, "the pod did not end"
    return int(code)


@pytest.mark.parametrize(
    ("stop_signal", "code"), [("SIGUSR1", ON_USR1), (None, ON_TERM)], ids=["named", "default"]
)
def test_a_container_is_ended_by_the_signal_that_its_image_names(
    dw_cluster: Cluster, stop_signal: str | None, code: int
) -> None:
    name = f"docker.io/drainwatch/{NAME}"
    image = package_image(name, PROBE, print, stop_signal=stop_signal)
    reference = dw_cluster.load_image(image.archive)
    assert reference == image.reference
    assert dw_cluster.load_image(image.archive) == reference
    assert exit_code(dw_cluster, reference) == code


def test_what_is_no_image_is_refused(dw_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "text.tar").write_text("hello")
    with pytest.raises(ClusterError, match="no image archive"):
        dw_cluster.load_image(tmp_path / "text.tar")
