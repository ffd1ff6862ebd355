"""Somebody else's cluster, as a trial needs it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, ClusterFacts, ClusterSettings, Seat
from pytest_drainwatch.cluster.existing.nodes import Nodes
from pytest_drainwatch.cluster.existing.production import refuse_production
from pytest_drainwatch.cluster.network import NodeNetwork


class ExistingCluster:
    """Somebody else's cluster. See `pytest_drainwatch.cluster.Cluster`."""

    provider = "existing"
    # The route decides: which of the harness's addresses reach the node is not known here.
    source_addresses: tuple[str, ...] = ()

    def __init__(
        self,
        settings: ClusterSettings,
        kubeconfig: Path,
        *,
        name: str,
        nodes: Nodes,
        why: str,
        facts: ClusterFacts,
    ) -> None:
        self._settings = settings
        self._facts = facts
        self.name = name
        self.node_address: str | None = nodes.first
        self.node_addresses: Mapping[str, str] = nodes.addresses
        self.why = why
        self.kubeconfig = kubeconfig
        self.context = settings.context

    def ensure_probe_image(self) -> str:
        if self._settings.probe_image is None:
            raise ClusterError(
                f"no probe image is known for the existing cluster {self.name}: expected a"
                " reference that its nodes can pull. Build probe_image/ and push it, then give"
                " --dw-probe-image REGISTRY/NAME:TAG"
            )
        return self._settings.probe_image

    def load_image(self, archive: Path) -> str:
        raise ClusterError(
            f"cluster {self.name} is not ours, so {archive.name} cannot be loaded into it. Expected"
            " an image that it can pull from a registry. Try: docker load, docker tag, docker push"
        )

    def agent_command(self, argv: Sequence[str]) -> list[str]:
        return list(argv)

    def enter_pod(self, uid: str) -> Seat:
        raise ClusterError(
            f"cluster {self.name} is not ours, so the network of its pod {uid} cannot be entered"
            " from here. Expected access 'nodeport' there, or a cluster of our own for 'clusterip':"
            " --dw-cluster=embedded"
        )

    def killer(self, uid: str, container_id: str) -> Callable[[], None]:
        raise ClusterError(
            f"the nodes of cluster {self.name} cannot be entered from here, and from inside of a"
            f" container of pod {uid} its PID 1 cannot be killed: the kernel drops SIGKILL from its"
            " own PID namespace, so `kubectl exec … kill -9 1` does nothing. Expected a cluster of"
            " our own for trigger 'container-kill': --dw-cluster=embedded or kind"
        )

    def facts(self) -> ClusterFacts:
        return self._facts

    def node_network(self, sources: Collection[str], node: str | None = None) -> NodeNetwork | None:
        """None: somebody else's nodes are not entered."""
        return None

    def admit(self, namespace: str) -> None:
        names = {"namespace": namespace}
        refuse_production(names, self.name, self._settings.allow_context)

    def hasten(self) -> AbstractContextManager[None]:
        return nullcontext()  # it stands alone: trials on it take turns

    def check(self) -> None:
        """Whether it lives is for the watch to see: there is no process to look at."""

    def close(self) -> None:
        """Nothing: it was there before."""

    def detach(self) -> None:
        """Nothing: it stays anyway."""
