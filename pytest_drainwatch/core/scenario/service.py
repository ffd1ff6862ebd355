"""The way from a client to a pod: the Service, and from where it is reached."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.scenario.balancer import LoadBalancer
from pytest_drainwatch.core.scenario.values import ScenarioError, become, check_kind


class Access(StrEnum):
    """By which address the Service is reached, and so from where."""

    NODE_PORT = "nodeport"  # from outside of the cluster
    LOAD_BALANCER = "loadbalancer"  # from outside, by an address that the cluster is given for it
    CLUSTER_IP = "clusterip"  # from a pod of the cluster


class TrafficPolicy(StrEnum):
    """externalTrafficPolicy: to the pods of every node, or of the node that was asked."""

    CLUSTER = "Cluster"
    LOCAL = "Local"


class Affinity(StrEnum):
    """sessionAffinity: whether a client's connections all lead to one pod."""

    NONE = "None"
    CLIENT_IP = "ClientIP"


class ViaNode(StrEnum):
    """Whose NodePort is connected to, seen from the pod that is terminated."""

    ANY = "any"  # whichever the cluster names first
    TARGET_NODE = "target-node"  # that of the node on which it runs
    OTHER_NODE = "other-node"  # that of a node on which it does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The Service in front of the probe, in Kubernetes' own words.

    ``via_node`` chooses the way by choosing the pod: of those that could be terminated the
    first to go is one that makes it true. ``balancer`` is put between the client and the nodes;
    None: nothing is.
    """

    access: Access = Access.NODE_PORT
    external_traffic_policy: TrafficPolicy = TrafficPolicy.CLUSTER
    session_affinity: Affinity = Affinity.NONE
    publish_not_ready_addresses: bool = False
    via_node: ViaNode = ViaNode.ANY
    balancer: LoadBalancer | None = None

    def __post_init__(self) -> None:
        become(self, "access", Access)
        become(self, "external_traffic_policy", TrafficPolicy)
        become(self, "session_affinity", Affinity)
        become(self, "via_node", ViaNode)
        check_kind("publish_not_ready_addresses", self.publish_not_ready_addresses, bool)
        check_kind("balancer", self.balancer, LoadBalancer, None)

    def check(self) -> None:
        """Refuse what cannot be together. Raises :class:`ScenarioError`."""
        inside = self.access is Access.CLUSTER_IP
        if inside and self.external_traffic_policy is TrafficPolicy.LOCAL:
            raise ScenarioError(
                "external_traffic_policy is 'Local' and access 'clusterip': the policy is about "
                "traffic from outside, which a ClusterIP has none of; expected access 'nodeport'"
            )
        if inside and self.via_node is not ViaNode.ANY:
            raise ScenarioError(
                f"via_node is {str(self.via_node)!r} and access 'clusterip': a ClusterIP is "
                "reached in the client's own node; expected access 'nodeport'"
            )

        local = self.external_traffic_policy is TrafficPolicy.LOCAL
        if local and self.via_node is ViaNode.OTHER_NODE:
            raise ScenarioError(
                "via_node is 'other-node' and external_traffic_policy 'Local': a node leads to its "
                "own pods alone, so no flow would lead to the one that is terminated; expected "
                "via_node 'target-node', or the policy 'Cluster'"
            )
        if self.balancer is not None:
            self.balancer.check()
            self._check_balanced()

    def _check_balanced(self) -> None:
        if self.access is not Access.NODE_PORT:
            raise ScenarioError(
                f"a balancer is asked for and access {str(self.access)!r}: its servers are the "
                "nodes' NodePorts; expected access 'nodeport'"
            )
        if self.via_node is not ViaNode.ANY:
            raise ScenarioError(
                f"a balancer is asked for and via_node {str(self.via_node)!r}: it chooses the node "
                "of each connection; expected via_node 'any'"
            )
        if self.session_affinity is not Affinity.NONE:
            raise ScenarioError(
                "a balancer is asked for and session_affinity 'ClientIP': kube-proxy sees one "
                "client, the balancer; expected 'None'"
            )

    def unusual(self) -> dict[str, object]:
        """What a report says of it only where it is asked for."""
        told: dict[str, object] = {}
        if self.via_node is not ViaNode.ANY:
            told["via_node"] = str(self.via_node)
        if self.balancer is not None:
            told["balancer"] = self.balancer.config()
        return told
