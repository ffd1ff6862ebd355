"""Which block of addresses a new cluster may have.

Links and addresses belong to the network namespace, so its slots are held by a name in
that same namespace: an abstract Unix socket. Like a file lock it is the kernel's, exclusive,
and gone with its last holder, but it also meets users of other state directories.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded.addresses import RANGE, SLOTS, Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A block and the descriptor that holds its lock."""

    block: Block
    lock: int


def acquire() -> Slot:
    """Take the first free slot.

    Raises:
        ClusterError: every slot is taken.
    """
    networks, links = _in_use()
    for number in range(SLOTS):
        block = Block(slot=number)
        lock = _hold(number)
        if lock is None:
            continue
        # Other people's networks may lie in the same range.
        if block.link not in links and not _overlaps(block.network, networks):
            return Slot(block=block, lock=lock)
        os.close(lock)
    raise ClusterError(
        f"all {SLOTS} address slots of {RANGE} are taken: expected a free one."
        " See what runs: drainwatch cluster list"
    )


@contextmanager
def nobodys(link: str) -> Iterator[bool]:
    """Whether a link of that name would be nobody's; while this lasts nobody takes its slot.

    A cluster that is dead has lost its slot, and the next one has a link of the same name.
    """
    number = next((n for n in range(SLOTS) if Block(slot=n).link == link), None)
    lock = None if number is None else _hold(number)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def _hold(number: int) -> int | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0pytest-drainwatch/slot/{number}")
    except OSError:
        holder.close()
        return None
    return holder.detach()


def _overlaps(block: IPv4Network, networks: Iterable[IPv4Network]) -> bool:
    return any(block.overlaps(network) for network in networks)


def _in_use() -> tuple[list[IPv4Network], set[str]]:
    networks: list[IPv4Network] = []
    links: set[str] = set()
    for link in _ip_json("addr", "show"):
        links.add(link["ifname"])
        for address in link.get("addr_info", ()):
            if address["family"] == "inet":
                networks.append(_network(f"{address['local']}/{address['prefixlen']}"))
    for route in _ip_json("route", "show", "table", "all"):
        if route["dst"] != "default":
            networks.append(_network(route["dst"]))
    return [network for network in networks if network.prefixlen > 0], links


def _network(text: str) -> IPv4Network:
    return IPv4Network(text, strict=False)


def _ip_json(*arguments: str) -> list[dict[str, Any]]:
    output = subprocess.run(
        ["ip", "-4", "-j", *arguments], check=True, capture_output=True, text=True
    ).stdout
    parsed: list[dict[str, Any]] = json.loads(output or "[]")
    return parsed
