"""A seat inside of a pod: its network namespace, and addresses of its own there."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, Seat
from pytest_drainwatch.cluster.embedded import machine, processes, runtime

LINK = "eth0"
# One for each prober: TCP and UDP.
FURTHER = 2
_COMMAND_TIMEOUT_S = 10.0


def take(uid: str, *, nodes: Mapping[IPv4Network, Path], cluster: str) -> Seat:
    """A seat in the pod *uid*.

    Args:
        nodes: of each node the range of its pods, and the file that holds the process id of
            its PID 1.

    Raises:
        ClusterError: no process of that pod runs, it has no address of its own, no address
            is free, or Services cannot be reached from a pod on this machine.
    """
    if not machine.filters_bridges():
        raise ClusterError(
            "a ClusterIP cannot be reached from a pod on this machine: replies between pods of"
            " one node bypass the packet filter (no /proc/sys/net/bridge). Expected the kernel"
            " module br_netfilter. Try: modprobe br_netfilter; or use access 'nodeport'"
        )
    process = processes.oldest(uid)
    if process is None:
        raise ClusterError(
            f"no process of pod {uid} runs in cluster {cluster}: expected a pod that is Running."
            " See: kubectl get pods --all-namespaces -o wide"
        )
    prefix = ("nsenter", f"--net=/proc/{process}/ns/net", "--")
    own = _address(prefix)
    pods = next((each for each in nodes if own is not None and own in each), None)
    if own is None or pods is None:
        ranges = " or ".join(map(str, nodes))
        raise ClusterError(
            f"pod {uid} has address {own} on {LINK}: expected one of {ranges}, the pods' own"
            " network. Leave out hostNetwork"
        )
    node_pid = nodes[pods].read_text().strip()
    store = Path(f"/proc/{node_pid}/root{runtime.IPAM}/{runtime.NETWORK}")
    further = _reserve(store, own, pods)
    for address in further:
        _run((*prefix, "ip", "address", "add", f"{address}/32", "dev", LINK))
    addresses = (str(own), *map(str, further))
    return Seat(
        prefix=prefix,
        addresses=addresses,
        note=f"client pod {own}: {' and '.join(addresses[1:])} added to its {LINK}, for the"
        " probers (reserved in host-local's own store until the pod ends)",
    )


def _address(prefix: tuple[str, ...]) -> IPv4Address | None:
    shown = json.loads(_run((*prefix, "ip", "-json", "-4", "address", "show", "dev", LINK)))
    for link in shown:
        for info in link.get("addr_info", ()):
            return IPv4Address(info["local"])
    return None


def _reserve(store: Path, own: IPv4Address, pods: IPv4Network) -> list[IPv4Address]:
    """Take free addresses in the way in which host-local takes them: a file for each.

    From the top, which it hands out last. What names the pod's sandbox is freed with it.
    """
    try:
        sandbox = (store / str(own)).read_bytes()
        reserved: list[IPv4Address] = []
        for address in reversed(list(pods.hosts())):
            with contextlib.suppress(FileExistsError), (store / str(address)).open("xb") as file:
                file.write(sandbox)
                reserved.append(address)
            if len(reserved) == FURTHER:
                return reserved
    except OSError as error:
        raise ClusterError(
            f"no address can be reserved for the probers: {error}. Expected the store of the"
            f" CNI plugin host-local, with a file for {own}"
        ) from error
    raise ClusterError(
        f"the node's pod range {pods} has no {FURTHER} free addresses: expected some beside"
        " those of its pods. Run fewer pods"
    )


def _run(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_COMMAND_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        raise ClusterError(
            f"`{' '.join(command)}` failed: {error.stderr.strip()}. Expected the pod to run on;"
            " see its state: kubectl get pods --all-namespaces"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(
            f"`{' '.join(command)}` could not be run: {error}. See: drainwatch doctor"
        ) from error
    return done.stdout
