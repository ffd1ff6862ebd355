"""The way from a client to a pod: the Service, and from where it is reached."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.scenario.values import ScenarioError, become, check_kind


class Access(StrEnum):
    """By which address the Service is reached, and so from where."""

    NODE_PORT = "nodeport"  # from outside of the cluster
    CLUSTER_IP = "clusterip"  # from a pod of the cluster


class TrafficPolicy(StrEnum):
    """externalTrafficPolicy: to the pods of every node, or of the node that was asked."""

    CLUSTER = "Cluster"
    LOCAL = "Local"


class Affinity(StrEnum):
    """sessionAffinity: whether a client's connections all lead to one pod."""

    NONE = "None"
    CLIENT_IP = "ClientIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The Service in front of the probe, in Kubernetes' own words."""

    access: Access = Access.NODE_PORT
    external_traffic_policy: TrafficPolicy = TrafficPolicy.CLUSTER
    session_affinity: Affinity = Affinity.NONE
    publish_not_ready_addresses: bool = False

    def __post_init__(self) -> None:
        become(self, "access", Access)
        become(self, "external_traffic_policy", TrafficPolicy)
        become(self, "session_affinity", Affinity)
        check_kind("publish_not_ready_addresses", self.publish_not_ready_addresses, bool)

    def check(self) -> None:
        """Refuse what cannot be together. Raises :class:`ScenarioError`."""
        inside = self.access is Access.CLUSTER_IP
        if inside and self.external_traffic_policy is TrafficPolicy.LOCAL:
            raise ScenarioError(
                "external_traffic_policy is 'Local' and access 'clusterip': the policy is about "
                "traffic from outside, which a ClusterIP has none of; expected access 'nodeport'"
            )
