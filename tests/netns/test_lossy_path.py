"""A path that loses datagrams: what the client counts is what the path dropped."""

from __future__ import annotations

import re
import shutil

import pytest

from pytest_drainwatch.core.jsonvalue import integer
from pytest_drainwatch.core.observation import Event
from tests.loopback.rig import Rig
from tests.netns.network import Host, Network

needs_iptables = pytest.mark.skipif(not shutil.which("iptables"), reason="needs iptables")
MATCH = ["-p", "udp", "-m", "statistic", "--mode", "nth", "--every"]


def drop_every(host: Host, nth: int) -> None:
    host("iptables", "-A", "INPUT", *MATCH, str(nth), "--packet", "0", "-j", "DROP")


def dropped(host: Host) -> int:
    listed = host("iptables", "-nvxL", "INPUT")
    (count,) = re.findall(r"^\s*(\d+)\s+\d+\s+DROP", listed, re.MULTILINE)
    return int(count)


@needs_iptables
@pytest.mark.parametrize("nth", [2, 10])
def test_what_the_path_dropped_is_what_is_counted_lost(
    rig: Rig, network: Network, nth: int
) -> None:
    """The firewall's own counter is the truth; the recording stays a few lines."""
    probe = rig.probe(prefix=network.server.prefix, BIND=network.address)
    agent = rig.agent(
        udp=(probe.udp_port, 1), prefix=network.client.prefix, address=network.address
    )
    agent.holding(20)
    drop_every(network.server, nth)
    agent.await_status(lambda s: s["udp"]["min_answers"] > 200, "200 answers in spite of it")
    truth_before = dropped(network.server)
    part = rig.recorded(agent)
    truth = dropped(network.server)
    ended = part.one("udp-0001", Event.FLOW_OPEN_AT_END).data
    counted = integer(ended["unanswered"])
    assert 10 < truth_before <= counted <= truth + 1  # one may be on its way
    assert ended["late"] == 0
    assert part.verdict("udp-0001") == ("survived-observation-window", "none")
    assert len(part.of("udp-0001")) < 12, "not a line for each of them"
