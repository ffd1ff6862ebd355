"""The conductor's handle on a real agent: its end is only good if it says so itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import parse_observation
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.process import AgentFailed, FlowAgent
from tests.loopback.rig import Rig


def plain(argv: Sequence[str]) -> list[str]:
    return list(argv)


@pytest.fixture
def agent(rig: Rig, tmp_path: Path) -> Iterator[FlowAgent]:
    """An agent that holds flows to a probe."""
    probe = rig.probe("pod-a")
    agent = FlowAgent(
        plain,
        AgentConfig(
            record=str(tmp_path / "part.jsonl"),
            tcp=Endpoint(address="127.0.0.1", port=probe.tcp_port, flows=2),
            udp=Endpoint(address="127.0.0.1", port=probe.udp_port, flows=2),
        ),
    )
    deadline = time.monotonic() + 20
    while agent.status().udp.min_answers < 5:
        assert time.monotonic() < deadline
        agent.wait_changed(0.1)
    yield agent
    with suppress(AgentFailed):
        agent.stop()


def test_a_told_end_is_a_good_end(agent: FlowAgent) -> None:
    agent.check_alive()
    agent.stop()
    agent.stop()
    assert agent.status().phase == "stopped"
    assert "agent_summary" in agent.part.read_text()


def test_a_plan_reaches_the_agent(agent: FlowAgent) -> None:
    lo_ns = time.monotonic_ns() + 200 * NS_PER_MS
    dense = Interval(lo_ns, lo_ns + 100 * NS_PER_MS)
    agent.plan(iter([dense]))
    time.sleep(0.5)
    agent.stop()
    lines = agent.part.read_text().splitlines()
    told = [parse_observation(line, number) for number, line in enumerate(lines, 1)]
    assert dense in [o.at for o in told if o.event is Event.AGENT_SENDING]


def test_a_plan_that_would_be_refused_is_a_failure_at_once(agent: FlowAgent) -> None:
    with pytest.raises(AgentFailed, match="refuse this plan: dense holds"):
        agent.plan([Interval(5, 9), Interval(9, 12)])
    agent.check_alive()


def test_a_plan_after_the_end_changes_nothing(agent: FlowAgent) -> None:
    agent.stop()
    agent.plan([Interval(1, 2)])


def test_an_agent_that_was_killed_is_a_failure(agent: FlowAgent) -> None:
    os.kill(agent.pid, signal.SIGKILL)
    with pytest.raises(AgentFailed, match="-9"):
        agent.stop()


def test_an_agent_that_ended_by_itself_is_a_failure(agent: FlowAgent) -> None:
    os.kill(agent.pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            agent.check_alive()
        except AgentFailed:
            break
        time.sleep(0.05)
    with pytest.raises(AgentFailed, match="by itself"):
        agent.stop()


def test_a_bad_configuration_is_said(tmp_path: Path) -> None:
    nowhere = AgentConfig(
        record=str(tmp_path / "missing" / "part.jsonl"),
        tcp=Endpoint(address="127.0.0.1", port=9, flows=1),
    )
    agent = FlowAgent(plain, nowhere)
    deadline = time.monotonic() + 20
    while agent.status().error is None and time.monotonic() < deadline:
        agent.wait_changed(0.1)
    with pytest.raises(AgentFailed, match="existing folder"):
        agent.check_alive()
    with pytest.raises(AgentFailed):
        agent.stop()


def test_it_leads_a_session_of_its_own(agent: FlowAgent) -> None:
    """A nice value counts within a session; and Ctrl-C at a terminal does not reach it."""
    assert os.getsid(agent.pid) == os.getpgid(agent.pid) == agent.pid != os.getsid(0)


def test_it_ends_with_a_conductor_that_is_killed(rig: Rig, tmp_path: Path) -> None:
    """Another session is no other life: the pipe closes."""
    probe = rig.probe()
    conductor = (
        "import sys, time\n"
        "from pytest_drainwatch.flows.config import AgentConfig, Endpoint\n"
        "from pytest_drainwatch.flows.process import FlowAgent\n"
        "end = Endpoint(address='127.0.0.1', port=int(sys.argv[1]), flows=1)\n"
        "agent = FlowAgent(list, AgentConfig(record=sys.argv[2], tcp=end))\n"
        "while agent.status().phase != 'holding': agent.wait_changed(0.1)\n"
        "print(agent.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    argv = [sys.executable, "-c", conductor, str(probe.tcp_port), str(tmp_path / "part")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert _lives(pid)
        process.kill()
    until = time.monotonic() + 20
    while _lives(pid):
        assert time.monotonic() < until, "an agent is left behind"
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    """Whether that process runs; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
