"""A packet capture is the judge: every end of a flow lies inside its interval.

How wide the intervals are depends on the machine's load and is not asserted here;
``bench/accuracy.py`` is for that.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from pytest_drainwatch.core.observation import Event
from tests.loopback.capture import Capture, Packet
from tests.loopback.rig import Part, Rig

ENDS = (Event.FLOW_FIN, Event.FLOW_RESET, Event.FLOW_WRITE_ERROR, Event.FLOW_ICMP)
FLOWS = 20


@pytest.mark.parametrize("how", ["drain", "exit-now", "kill"])
def test_every_tcp_end_is_inside_its_interval(rig: Rig, how: str) -> None:
    behavior = "drain" if how == "kill" else how
    probe = rig.probe(DRAIN_SECONDS="200ms", DRAIN_BEHAVIOR=behavior)
    with _captured(probe.tcp_port) as packets:
        agent = rig.agent(tcp=(probe.tcp_port, FLOWS))
        agent.holding()
        probe.signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        agent.ended("tcp", FLOWS)
        part = rig.recorded(agent)
    assert list(_outside(part, packets)) == []


def test_every_first_refusal_is_inside_its_interval(rig: Rig) -> None:
    probe = rig.probe(DRAIN_BEHAVIOR="exit-now")
    with _captured(probe.udp_port) as packets:
        agent = rig.agent(udp=(probe.udp_port, FLOWS))
        agent.holding()
        probe.signal(signal.SIGTERM)
        agent.await_status(lambda s: s["udp"]["refused"] == FLOWS, "all refused")
        part = rig.recorded(agent)
    assert list(_outside(part, packets)) == []


def _outside(part: Part, packets: list[Packet]) -> Iterator[str]:
    first: dict[int, Packet] = {}
    for packet in packets:
        first.setdefault(packet.client_port, packet)
    assert len(part.flows()) == FLOWS
    for flow in part.flows():
        local = str(part.one(flow, Event.FLOW_CONNECTED).data["local"])
        truth = first[int(local.rpartition(":")[2])]
        end = next(o for o in part.of(flow) if o.event in ENDS)
        if truth.at.intersect(end.at) is None:
            yield f"{flow} {end.event} {end.at}, on the wire {truth}"


class _captured:
    """The packets of a block, or a skip where capturing is not allowed."""

    def __init__(self, port: int) -> None:
        try:
            self._capture = Capture("lo", port)
        except PermissionError:
            pytest.skip("needs the right to capture packets (CAP_NET_RAW)")

    def __enter__(self) -> list[Packet]:
        return self._capture.packets

    def __exit__(self, *_: object) -> None:
        self._capture.close()
