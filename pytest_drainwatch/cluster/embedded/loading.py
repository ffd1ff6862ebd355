"""Which images the nodes of a cluster have, and how they are given more."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import runtime
from pytest_drainwatch.cluster.embedded.image import Image
from pytest_drainwatch.cluster.embedded.layout import Layout


class Loaded:
    """The images of one cluster's nodes, each of which has a store of its own."""

    def __init__(
        self, nodes: Sequence[Layout], starting: Sequence[Image], check: Callable[[], None]
    ) -> None:
        """Of *nodes* that import the images *starting* while they start; *check* raises
        ClusterError once a component has died."""
        self._nodes = nodes
        self._starting = starting
        self._check = check
        self._references: set[str] = set()

    def started(self) -> bool:
        """Whether every node has what it was started with."""
        jobs = [runtime.import_name(image.archive) for image in self._starting]
        there = all((node.done / job).exists() for node in self._nodes for job in jobs)
        if there:
            self._references.update(image.reference for image in self._starting)
        return there

    def ensure(self, image: Image) -> str:
        """Give the image to every node that lacks it, and return its reference.

        Raises:
            ClusterError: a node did not take it, or has died.
        """
        if image.reference not in self._references:
            self._check()
            for node in self._nodes:
                self._load(image, node)
            self._references.add(image.reference)
        return image.reference

    def _load(self, image: Image, node: Layout) -> None:
        # containerd's socket lies in the node's private /run; this is the way in.
        socket = f"/proc/{node.node_pid.read_text()}/root{runtime.SOCKET}"
        done = subprocess.run(
            runtime.import_command(socket, image.archive),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            self._check()
            raise ClusterError(
                f"containerd did not take {image.archive}: {done.stderr.strip()}."
                " Expected a whole image archive; delete the file to have it made again."
                f" Whole log: {node.log('containerd')}"
            )
