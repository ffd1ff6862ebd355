"""A running kind cluster, whoever made it, as trials see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, ApiUnavailable, connect, explain, failures
from pytest_drainwatch.cluster import (
    ClusterError,
    ClusterFacts,
    ClusterSettings,
    Log,
    Seat,
    Tidy,
)
from pytest_drainwatch.cluster.embedded import netstate
from pytest_drainwatch.cluster.embedded.archive import reference_of
from pytest_drainwatch.cluster.embedded.image import Image
from pytest_drainwatch.cluster.existing import nodes as api_nodes
from pytest_drainwatch.cluster.existing import proxy_configuration
from pytest_drainwatch.cluster.kind import image, kill, reach, seat
from pytest_drainwatch.cluster.kind.containers import NodeContainer, execute, find_nodes
from pytest_drainwatch.cluster.kind.programs import Kind
from pytest_drainwatch.cluster.network import NodeNetwork

READY_TIMEOUT_S = 180.0
_POLL_S = 0.25
# Taints that the control plane sets and takes away by itself.
_LIFECYCLE = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A kind cluster that was made.

    Attributes:
        name: kind's name of it.
        kubeconfig: a file whose current context is the cluster.
        kind: the program that made it.
        end: what removes it; `None`: that is somebody else's to do.
        leave: what is to be done instead of that if it is to stay; `None`: nothing.
    """

    name: str
    kubeconfig: Path
    kind: Kind
    end: Callable[[], None] | None = None
    leave: Callable[[], None] | None = None


class KindCluster:
    """See `pytest_drainwatch.cluster.Cluster`."""

    provider = "kind"
    context: str | None = None

    def __init__(
        self,
        given: Given,
        settings: ClusterSettings,
        *,
        why: str,
        log: Log,
        containers: Sequence[NodeContainer],
        nodes: api_nodes.Nodes,
        facts: ClusterFacts,
        folder: Path | None,
    ) -> None:
        self.name = given.name
        self.kubeconfig = given.kubeconfig
        self.why = why
        self._given = given
        self._settings = settings
        self._log = log
        self._containers = list(containers)
        self._folder = folder
        self._facts = facts
        self._image: Image | str | None = None
        self._loaded: set[str] = set()
        self._seats: dict[str, str] = {}  # a pod's address, and its node
        self._clock_checked = False
        self.node_addresses: Mapping[str, str] = nodes.addresses
        # A node's name is that of its container.
        self._node, self.node_address = next(iter(self.node_addresses.items()))
        source = reach.source_towards(self.node_address)
        self._reached = source is not None
        self.source_addresses: tuple[str, ...] = (source or self.node_address,)
        if not self._reached:
            self._facts = replace(
                facts,
                deviations=(
                    *facts.deviations,
                    f"flow agent: runs in the network of node {self._node}, whose address does"
                    " not answer from the harness (Docker is rootless or on another machine); the"
                    " NodePort is asked from the node itself",
                ),
            )

    def ensure_probe_image(self) -> str:
        if given := self._settings.probe_image:
            if image.in_daemon(given):
                self._load_from_daemon(given)
            return given
        if self._image is None:
            self._image = image.built_or_made(self._log)
        if isinstance(self._image, Image):
            return self._load_archive(self._image.reference, self._image.archive)
        return self._load_from_daemon(self._image)

    def load_image(self, archive: Path) -> str:
        return self._load_archive(reference_of(archive), archive)

    def agent_command(self, argv: Sequence[str]) -> list[str]:
        """*argv* itself, or the same in the node's network if only that reaches the node.

        There it sees nothing of this machine's files but the run's folder.
        """
        if self._reached:
            return list(argv)
        self.ensure_probe_image()
        reference = self._settings.probe_image or image.load_into_daemon(self._image or "")
        if not self._clock_checked:
            reach.check_clock(self._node, reference)
            self._clock_checked = True
        return reach.inside(self._node, reference, self._folder, argv)

    def enter_pod(self, uid: str) -> Seat:
        taken, node = seat.take(uid, self._containers, cluster=self.name)
        self._seats |= dict.fromkeys(taken.addresses, node)
        return taken

    def killer(self, uid: str, container_id: str) -> Callable[[], None]:
        self.check()
        return kill.find(uid, container_id, self._containers, cluster=self.name)

    def facts(self) -> ClusterFacts:
        return self._facts

    def node_network(self, sources: Collection[str], node: str | None = None) -> NodeNetwork | None:
        # What a pod sends to a Service is translated on the pod's own node.
        seated = next((self._seats[each] for each in sources if each in self._seats), self._node)
        into = ("docker", "exec", node or seated)
        return netstate.look(into, self._facts.proxy_mode, sources)

    def admit(self, namespace: str) -> None:
        """Every one: real users are nowhere in it."""

    def hasten(self) -> AbstractContextManager[None]:
        return nullcontext()  # it stands alone: trials on it take turns

    def check(self) -> None:
        for container in self._containers:
            if container.ended():
                raise ClusterError(
                    f"node {container.name} of kind cluster {self.name} has ended: expected its"
                    f" container to run on. See: docker logs {container.name}; the next run makes"
                    f" a new one after: kind delete cluster --name {self.name}"
                )

    def close(self) -> None:
        for container in self._containers:
            container.forget()
        self._containers.clear()
        if self._given.end is not None:
            self._given.end()

    def detach(self) -> None:
        for container in self._containers:
            container.forget()
        self._containers.clear()
        if self._given.leave is not None:
            self._given.leave()

    def _load_archive(self, reference: str, archive: Path) -> str:
        if self._lacks(reference):
            self._log(f"loading {reference} into kind cluster {self.name}")
            self._given.kind.load_archive(self.name, archive)
            self._loaded.add(reference)
        return reference

    def _load_from_daemon(self, reference: str) -> str:
        if self._lacks(reference):
            self._log(f"loading {reference} into kind cluster {self.name}")
            self._given.kind.load_docker_image(self.name, reference)
            self._loaded.add(reference)
        return reference

    def _lacks(self, reference: str) -> bool:
        """Whether a node is without it; another worker may have loaded it meanwhile."""
        if reference in self._loaded:
            return False
        names = [container.name for container in self._containers]
        if all(image.in_node(reference, execute, name) for name in names):
            self._loaded.add(reference)
            return False
        return True


