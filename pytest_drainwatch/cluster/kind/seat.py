"""A seat inside of a pod of a kind node: its network namespace, entered from this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from pytest_drainwatch.cluster import ClusterError, Seat
from pytest_drainwatch.cluster.kind.containers import NodeContainer, execute
from pytest_drainwatch.cluster.kind.programs import run

_LINK = "eth0"
_PID = "{{.info.pid}}"


def take(uid: str, containers: Sequence[NodeContainer], *, cluster: str) -> tuple[Seat, str]:
    """A seat in the pod *uid*, with the pod's one address; and the name of its node.

    Raises:
        ClusterError: this user may not enter it, the nodes run on another machine, or no such
            pod runs.
    """
    if os.geteuid() != 0 or any(container.alive is None for container in containers):
        raise ClusterError(
            f"the network of pod {uid} of kind cluster {cluster} cannot be entered: expected root,"
            " on the machine whose kernel runs the nodes. Use access 'nodeport', or the embedded"
            " cluster: --dw-cluster=embedded"
        )
    for container in containers:
        if sandbox := _sandbox(container.name, uid):
            break
    else:
        raise ClusterError(
            f"no sandbox of pod {uid} runs in kind cluster {cluster}: expected a pod that is"
            " Running. See: kubectl get pods --all-namespaces -o wide"
        )
    words = ("crictl", "inspectp", "--output", "go-template", "--template", _PID, sandbox)
    pid = execute(container.name, *words).strip()
    # The node counts processes from its own first one on.
    space = f"/proc/{container.pid}/root/proc/{pid}/ns/net"
    prefix = ("nsenter", f"--net={space}", "--")
    address = _address(prefix, uid)
    note = f"client pod {address}: flows and probers share its one address"
    return Seat(prefix=prefix, addresses=(address,), note=note), container.name


def _sandbox(node: str, uid: str) -> str | None:
    label = f"io.kubernetes.pod.uid={uid}"
    listed = execute(node, "crictl", "pods", "--state", "ready", "--label", label, "--quiet")
    return next(iter(listed.split()), None)


def _address(prefix: Sequence[str], uid: str) -> str:
    shown = run(
        [*prefix, "ip", "-json", "-4", "address", "show", "dev", _LINK],
        expected="a pod that runs on, and iproute2",
    )
    for link in json.loads(shown):
        for info in link.get("addr_info", ()):
            return str(info["local"])
    raise ClusterError(
        f"pod {uid} has no address on {_LINK}: expected one of the pods' own network. Leave out"
        " hostNetwork"
    )
