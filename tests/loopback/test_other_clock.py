"""A probe whose CLOCK_MONOTONIC is another one: a time namespace (FACTS K14)."""

from __future__ import annotations

import subprocess

import pytest

from pytest_drainwatch.core.clock import clocks
from pytest_drainwatch.flows.clockid import clock_id
from tests.loopback.rig import Rig


def test_the_exchanges_bound_its_offset(rig: Rig) -> None:
    unshare = ["unshare", "--time", "--monotonic", "300", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a time namespace")
    probe = rig.probe("pod-a", prefix=unshare)
    near = rig.probe("pod-b")
    there, here = probe.event("listening")["clock"], near.event("listening")["clock"]
    assert there != here == clock_id()
    assert there.split("/")[0] == here.split("/")[0], "the same boot, yet another clock"
    for server, clock, truth_ns in ((probe, there, -300 * 10**9), (near, here, 0)):
        agent = rig.agent(tcp=(server.tcp_port, 2), udp=(server.udp_port, 2))
        agent.holding(20)
        known = clocks(clock_id(), rig.recorded(agent).seen)[clock]
        assert known.exchanges
        offset = known.offset_at(known.exchanges[-1].at_ns)
        assert offset is not None
        assert offset.lo <= truth_ns <= offset.hi
        assert known.same == (clock == here)
