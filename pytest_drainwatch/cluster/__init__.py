"""WHERE a trial runs: the one small interface behind which every cluster hides.

A trial needs a few things of a cluster and no more: a kubeconfig, an address where
NodePorts answer, addresses to connect from, the probe image, a way to start the flow
agent here or inside of a pod, and the facts that belong in a report. Whoever offers
these is a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_drainwatch.cluster.network import NodeNetwork

if TYPE_CHECKING:
    from pytest_drainwatch.api import Api

PROVIDERS = ("embedded", "kind", "existing")
# kube-proxy's modes, and the minSyncPeriod (ms) that each has where nobody sets one.
PROXY_MODES = {"iptables": 1000, "nftables": 1000, "ipvs": 0}

Log = Callable[[str], None]
# Takes back what dead runs left changed of the nodes, before it is read what they are; returns
# whether there was anything.
Tidy = Callable[["Api"], bool]


class ClusterError(Exception):
    """A cluster could not be started, reached or used.

    The message says what happened, what was expected and the next command to type.
    """


class NotOnThisMachine(ClusterError):
    """This machine's kernel cannot do what was asked for; another one may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """What a scenario asks of its cluster. Hashable: pools are keyed by it.

    Attributes:
        provider: one of `PROVIDERS`, already chosen (see `opening.choose_provider`).
        kube_version: minor version of Kubernetes, for the embedded cluster.
        proxy_mode: kube-proxy's mode, one of `PROXY_MODES`, for the embedded cluster.
        min_sync_period_ms: kube-proxy's minSyncPeriod; `PROXY_MODES` has Kubernetes' own
            default of each mode.
        nodes: how many nodes take pods, of a cluster that is made.
        kind_image: the node image of a kind cluster that is made; `None` is kind's own.
        kube_bin: a ready kubenode binary to use instead of building one.
        kubeconfig: for an existing cluster; `None` is kubectl's own default.
        context: for an existing cluster; `None` is the kubeconfig's current context.
        probe_image: an image reference that an existing cluster can pull.
        allow_context: the context that may be used although it looks like production.
    """

    provider: str = "embedded"
    kube_version: str = "1.37"
    proxy_mode: str = "iptables"
    min_sync_period_ms: int = 1000
    nodes: int = 1
    kind_image: str | None = None
    kube_bin: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    probe_image: str | None = None
    allow_context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What only the cluster's provider knows; the rest a report asks the API for.

    `None` is "not known", never a default.

    Attributes:
        provider: one of `PROVIDERS`.
        kube_version: minor version of Kubernetes, such as `1.37`.
        proxy_mode: kube-proxy's mode.
        min_sync_period_ms: kube-proxy's minSyncPeriod.
        nodes: how many take pods: Ready, not cordoned, without a taint that keeps pods away.
        cgroup: `v1`, `v2` or `hybrid`.
        deviations: every setting in which this cluster differs from Kubernetes'
            defaults, each a sentence that names the setting and the reason.
    """

    provider: str
    kube_version: str | None = None
    proxy_mode: str | None = None
    min_sync_period_ms: int | None = None
    nodes: int | None = None
    cgroup: str | None = None
    deviations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A place inside of a pod from which the flow agent connects. It ends with the pod.

    Attributes:
        prefix: the words before a command that make it run there.
        addresses: the pod's own address first, then further ones that are its alone,
            so that a prober does not use up the flows' ICMP allowance (FACTS K13).
        note: what was changed in the pod for it, as a deviation for the report.
    """

    prefix: tuple[str, ...]
    addresses: tuple[str, ...]
    note: str

    def command(self, argv: Sequence[str]) -> list[str]:
        """The local command line that runs *argv* there."""
        return [*self.prefix, *argv]


class Cluster(Protocol):
    """A running cluster. `close` may be called more than once."""

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str: ...

    @property
    def why(self) -> str:
        """Why this provider was chosen, for the header and the report."""
        ...

    @property
    def kubeconfig(self) -> Path: ...

    @property
    def context(self) -> str | None: ...

    @property
    def node_address(self) -> str | None:
        """Where NodePorts answer, reachable from the harness; None: it may not be asked for."""
        ...

    @property
    def node_addresses(self) -> Mapping[str, str]:
        """Where NodePorts answer on each node that takes pods, by the node's name.

        Empty where only one address is known, such as a load balancer's.
        """
        ...

    @property
    def source_addresses(self) -> tuple[str, ...]:
        """Addresses of the harness to connect from; empty: let the system choose."""
        ...

    def ensure_probe_image(self) -> str:
        """Make the probe image known to the cluster and return its reference.

        Raises:
            ClusterError: the image can't be built, loaded or named.
        """
        ...

    def load_image(self, archive: Path) -> str:
        """Make the image in *archive* known to every node, and return its reference.

        Args:
            archive: one image, as `docker save` writes it.

        Raises:
            ClusterError: it is no such archive, or this cluster takes images from registries only.
        """
        ...

    def agent_command(self, argv: Sequence[str]) -> list[str]:
        """The local command line that runs *argv* where `node_address` answers."""
        ...

    def enter_pod(self, uid: str) -> Seat:
        """A seat in the network of the running pod *uid*.

        Raises:
            ClusterError: this cluster cannot offer one, or no such pod runs there.
        """
        ...

    def killer(self, uid: str, container_id: str) -> Callable[[], None]:
        """What kills PID 1 of a container of the pod *uid* with SIGKILL, from its node.

        It is found now, so that the kill is one call: that raises ClusterError if it has ended.
        *container_id* is the runtime's, without its scheme.

        Raises:
            ClusterError: no such container runs, or this cluster's nodes cannot be entered.
        """
        ...

    def facts(self) -> ClusterFacts: ...

    def node_network(self, sources: Collection[str], node: str | None = None) -> NodeNetwork | None:
        """Look at a node's rules, and at the connections that *sources* opened.

        *node* is its name; `None`: the one of `node_address`, or if *sources* are a pod's its own.
        It takes tens of milliseconds and raises nothing: an answer tells its own problem.
        `None`: the nodes of this cluster cannot be looked into.
        """
        ...

    def admit(self, namespace: str) -> None:
        """Raise ClusterError if no trial may run in this namespace, which is not the trial's own.

        In a cluster that is made for trials every one will do.
        """
        ...

    def hasten(self) -> AbstractContextManager[None]:
        """While it holds, this cluster comes first on a machine that carries several of ours."""
        ...

    def check(self) -> None:
        """Raise ClusterError if the cluster has died since it was opened."""
        ...

    def close(self) -> None: ...

    def detach(self) -> None:
        """Leave the cluster running when this process ends, instead of closing it."""
        ...
