"""Cases in which the right answer is to measure nothing: the path, the start, the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pytest_drainwatch import Flows, Scenario, TrialVoid
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.flow.classify import classify
from pytest_drainwatch.core.flow.life import live
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import Header, loads
from pytest_drainwatch.core.start import CannotDerive
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.process import FlowAgent
from pytest_drainwatch.preflight import EndpointStability, require, udp_answered
from pytest_drainwatch.recorder import Recorder
from pytest_drainwatch.stage import Stage
from tests.cluster.harness import Silent
from tests.conductor.api_server import reply, serving
from tests.core import story as s
from tests.core.story import NEW, OLD
from tests.loopback.rig import LOOPBACK, Agent, Rig
from tests.loopback.servers import ScriptedUdp, pong
from tests.netns.network import Network, NoNamespaces


def plain(argv: Sequence[str]) -> list[str]:
    return list(argv)


@pytest.mark.parametrize(("carries", "passes"), [(50, False), (59, False), (10_000, True)])
def test_c10_a_path_that_dies_after_some_datagrams_is_found_out(
    tmp_path: Path, carries: int, passes: bool
) -> None:
    """Docker Desktop's port mapping was like that: the first fifty datagrams prove nothing.

    Sixty answers are asked for on each flow; a path that dies later than that is not found.
    """
    folder = tmp_path / "r00"

    def script(seq: int, peer: str) -> list[bytes]:
        return [pong(seq)] if seq <= carries else []

    with ScriptedUdp(script) as server:
        udp = Endpoint(address=LOOPBACK, port=server.port, flows=1)
        agent = FlowAgent(plain, AgentConfig(record=str(tmp_path / "part.jsonl"), udp=udp))
        try:
            with staged(folder, tmp_path) as stage, stage.phase("preflight"):
                _answered(agent, stage.recorder)
            found_out = None
        except TrialVoid as void:
            found_out = str(void)
        finally:
            agent.stop()
    assert (found_out is None) == passes
    recording = loads((folder / "recording.jsonl").read_text())
    (check,) = [o for o in recording.observations if o.event is Event.PREFLIGHT_CHECK]
    assert check.data["passed"] is passes
    if found_out is not None:
        assert "over the path that is measured" in found_out
        assert "a port mapping that drops UDP" in found_out
        assert [path.name for path in folder.iterdir()] == ["recording.jsonl"], "and no report"
        with pytest.raises(CannotDerive, match="the trial is void in phase preflight"):
            derive(recording)


@contextmanager
def staged(folder: Path, keep: Path) -> Iterator[Stage]:
    """A trial's stage, with an API server that has no evidence to add."""
    header = Header(
        drainwatch_version="test",
        git_commit="test",
        trial_id="c10",
        wall_clock_start="",
        clock="",
        scenario={},
        environment={},
    )
    with serving(lambda handler, _: reply(handler, {"items": []}), keep) as (api, _):
        recorder = Recorder(folder / "recording.jsonl", header)
        try:
            yield Stage(
                cluster=None,  # type: ignore[arg-type]
                api=api,
                scenario=Scenario(),
                folder=folder,
                recorder=recorder,
                image="",
                namespace="ns",
                progress=Silent(),
            )
        finally:
            recorder.close()


def _answered(agent: FlowAgent, record: Recorder) -> None:
    require(
        lambda: udp_answered(Flows(tcp=0, udp=1), agent.status().udp, None),
        record,
        timeout_s=4,
        wait=agent.wait_changed,
    )


def test_c60_an_endpoint_of_an_earlier_trial_satisfies_nothing() -> None:
    """This pod's UID, without a break, for two of kube-proxy's sync periods."""
    stable = EndpointStability(2 * NS_PER_S)

    def ready(ms: int, *uids: str) -> bool:
        endpoints = [{"uid": uid, "ready": True} for uid in uids]
        slices = {"probe-abc": {"endpoints": endpoints}}
        return stable.check(slices, ["new"], ms * NS_PER_MS, "ns").passed

    assert not ready(0, "old")
    assert not ready(5000, "old"), "however long it has been there"
    assert not ready(6000, "old", "new")
    assert not ready(7000, "new"), "not for long enough"
    assert not ready(8000), "a break"
    assert not ready(8500, "new")
    assert ready(10_500, "new")


@pytest.mark.parametrize("proto", Proto)
def test_c60_a_flow_that_dies_before_the_trigger_aborts(proto: Proto) -> None:
    """Cut when kube-proxy converged: that is the harness's doing, and no trial."""
    flow = f"{proto}-0001"
    cut = {
        Proto.TCP: s.client(Event.FLOW_RESET, flow, s.at(-800, -799), errno="ECONNRESET"),
        Proto.UDP: s.responder(flow, NEW, -800, -783, previous=OLD),
    }[proto]
    parts = ([s.accepted()], [*s.alive(flow, -801), cut], s.cluster())
    with pytest.raises(CannotDerive, match=rf"1 flow\(s\) ended before the trigger \({flow}\)"):
        derive(s.recording(*parts))
    kept = [s.client(Event.FLOW_OPEN_AT_END, flow, s.at(59_990), sent=9, answered=9)]
    assert derive(s.recording([s.accepted()], s.alive(flow, 59_989), kept, s.cluster()))


def test_c69_no_source_port_left_is_our_own_limit(tmp_path: Path) -> None:
    """Four source ports, three of them taken: EADDRNOTAVAIL by name, and nobody refused us."""
    try:
        network = Network()
    except NoNamespaces as reason:
        pytest.skip(str(reason))
    rig = Rig(tmp_path)
    with network, closing(rig):
        network.client("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=50000 50003")
        probe = rig.probe("pod-a", prefix=network.node.prefix, BIND=network.address)

        def hold(flows: int) -> Agent:
            where = (probe.tcp_port, flows)
            return rig.agent(where, prefix=network.client.prefix, address=network.address)

        hold(3).holding()
        second = hold(4)
        assert second.wait() == 1
        part = rig.recorded(second)
    assert "EADDRNOTAVAIL" in second.lines[-1]["error"]["what"]
    assert part.all(Event.FLOW_CONNECT_FAILED) == [], "no failure is laid at the peer's door"
    unopened = s.client(Event.FLOW_CONNECT_FAILED, "tcp-0001", s.at(0, 1), errno="EADDRNOTAVAIL")
    verdict = classify(live(Proto.TCP, [unopened], frozenset()))
    assert verdict == ("not-measured", "client-limit")
