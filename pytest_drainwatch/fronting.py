"""The way through a load balancer: HAProxy, started here, in front of the nodes' NodePorts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pytest_drainwatch import preflight
from pytest_drainwatch.balancers import Asked, Front, Server
from pytest_drainwatch.balancers.config import room
from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.core.scenario import TrafficPolicy
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.standing import Insist
from pytest_drainwatch.way import Way
from pytest_drainwatch.workload import probe

LOOPBACK = "127.0.0.1"
# Beyond what the checks themselves take.
CHECKS_TIMEOUT_S = 10.0
# Why the node's connections are not looked at.
NOT_THEIRS = (
    "the connections that a node tracks are the load balancer's own, and tell nothing of the "
    "flows behind it"
)


@contextmanager
def fronted(stage: Stage, way: Way, ports: probe.Ports) -> Iterator[Way]:
    """The same way, through the balancer that the scenario asks for, if it does.

    Raises ClusterError where none can be put there, and BalancerFailed if it does not start.
    """
    balancer = stage.scenario.service.balancer
    if balancer is None:
        yield way
        return
    local = stage.scenario.service.external_traffic_policy is TrafficPolicy.LOCAL
    if local and ports.health is None:
        raise ClusterError(
            "the Service has externalTrafficPolicy Local and no healthCheckNodePort: expected one, "
            "at which a load balancer asks. Look at: kubectl -n "
            f"{stage.namespace} get service -o yaml"
        )
    front = Front(
        Asked(
            balancer=balancer,
            servers=[
                Server(node=node, address=address, port=way.tcp)
                for node, address in _nodes(stage, way)
            ],
            clients=room(stage.scenario.flows),
            health=ports.health if local else None,
        ),
        listen=way.source(0) or LOOPBACK,
        record=stage.recorder,
    )
    stage.front = front
    try:
        yield replace(way, address=front.address, tcp=front.port, node=None, other_nodes=())
    finally:
        front.close()


def insist_up(stage: Stage, must: Insist) -> None:
    """Insist that the balancer, if there is one, holds every node healthy. Raises TrialVoid."""
    front, balancer = stage.front, stage.scenario.service.balancer
    if front is None or balancer is None:
        return
    checks_s = balancer.rises_ns / 1e9
    must(
        lambda: preflight.balancer_up(front.servers(), front.nodes, front.asks),
        CHECKS_TIMEOUT_S + checks_s,
    )


def _nodes(stage: Stage, way: Way) -> list[tuple[str, str]]:
    """Name and address of each node. Raises ClusterError where HAProxy cannot reach them."""
    if stage.placement.address is not None:
        raise ClusterError(
            f"a load balancer is put in front of the nodes' NodePorts, and --dw-address="
            f"{stage.placement.address} is another way: drop one of them"
        )
    if way.node is None:
        raise ClusterError(
            "a load balancer is put in front of the nodes' NodePorts, and this cluster does not "
            "say where its nodes answer: expected --dw-cluster=embedded, or one whose nodes may be "
            "listed"
        )
    words = ["haproxy"]
    if way.command(words) != words:
        raise ClusterError(
            "a load balancer of ours runs on this machine, and the nodes' NodePorts do not answer "
            "from here: expected --dw-cluster=embedded, or Docker on this machine and not rootless"
        )
    return [(way.node, way.address), *way.other_nodes]
