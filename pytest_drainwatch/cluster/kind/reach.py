"""From where a node's address answers: from here, or only from the node's own network.

Docker's bridge is a network of the machine on which the daemon runs its containers. A rootless
daemon's is not this machine's, and that of Docker Desktop is a virtual machine's.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind.programs import SLOW_S, docker, run

# The kubelet listens there on every node.
_KUBELET_PORT = 10250
_TIMEOUT_S = 2.0
_WHICH_CLOCK = "from pytest_drainwatch.flows.clockid import clock_id; print(clock_id())"
_NEEDED = (
    "the probe's image to run in the network of a kind node, since the node's address does not"
    " answer from here. See: docker ps; or run pytest itself in a container of that network:"
    " docker run --network kind …"
)


def source_towards(address: str) -> str | None:
    """Which of this machine's addresses connects to the node; None: it cannot be reached."""
    try:
        with socket.create_connection((address, _KUBELET_PORT), timeout=_TIMEOUT_S) as connection:
            return str(connection.getsockname()[0])
    except ConnectionRefusedError:
        return _routed(address)
    except OSError:
        return None


def _routed(address: str) -> str | None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as unsent:
        try:
            unsent.connect((address, _KUBELET_PORT))
        except OSError:
            return None
        return str(unsent.getsockname()[0])


def inside(node: str, image: str, folder: Path | None, argv: Sequence[str]) -> list[str]:
    """The local command line that runs a Python program in the network of *node*.

    Its first word, a Python of this machine's, becomes that of the image. *folder*, in which it
    writes, is seen there under the same name. It ends with this command's stdin.
    """
    mount = ["--volume", f"{folder}:{folder}"] if folder is not None else []
    # A rootless daemon's root is the user who runs it; else files must be this user's.
    user = [] if _rootless() else ["--user", f"{os.getuid()}:{os.getgid()}"]
    return [
        *("docker", "run", "--rm", "--interactive", "--network", f"container:{node}"),
        *("--cap-add", "SYS_NICE", "--workdir", "/", *user, *mount),
        *("--entrypoint", "python3", image, *argv[1:]),
    ]


def check_clock(node: str, image: str) -> None:
    """Raise ClusterError unless what runs in the node's network reads the harness's clock.

    A virtual machine has a clock of its own, on which no flow can be placed in time.
    """
    here = run([sys.executable, "-c", _WHICH_CLOCK], expected="a Linux that names its clock")
    there = run(
        inside(node, image, None, [sys.executable, "-c", _WHICH_CLOCK]),
        expected=_NEEDED,
        timeout_s=SLOW_S,
    )
    if there != here:
        raise ClusterError(
            f"node {node} does not answer from here, and its machine reads another clock"
            f" ({there.strip()}) than this one ({here.strip()}): expected one kernel for both, so"
            " that flows and trigger can be put in order. Run pytest itself in a container of that"
            " network: docker run --network kind …; or use a Docker daemon of this machine"
        )


def _rootless() -> bool:
    return "rootless" in docker(
        *("info", "--format", "{{.SecurityOptions}}"), expected="a Docker daemon that answers"
    )
