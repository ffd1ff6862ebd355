"""Which block of addresses a new cluster may have.

A slot is held by a file lock, which the kernel lets go of with its last holder; and the
machine itself is asked too, for other users' networks and other state directories.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded.addresses import RANGE, SLOTS, Block
from pytest_drainwatch.cluster.embedded.locks import try_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A block and the descriptor that holds its lock."""

    block: Block
    lock: int


def acquire(folder: Path) -> Slot:
    """Take the first free slot.

    Args:
        folder: where lock files lie; shared by all clusters of this user.

    Raises:
        ClusterError: every slot is taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    networks, links = _in_use()
    for number in range(SLOTS):
        block = Block(slot=number)
        lock = try_lock(folder / f"{number}.lock")
        if lock is None:
            continue
        if block.link not in links and not _overlaps(block.network, networks):
            return Slot(block=block, lock=lock)
        os.close(lock)
    raise ClusterError(
        f"all {SLOTS} address slots of {RANGE} are taken: expected a free one."
        " See what runs: drainwatch cluster list"
    )


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
