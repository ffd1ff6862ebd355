"""A real load balancer between the client and the nodes: HAProxy, with a config of our own.

It knows nothing of clusters: it is given the nodes' addresses and ports, and told whom to ask
whether a node is healthy.
"""

from pytest_drainwatch.balancers.config import Asked, Server
from pytest_drainwatch.balancers.front import Front
from pytest_drainwatch.balancers.process import BalancerFailed
from pytest_drainwatch.balancers.stat import ServerStat

__all__ = ["Asked", "BalancerFailed", "Front", "Server", "ServerStat"]
