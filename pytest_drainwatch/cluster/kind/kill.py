"""The end of a container's PID 1 by a signal from its node: from inside of it none arrives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind.containers import NodeContainer, execute

_KILL = 'grep -q "$1" "/proc/$2/cgroup" && kill -KILL "$2"'
_FIND = ("crictl", "ps", "--state", "running", "--quiet", "--id")
_PID = ("crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}")


def find(
    uid: str, container_id: str, nodes: Sequence[NodeContainer], *, cluster: str
) -> Callable[[], None]:
    """What kills PID 1 of the container *container_id* of the pod *uid* on one of *nodes*.

    Raises:
        ClusterError: none of them runs it, or one cannot be asked.
    """
    for node in nodes:
        if execute(node.name, *_FIND, container_id).strip():
            pid = int(execute(node.name, *_PID, container_id))
            return partial(_kill, node.name, container_id, pid)
    raise ClusterError(
        f"no node of kind cluster {cluster} runs container {container_id[:12]} of pod {uid}:"
        " expected one that runs. See: kubectl get pods --all-namespaces -o wide"
    )


def _kill(node: str, container_id: str, pid: int) -> None:
    """Only if the number is still that container's: it may have come again."""
    execute(node, "sh", "-c", _KILL, "kill", container_id, str(pid))
