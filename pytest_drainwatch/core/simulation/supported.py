"""Which scenarios the model knows; what it does not know it refuses, and never guesses."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.scenario import (
    Access,
    Affinity,
    Behavior,
    Controller,
    Pid1,
    ProxyMode,
    Scenario,
    ScenarioError,
    TrafficPolicy,
    Trigger,
    ViaNode,
)

TRIGGERS = (Trigger.DELETE, Trigger.EVICT, Trigger.SCALE)


def refuse_unknown(scenario: Scenario) -> None:
    """Raise :class:`ScenarioError` naming everything of a scenario that is not modelled."""
    found = list(_unknown(scenario))
    if found:
        raise ScenarioError(
            f"cannot simulate {scenario.id}: {'; '.join(found)}. Measure it instead, with: "
            "drainwatch run"
        )


def _unknown(scenario: Scenario) -> Iterator[str]:
    app, flows, service = scenario.app, scenario.flows, scenario.service
    if scenario.workload is not None:
        yield "a workload of the user's, expected the probe"
        return
    if scenario.trigger not in TRIGGERS:
        yield f"trigger is {str(scenario.trigger)!r}, expected one of: {', '.join(TRIGGERS)}"
    if app.grace_period_s == 0:
        yield "grace_period_s is 0, of which the API server deletes the pod at once; expected 1.."
    if app.pid1 is not Pid1.PROBE:
        yield f"pid1 is {str(app.pid1)!r}, expected 'probe'"
    if app.controller is not Controller.DEPLOYMENT:
        yield f"controller is {str(app.controller)!r}, expected 'deployment'"
    if app.behavior is Behavior.DRAIN and not flows.tcp:
        yield "a drain without TCP flows, which may end early; expected at least one TCP flow"
    if flows.udp_one_way:
        yield "one-way UDP flows, expected none"
    if flows.probe_each_node:
        yield "probe_each_node, expected one node"
    if scenario.cluster.nodes not in (None, 1):
        yield f"{scenario.cluster.nodes} nodes, expected 1"
    if scenario.cluster.proxy_mode is ProxyMode.IPVS:
        yield "kube-proxy's mode is 'ipvs', expected 'iptables' or 'nftables'"
    if service.access is not Access.NODE_PORT:
        yield f"access is {str(service.access)!r}, expected 'nodeport'"
    if service.external_traffic_policy is not TrafficPolicy.CLUSTER:
        yield "external_traffic_policy is not 'Cluster'"
    if service.session_affinity is not Affinity.NONE:
        yield "session affinity, expected 'None'"
    if service.publish_not_ready_addresses:
        yield "publish_not_ready_addresses, expected False"
    if service.balancer is not None:
        yield "a balancer in front of the nodes, expected none"
    if service.via_node is not ViaNode.ANY:
        yield f"via_node is {str(service.via_node)!r}, expected 'any'"
