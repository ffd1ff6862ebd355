"""The links between this machine and the nodes of a cluster.

One node is at the other end of a pair of links. Several are joined by a bridge, as kind joins
its containers: in a network namespace of its own, because the packet filter of this machine
(Docker's, say) may drop what a bridge of ours would pass on. Nobody lives in it: it ends with
the descriptor by which the reaper holds it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from pytest_drainwatch.cluster.embedded import mounts
from pytest_drainwatch.cluster.embedded.node import NODE_LINK

_BRIDGE = "nodes"
_HOST = "host"


def join(link: str, sources: Sequence[str], nodes: Sequence[int]) -> int | None:
    """Make the links to the nodes whose PID 1 have these process ids.

    Args:
        link: name of the host's end.
        sources: its addresses, with prefix length.

    Returns:
        the descriptor that holds the bridge's namespace; `None`: there is no bridge.
    """
    if len(nodes) == 1:
        _host(link, sources, f"peer name {NODE_LINK} netns {nodes[0]}")
        return None
    held = _new_namespace()
    namespace = f"/proc/{os.getpid()}/fd/{held}"
    _host(link, sources, f"peer name {_HOST} netns {namespace}")
    ports = [f"node-{number}" for number in range(1, len(nodes) + 1)]
    commands = [
        f"link add {_BRIDGE} type bridge",
        *(
            f"link add {port} type veth peer name {NODE_LINK} netns {node}"
            for port, node in zip(ports, nodes, strict=True)
        ),
        *(f"link set {port} addrgenmode none master {_BRIDGE}" for port in (_HOST, *ports)),
        *(f"link set {port} up" for port in (_HOST, *ports, _BRIDGE)),
    ]
    _ip(commands, into=("nsenter", f"--net={namespace}", "--"))
    return held


def remove(link: str) -> None:
    """Remove the host's end, and with it the pair."""
    # It would go with the other end's network namespace, but only when the kernel gets to it.
    subprocess.run(["ip", "link", "del", link], stderr=subprocess.DEVNULL, check=False)


def _host(link: str, sources: Sequence[str], peer: str) -> None:
    _ip(
        [
            f"link add {link} type veth {peer}",
            f"link set {link} addrgenmode none",
            *(f"addr add {source} dev {link}" for source in sources),
            f"link set {link} up",
        ]
    )


def _new_namespace() -> int:
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        mounts.unshare(mounts.CLONE_NEWNET)
        held = os.open("/proc/self/ns/net", os.O_RDONLY)
        mounts.setns(own, mounts.CLONE_NEWNET)
    finally:
        os.close(own)
    return held


def _ip(commands: Sequence[str], *, into: Sequence[str] = ()) -> None:
    subprocess.run([*into, "ip", "-batch", "-"], input="\n".join(commands).encode(), check=True)