def reach_kind(
    given: Given,
    settings: ClusterSettings,
    *,
    why: str,
    log: Log,
    folder: Path | None = None,
    tidy: Tidy | None = None,
) -> KindCluster:
    """Wait until the cluster's nodes are Ready, and look what it is.

    Args:
        given: the cluster.
        settings: `probe_image` is what counts here; the rest was for whoever made it.
        why: see `open_cluster`.
        log: see `open_cluster`.
        folder: the run's folder, for an agent that must run in a container.
        tidy: see `open_cluster`.

    Raises:
        ClusterError: it does not run, does not answer, or its nodes do not become Ready.
    """
    containers = find_nodes(given.kind.nodes(given.name))
    try:
        api = connect(given.kubeconfig, None)
    except ApiUnavailable as error:
        raise ClusterError(str(error)) from error
    try:
        nodes = _ready_nodes(api, given, len(containers), tidy)
        facts = _facts(api, nodes)
    finally:
        api.close()
    return KindCluster(
        given,
        settings,
        why=why,
        log=log,
        containers=containers,
        nodes=nodes,
        facts=facts,
        folder=folder,
    )


def _ready_nodes(
    api: Api, given: Given, expected: int, tidy: Tidy | None = None
) -> api_nodes.Nodes:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        items, problem = [], ""
        try:
            items = api.core.list_node(_request_timeout=REQUEST_TIMEOUT).items
        except failures() as error:
            problem = explain(error)
        ready = sum(map(_is_settled, items))
        if tidy is not None and ready >= expected:
            taken_back, tidy = tidy(api), None
            if taken_back:
                continue
        found = api_nodes.read(items)
        if ready >= expected and found.addresses:
            return found
        if time.monotonic() > deadline:
            seen = problem or f"{ready} of {expected} nodes are Ready"
            raise ClusterError(
                f"kind cluster {given.name} is not whole after {READY_TIMEOUT_S:.0f} s: {seen}."
                " Expected every node to become Ready, one of them free of taints. See: kubectl"
                f" --kubeconfig {given.kubeconfig} get nodes -o wide; to begin anew: kind delete"
                f" cluster --name {given.name}"
            )
        time.sleep(_POLL_S)


def _is_settled(node: Any) -> bool:
    """Ready, and told so by everybody: the taint "not-ready" goes a moment after it is.

    A node that was cordoned is so on purpose.
    """
    taints = {str(taint.key) for taint in node.spec.taints or ()} - {api_nodes.CORDONED}
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or ())
    return ready and not any(key.startswith(_LIFECYCLE) for key in taints)


def _facts(api: Api, nodes: api_nodes.Nodes) -> ClusterFacts:
    facts = ClusterFacts(provider=KindCluster.provider, nodes=nodes.taking)
    with suppress(Exception):  # an odd answer is no answer
        version = str(api.version.get_code().git_version)
        facts = replace(facts, kube_version=".".join(version.lstrip("v").split(".")[:2]))
    with suppress(Exception):
        mode, period_ms = proxy_configuration(api)
        facts = replace(facts, proxy_mode=mode, min_sync_period_ms=period_ms)
    return facts
