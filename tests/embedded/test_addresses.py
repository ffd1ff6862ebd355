"""Slots never share an address, a link or a network."""

from __future__ import annotations

import socket
from ipaddress import IPv4Network
from itertools import combinations, pairwise

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import slots
from pytest_drainwatch.cluster.embedded.addresses import (
    MOST_NODES,
    POD_RANGE,
    RANGE,
    SLOTS,
    Block,
    pod_range,
)


def test_every_slot_has_its_own_network_within_the_range() -> None:
    networks = [Block(slot=slot).network for slot in range(SLOTS)]
    assert len(set(networks)) == SLOTS
    assert all(network.subnet_of(RANGE) for network in networks)
    assert not any(a.overlaps(b) for a, b in pairwise(networks))


def test_addresses_lie_in_the_network_and_differ() -> None:
    block = Block(slot=3)
    nodes = [block.node_at(index) for index in range(MOST_NODES)]
    addresses = {*block.sources, *nodes}
    assert len(addresses) == len(block.sources) + MOST_NODES
    assert len(block.sources) == 2 + MOST_NODES, "flows, UDP, and TCP at each node"
    assert addresses <= set(block.network.hosts())
    assert (block.link, str(block.node)) == ("dwh3", "198.18.0.56")
    assert block.node == nodes[0]


def test_nodes_are_told_apart_by_name() -> None:
    names = [Block(slot=slot).node_name(index) for slot in (0, 1, 2, 12) for index in range(3)]
    assert len(set(names)) == len(names)
    assert names[:2] == ["dw-node-0", "dw-node-0-2"]


@pytest.mark.parametrize("index", [-1, MOST_NODES])
def test_node_out_of_range_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="expected 0 to 4"):
        Block(slot=0).node_at(index)


@pytest.mark.parametrize("slot", [-1, SLOTS])
def test_slot_out_of_range_is_refused(slot: int) -> None:
    with pytest.raises(ValueError, match="expected 0 to 255"):
        Block(slot=slot)


def test_link_names_fit_the_kernel() -> None:
    assert len(Block(slot=SLOTS - 1).link) < 16


def test_nodes_have_pod_ranges_of_their_own() -> None:
    ranges = [pod_range(index) for index in range(MOST_NODES)]
    assert not any(a.overlaps(b) for a, b in combinations(ranges, 2))
    assert all(each.subnet_of(POD_RANGE) for each in ranges)


class Machine:
    """What `ip` would say, and which slots other processes hold."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.networks: list[IPv4Network] = []
        self.links: set[str] = set()
        self.held: set[int] = set()
        monkeypatch.setattr(slots, "_in_use", lambda: (self.networks, self.links))
        monkeypatch.setattr(slots, "_hold", self.hold)

    def hold(self, number: int) -> int | None:
        return None if number in self.held else socket.socket().detach()

    def acquire(self) -> int:
        slot = slots.acquire()
        socket.socket(fileno=slot.lock).close()
        return slot.block.slot


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_first_slot_that_nobody_holds(machine: Machine) -> None:
    machine.held = {0, 1}
    assert machine.acquire() == 2


def test_slot_on_somebody_elses_network_is_passed_by(machine: Machine) -> None:
    machine.networks = [IPv4Network("198.18.0.0/27"), IPv4Network("10.0.0.0/8")]
    machine.links = {"lo", "dwh2"}
    assert machine.acquire() == 3


def test_no_slot_left_says_what_to_do(machine: Machine) -> None:
    machine.networks = [RANGE]
    with pytest.raises(ClusterError, match="drainwatch cluster list"):
        slots.acquire()


def test_held_slot_is_free_again_when_its_holder_ends() -> None:
    number = SLOTS - 1
    first = slots._hold(number)
    assert first is not None
    assert slots._hold(number) is None
    socket.socket(fileno=first).close()
    again = slots._hold(number)
    assert again is not None
    socket.socket(fileno=again).close()
