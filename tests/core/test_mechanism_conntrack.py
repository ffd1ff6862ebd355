"""conntrack's listings as real nodes gave them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.mechanism import conntrack
from pytest_drainwatch.core.mechanism.conntrack import Entry
from tests.core.netdumps import dump

CLIENT = "198.18.0.1"
PORTS = {("tcp", 30740), ("udp", 30257)}


def test_a_flow_behind_a_masquerade() -> None:
    """The first tuple has the client's own address, the second the pod's."""
    line = (
        "udp      17 119 src=198.18.0.1 dst=198.18.0.8 sport=57538 dport=30257 src=10.244.0.2 "
        "dst=10.244.0.1 sport=7002 dport=54895 [ASSURED] mark=0 use=1 id=2438348939"
    )
    assert conntrack.parse(line) == Entry(
        proto="udp",
        src=CLIENT,
        sport=57538,
        dst="198.18.0.8",
        dport=30257,
        to="10.244.0.2",
        to_port=7002,
        assured=True,
        replied=True,
        id=2438348939,
    )


def test_one_that_nobody_answered() -> None:
    line = (
        "udp      17 29 src=198.18.0.1 dst=198.18.0.8 sport=1 dport=30257 [UNREPLIED] "
        "src=10.244.0.2 dst=10.244.0.1 sport=7002 dport=2 mark=0 use=1"
    )
    entry = conntrack.parse(line)
    assert entry is not None
    assert (entry.replied, entry.assured, entry.state, entry.id) == (False, False, None, None)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "unknown  2 580 src=10.244.0.1 dst=224.0.0.22 [UNREPLIED] src=224.0.0.22 dst=10.244.0.1",
        "icmp     1 29 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=7 src=10.0.0.2 dst=10.0.0.1",
        "conntrack v1.4.7 (conntrack-tools): 13 flow entries have been shown.",
        "udp      17 29 src=198.18.0.1 dst=198.18.0.8 sport=1 dport=30257",
    ],
)
def test_what_is_no_entry(line: str) -> None:
    assert conntrack.parse(line) is None


@pytest.mark.parametrize(
    ("name", "states", "pods"),
    [
        ("two", {"ESTABLISHED"}, {"10.244.0.2", "10.244.0.3"}),
        # All of UDP led to the pod that is gone, all of TCP over.
        ("zero", {"TIME_WAIT"}, {"10.244.0.2"}),
    ],
)
def test_a_whole_listing(name: str, states: set[str], pods: set[str]) -> None:
    listing = dump(f"conntrack-{name}")
    assert "dport=6443" in listing, "the harness's own connections are there"
    entries, left_out = conntrack.entries_of(listing, [CLIENT], PORTS)
    assert left_out == 0
    assert {(e.proto, e.dport) for e in entries} == PORTS
    assert {e.state for e in entries if e.proto == "tcp"} == states
    udp = [e for e in entries if e.proto == "udp"]
    assert len(udp) == 4
    assert {(e.to, e.to_port, e.assured, e.state) for e in udp} == {
        (pod, 7002, True, None) for pod in pods
    }
    assert conntrack.entries_of(listing, ["198.18.0.2"], PORTS) == ([], 0)


def test_a_crowd_is_cut_and_counted() -> None:
    line = (
        "udp 17 9 src=198.18.0.1 dst=198.18.0.8 sport={} dport=30257 "
        "src=10.244.0.2 dst=10.244.0.1 sport=7002 dport=5 [ASSURED]"
    )
    listing = "\n".join(line.format(port) for port in range(1000, 1700))
    entries, left_out = conntrack.entries_of(listing, [CLIENT], PORTS)
    assert (len(entries), left_out) == (conntrack.MAX_ENTRIES, 700 - conntrack.MAX_ENTRIES)


def test_a_recording_holds_entries_as_they_were() -> None:
    entries, _ = conntrack.entries_of(dump("conntrack-zero"), [CLIENT], PORTS)
    raw = json.loads(json.dumps([entry.fields() for entry in entries]))
    assert conntrack.recorded(raw) == tuple(entries)


ODD = st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "udp", "10.0.0.1"])


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(Entry.__slots__, ODD)))
def test_odd_fields_are_no_entry_or_a_sound_one(raw: dict[str, object]) -> None:
    for entry in conntrack.recorded([raw]):
        assert entry.to == raw["to"] != ""
        assert entry.sport == raw["sport"]
        assert entry.assured is (raw.get("assured") is True)
