"""Flows of two kinds at one rate: no two of them send in step."""

from __future__ import annotations

import asyncio
import socket
import time
from itertools import pairwise
from typing import cast

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.flows.config import Endpoint
from pytest_drainwatch.flows.fleet import Fleet
from pytest_drainwatch.flows.schedule import Cadence, phase_ns
from tests.loopback.rig import LOOPBACK
from tests.loopback.test_write_errors import Bench

PERIOD_NS = 50_000_000


def filled(port: int, flows: int, *, one_way: bool) -> list[int]:
    """The indices of so many UDP flows, in the order of their numbers."""
    bench = Bench()
    fleet = Fleet(
        bench,
        Endpoint(address=LOOPBACK, port=port, flows=flows),
        proto="udp",
        cadence=Cadence(PERIOD_NS, PERIOD_NS),
        source=None,
        target=None,
        max_extra=0,
        one_way=one_way,
    )
    asyncio.run(fleet.fill(time.monotonic_ns() + 20 * NS_PER_S))
    indices = [flow.index for _, flow in sorted(fleet.flows.items())]
    for flow in fleet.flows.values():
        flow.close()
    bench.selector.close()
    return indices


def test_one_way_and_two_way_flows_are_spread_evenly_whatever_their_numbers() -> None:
    """A fleet may dial beyond what is asked for, so no number of it is the last."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((LOOPBACK, 0))
        port = cast(int, server.getsockname()[1])
        two_way = filled(port, 40, one_way=False)
        one_way = filled(port, 25, one_way=True)
    assert len({*two_way, *one_way}) == 65
    phases = sorted(phase_ns(index, PERIOD_NS) for index in (*two_way, *one_way))
    gaps = [b - a for a, b in pairwise([*phases, phases[0] + PERIOD_NS])]
    assert min(gaps) >= PERIOD_NS / (4 * 66) - 1
