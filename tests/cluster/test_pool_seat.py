"""The flow agent in a client pod: flows and new connections to a ClusterIP, from there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pytest_drainwatch import Access, App, Scenario, Service
from pytest_drainwatch.api import connect
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.process import FlowAgent
from pytest_drainwatch.workload import client, manifests, probe
from pytest_drainwatch.workload.place import Place

pytestmark = pytest.mark.cluster

NAMESPACE = "dw-inside"
PLACE = Place(namespace=NAMESPACE)
INSIDE = Scenario(app=App(grace_period_s=1), service=Service(access=Access.CLUSTER_IP))
WITHIN_S = 60.0


def test_flows_and_attempts_from_a_pod_are_answered(dw_cluster: Cluster, tmp_path: Path) -> None:
    api = connect(dw_cluster.kubeconfig, dw_cluster.context)
    image = dw_cluster.ensure_probe_image()
    api.core.create_namespace(manifests.namespace(NAMESPACE, "a test"))
    try:
        ports = probe.apply(api, PLACE, INSIDE, image)
        assert ports.address is not None
        seat = dw_cluster.enter_pod(client.apply(api, PLACE, image))
        own, for_tcp, for_udp = seat.addresses
        _until_ready(api, time.monotonic() + WITHIN_S)
        probers = [("tcp", ports.tcp, for_tcp), ("udp", ports.udp, for_udp)]
        agent = FlowAgent(
            seat.command,
            AgentConfig(
                record=str(tmp_path / "flows.jsonl"),
                tcp=Endpoint(address=ports.address, port=ports.tcp, flows=2),
                udp=Endpoint(address=ports.address, port=ports.udp, flows=2),
                source_address=own,
                probers=tuple(
                    ProberConfig(
                        proto=proto,
                        address=ports.address,
                        port=port,
                        interval_ns=20 * NS_PER_MS,
                        source_address=source,
                    )
                    for proto, port, source in probers
                ),
            ),
        )
        try:
            _until_answered(agent, time.monotonic() + WITHIN_S)
        finally:
            agent.stop()
    finally:
        api.core.delete_namespace(NAMESPACE)
        api.close()


def _until_ready(api: object, deadline: float) -> None:
    """The rules of a Service without endpoints refuse, and the agent gives up on that."""
    while True:
        pods = api.core.list_namespaced_pod(  # type: ignore[attr-defined]
            NAMESPACE, label_selector=manifests.POD_SELECTOR
        ).items
        conditions = [c for pod in pods for c in pod.status.conditions or () if c.type == "Ready"]
        if conditions and all(c.status == "True" for c in conditions):
            time.sleep(2)  # minSyncPeriod is 1 s
            return
        assert time.monotonic() < deadline, "the probe is not Ready"
        time.sleep(0.1)


def _until_answered(agent: FlowAgent, deadline: float) -> None:
    while True:
        agent.check_alive()
        status = agent.status()
        tried = [subject for subject, so_far in status.probers.items() if so_far.answered]
        if (status.tcp.answered, status.udp.answered, len(tried)) == (2, 2, 2):
            return
        assert time.monotonic() < deadline, status
        agent.wait_changed(1.0)
