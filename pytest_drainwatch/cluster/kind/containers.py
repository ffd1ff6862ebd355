"""kind's nodes as containers: do they run, and what does a program in one of them say."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind.programs import docker

_SEE = "the cluster's node containers to run. See: docker ps --all"


@dataclass(slots=True, eq=False)
class NodeContainer:
    """One node's container.

    `pid` is its first process, as the daemon's machine counts. `alive` is a pidfd of that; None
    where it is no process of this kernel's, or may not be looked at: then nobody can say for
    nothing whether it lives.
    """

    name: str
    pid: int
    alive: int | None

    def ended(self) -> bool:
        """Whether it has ended, as far as that can be seen; costs next to nothing."""
        if self.alive is None:
            return False
        # A pidfd is readable once its process has ended.
        return bool(select.select([self.alive], [], [], 0)[0])

    def forget(self) -> None:
        """Look no more."""
        if self.alive is not None:
            os.close(self.alive)
            self.alive = None


def find_nodes(names: Sequence[str]) -> list[NodeContainer]:
    """The containers of these names. Raises ClusterError if one of them does not run."""
    found: list[dict[str, Any]] = json.loads(docker("inspect", *names, expected=_SEE))
    for each in found:
        if not each["State"]["Running"]:
            raise ClusterError(
                f"node container {each['Name'].lstrip('/')} is {each['State']['Status']}: expected"
                f" {_SEE}. Start it again (docker start), or remove the cluster: kind delete"
                " cluster"
            )
    return [
        NodeContainer(
            name=each["Name"].lstrip("/"),
            pid=each["State"]["Pid"],
            alive=_watch(each["State"]["Pid"], each["Id"]),
        )
        for each in found
    ]


def images_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """The image of each of these containers: as it was asked for, and what Docker calls it."""
    if not names:
        return []
    found: list[dict[str, Any]] = json.loads(docker("inspect", *names, expected=_SEE))
    return [(each["Config"]["Image"], each["Image"]) for each in found]


def execute(node: str, *words: str, said: bytes = b"") -> str:
    """What a program in the node said. Raises ClusterError."""
    return docker("exec", "--interactive", node, *words, expected=_SEE, said=said)


def _watch(pid: int, container: str) -> int | None:
    """A pidfd, if the daemon's process *pid* is the one that this kernel calls so."""
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
    try:
        if container in Path(f"/proc/{pid}/cgroup").read_text():
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
