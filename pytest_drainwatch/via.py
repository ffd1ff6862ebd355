"""Through which node a trial's connections enter the cluster, and where its pods run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.core.scenario import ViaNode
from pytest_drainwatch.trigger import Pod

UNKNOWN = (
    "this cluster does not say whose NodePort it leads to: expected one whose nodes are known"
    " (--dw-cluster=embedded or kind, or an existing one whose nodes may be listed and whose"
    " NodePorts are connected to, without --dw-address)"
)


def entered(addresses: Mapping[str, str], address: str) -> str | None:
    """The name of the node whose NodePorts answer at ``address``; None: not known."""
    return next((name for name, known in addresses.items() if known == address), None)


def others(addresses: Mapping[str, str], address: str) -> tuple[tuple[str, str], ...]:
    """Name and address of every other node."""
    return tuple((name, known) for name, known in addresses.items() if known != address)


def fitting(
    pods: Sequence[Pod], via: ViaNode, node: str | None, theirs: str | None = None
) -> tuple[Pod, ...]:
    """The same pods, those first whose end makes ``via`` true of the way through ``node``.

    ``theirs`` is the namespace of a workload of the user's, here and below.
    Raises ClusterError if there is none, or nobody knows.
    """
    if via is ViaNode.ANY:
        return tuple(pods)
    if node is None or all(pod.node is None for pod in pods):
        raise ClusterError(f"via_node is {str(via)!r}, and {UNKNOWN}")

    def fits(pod: Pod) -> bool:
        return pod.node is not None and (pod.node == node) is (via is ViaNode.TARGET_NODE)

    if not any(map(fits, pods)):
        where = ", ".join(f"{pod.name} on {pod.node}" for pod in pods)
        raise ClusterError(
            f"via_node is {str(via)!r} and connections enter at node {node}, but the pods are"
            f" {where}: expected one {'there' if via is ViaNode.TARGET_NODE else 'elsewhere'}. "
            + _advice(
                theirs,
                "Ask for two nodes or more (--dw-nodes 2), and for pods on each of them"
                " (App(spread_over_nodes=True), as many replicas)",
            )
        )
    return tuple(sorted(pods, key=lambda pod: not fits(pod)))


def local(pods: Sequence[Pod], node: str | None, theirs: str | None = None) -> tuple[Pod, ...]:
    """The same pods, those on ``node`` first: with externalTrafficPolicy Local it leads to them
    alone. Raises ClusterError if it has none. Where nodes are not known nothing is.
    """
    if node is None or all(pod.node is None for pod in pods):
        return tuple(pods)
    if all(pod.node != node for pod in pods):
        where = ", ".join(f"{pod.name} on {pod.node}" for pod in pods)
        raise ClusterError(
            f"external_traffic_policy is 'Local' and connections enter at node {node}, but the"
            f" pods are {where}: expected one there, or none of them is reached. "
            + _advice(
                theirs,
                "Ask for App(spread_over_nodes=True) and as many replicas as nodes, or for one"
                " node",
                ", or reach a node that has one (--dw-address NODE)",
            )
        )
    return tuple(sorted(pods, key=lambda pod: pod.node != node))


def check_local(pods: Sequence[Pod], nodes: Sequence[str], theirs: str | None = None) -> None:
    """Raise ClusterError unless each of the nodes that are tried has a pod.

    With externalTrafficPolicy Local nobody would ever be answered at one that has none.
    """
    if without := [node for node in nodes if node not in {pod.node for pod in pods}]:
        raise ClusterError(
            f"probe_each_node is True, external_traffic_policy 'Local', and no pod is on"
            f" {', '.join(without)}: expected one on each node that is tried. "
            + _advice(
                theirs, f"Ask for App(spread_over_nodes=True) and {len(nodes)} replicas or more"
            )
        )


def check_each_node(node: str | None) -> None:
    """Raise ClusterError if nobody knows which ``node`` the way leads to, and so the others."""
    if node is None:
        raise ClusterError(f"probe_each_node is True, and {UNKNOWN}")


def _advice(theirs: str | None, ours: str, else_theirs: str = "") -> str:
    """What to do about where pods run: the probe's can be asked for elsewhere."""
    if theirs is None:
        return ours
    return (
        f"Look at: kubectl -n {theirs} get pods -o wide; spread them"
        f" (topologySpreadConstraints, a replica or more for each node){else_theirs}"
    )
