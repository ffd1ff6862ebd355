"""What HAProxy is told: the text of its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import Flows, LoadBalancer

POOL = "nodes"
# What is held for as long as a trial lasts, on which nothing may be said for a while.
IDLE = "24h"
CONNECT = "1s"
# A client who has gone does not wait for a pod that is gone as well.
LEAVING = "2s"
# A new connection that nobody serves: its client gives up after a second, and then it leaves.
TRIED_NS = 4 * NS_PER_S
SPARE = 100

_CONFIG = """\
global
    nbthread 1
    # Not by the limit of descriptors: who finds no room waits, and would be blamed on the pod.
    maxconn {clients}
    stats socket fd@{api} level admin
defaults
    mode tcp
    # As a load balancer of packets: a node that refuses is not asked again, nor another instead.
    retries 0
    timeout connect {connect}
    timeout client {idle}
    timeout server {idle}
    timeout server-fin {leaving}
    timeout check {interval}ms
frontend front
    bind fd@{listening}
    default_backend {pool}
backend {pool}
    balance roundrobin
{check}    default-server check inter {interval}ms fall {fall} rise {rise}{port}
{servers}
"""
# kube-proxy answers 200 while the node has a ready pod of the Service, and 503 else.
_HTTP_CHECK = """\
    option httpchk GET /healthz
    http-check expect status 200
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A node by its name, and where its NodePort answers."""

    node: str
    address: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A pool of servers, and how it is told who is healthy.

    ``clients`` is how many connections it must have room for. ``health`` is the Service's
    healthCheckNodePort; None: it has none, and a check is a connection to the NodePort itself.
    """

    balancer: LoadBalancer
    servers: Sequence[Server]
    clients: int
    health: int | None = None

    @property
    def check(self) -> str:
        """What a health check asks, in words."""
        if self.health is None:
            return "a TCP connection to the NodePort"
        return f"HTTP to the Service's healthCheckNodePort {self.health}: 200 is healthy"


def names(servers: Sequence[Server]) -> dict[str, str]:
    """The name of each server in HAProxy's words, by its node: a node's may have dots."""
    return {server.node: f"node{number}" for number, server in enumerate(servers)}


def room(flows: Flows) -> int:
    """How many connections may be open at once: some are dialled that lead to the wrong pod, and
    new ones are tried.
    """
    tried = 0 if flows.probe_interval_ns is None else TRIED_NS // flows.probe_interval_ns
    return 2 * flows.tcp + tried + SPARE


def config(asked: Asked, listening: int, api: int) -> str:
    """The whole file, for a HAProxy that inherits two descriptors: to ``listening`` its clients
    come, to ``api`` whoever asks it.
    """
    named = names(asked.servers)
    rows = [
        f"    server {named[each.node]} {_host(each.address)}:{each.port}" for each in asked.servers
    ]
    return _CONFIG.format(
        clients=asked.clients,
        api=api,
        connect=CONNECT,
        idle=IDLE,
        leaving=LEAVING,
        interval=max(1, asked.balancer.check_interval_ns // NS_PER_MS),
        listening=listening,
        pool=POOL,
        check="" if asked.health is None else _HTTP_CHECK,
        fall=asked.balancer.fall,
        rise=asked.balancer.rise,
        port="" if asked.health is None else f" port {asked.health}",
        servers="\n".join(rows),
    )


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
