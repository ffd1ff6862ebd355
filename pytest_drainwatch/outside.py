"""The address at which a Service answers outside of the cluster, as a number."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from pytest_drainwatch import preflight
from pytest_drainwatch.api import REQUEST_TIMEOUT, explain, failures
from pytest_drainwatch.core.scenario import Access
from pytest_drainwatch.preflight import require
from pytest_drainwatch.stage import Stage

# A cloud's load balancer takes minutes to be made.
LOAD_BALANCER_TIMEOUT_S = 240.0
# A pod is bound to its node within a second or so, and the kubelet then tells of itself.
NODE_TIMEOUT_S = 60.0
POLL_S = 0.5


class _Found(NamedTuple):
    """An address, or why there is none."""

    address: str | None
    problem: str | None = None


def address(stage: Stage) -> str:
    """Where the probe's Service answers: as the user says, or else the cluster.

    Raises TrialVoid if no address is to be had.
    """
    if stage.placement.address is not None:
        return given(stage)
    if stage.scenario.service.access is Access.LOAD_BALANCER:
        return load_balancer(stage, stage.place.namespace, stage.place.probe)
    return stage.cluster.node_address or node_of_a_pod(stage, stage.place.pods)


def port(stage: Stage, own: int) -> int:
    """The port that is connected to, where the Service's own is this one."""
    said = stage.placement.address
    return own if said is None or said.port is None else said.port


def given(stage: Stage) -> str:
    """The address that the user gave. Raises TrialVoid if its name cannot be resolved."""
    said = stage.placement.address
    assert said is not None, "asked for only where one was given"
    return _insist(
        stage,
        lambda: _number(said.host),
        timeout_s=0,
        what=f"the host of --dw-address={said} has an address",
        look_at=f"getent ahosts {said.host}",
    )


def load_balancer(stage: Stage, namespace: str, service: str) -> str:
    """The ingress address of a Service of type LoadBalancer, once it has one.

    Raises TrialVoid if it gets none in time.
    """
    stage.progress.status("waiting for the load balancer's address")
    return _insist(
        stage,
        lambda: _ingress(stage, namespace, service),
        timeout_s=LOAD_BALANCER_TIMEOUT_S,
        what=f"Service {namespace}/{service} has an address in status.loadBalancer.ingress",
        look_at=f"kubectl -n {namespace} describe service {service}: does anything in this cluster "
        "make load balancers, for TCP and UDP in one Service?",
    )


def node_of_a_pod(stage: Stage, pods: str) -> str:
    """The address of a node that has one of the pods ``pods``, where nodes may not be listed.

    Raises TrialVoid if no pod is bound to a node in time.
    """
    return _insist(
        stage,
        lambda: _host_ip(stage, pods),
        timeout_s=NODE_TIMEOUT_S,
        what="the nodes may be listed, or a pod of the trial tells its node's address",
        look_at=f"kubectl get nodes -o wide; kubectl -n {stage.namespace} get pods -o wide",
    )


def _insist(
    stage: Stage, look: Callable[[], _Found], *, timeout_s: float, what: str, look_at: str
) -> str:
    latest: list[str] = []

    def check() -> preflight.Check:
        found = look()
        latest[:] = [found.address or ""]
        return preflight.address_known(found.address, found.problem, what, look_at)

    wait = stage.watch.wait_changed if stage.watch is not None else time.sleep
    require(check, stage.recorder, timeout_s=timeout_s, wait=lambda _: wait(POLL_S))
    return latest[0]


def _number(host: str) -> _Found:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return _Found(None, f"{host} cannot be resolved: {error.strerror or error}")
    return _Found(str(found[0][4][0]))


def _ingress(stage: Stage, namespace: str, service: str) -> _Found:
    try:
        found: Any = stage.api.core.read_namespaced_service(
            service, namespace, _request_timeout=REQUEST_TIMEOUT
        )
    except failures() as error:
        return _Found(None, explain(error))
    if found.spec.type != "LoadBalancer":
        return _Found(None, f"the Service's type is {found.spec.type}")
    balancer = found.status.load_balancer
    for each in (balancer and balancer.ingress) or ():
        if each.ip or each.hostname:
            return _number(str(each.ip or each.hostname))
    return _Found(None, "its type is LoadBalancer, and it has no ingress address")


def _host_ip(stage: Stage, pods: str) -> _Found:
    with suppress(KeyError, TypeError):
        try:
            answer = stage.api.core.list_namespaced_pod(
                stage.namespace,
                label_selector=pods,
                _preload_content=False,
                _request_timeout=REQUEST_TIMEOUT,
            )
            items = json.loads(answer.data)["items"]
        except failures() as error:
            return _Found(None, explain(error))
        told = [item["status"].get("hostIP") for item in items]
        return _Found(
            next(filter(None, told), None), f"none of {len(told)} pod(s) is on a node yet"
        )
    return _Found(None, "an odd answer to the list of pods")
