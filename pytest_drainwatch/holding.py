"""What the flow agent is told to hold, and the checks that it really does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch import preflight, via
from pytest_drainwatch.core.scenario import Flows
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.probing.config import ProberConfig
from pytest_drainwatch.flows.process import AgentStatus, FlowAgent
from pytest_drainwatch.recorder import Recorder
from pytest_drainwatch.standing import Standing
from pytest_drainwatch.traffic import attached_checks, problem_of, said_to
from pytest_drainwatch.trigger.calls import ended_by
from pytest_drainwatch.way import Way

PART = ".flows.jsonl"  # the agent's own part of the recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Flows that passed preflight, held open by their agent."""

    probe: Standing
    agent: FlowAgent


def task_of(ready: Standing, *, agents: int) -> AgentConfig:
    """What the agent is to do to the workload that stands there."""
    stage, asked = ready.stage, ready.stage.scenario.workload
    config = agent_config(
        stage.scenario.flows, ready.way, ready.target.pod.uid, stage.folder, agents=agents
    )
    if asked is None:
        return config
    going = ended_by(stage.scenario.trigger, ready.target)
    share = -(-(len(ready.target.pods) + ready.strangers) // max(1, len(going)))
    return said_to(asked, config, ready.way, share)


def checks_of(ready: Standing, agent: FlowAgent) -> list[Callable[[], preflight.Check]]:
    """What must hold of the agent's traffic before anything is measured, in order."""
    stage, wanted = ready.stage, ready.stage.scenario.flows
    nodes = 1 + len(ready.way.other_nodes) * wanted.probe_each_node
    if stage.scenario.workload is not None:
        return attached_checks(agent, stage.scenario, nodes=nodes)
    return flow_checks(agent, wanted, stage.recorder, nodes=nodes)


def agent_config(
    flows: Flows, way: Way, target: str, folder: Path, *, agents: int = 1
) -> AgentConfig:
    """The agent's task: ``flows`` on the pod ``target``, and new connections beside them.

    So many ``agents`` share this machine.
    """

    def endpoint(port: int, number: int) -> Endpoint:
        return Endpoint(address=way.address, port=port, flows=number)

    return AgentConfig(
        record=str(folder / PART),
        tcp=endpoint(way.tcp, flows.tcp),
        udp=endpoint(way.udp, flows.udp),
        udp_one_way=endpoint(way.udp, flows.udp_one_way) if flows.udp_one_way else None,
        target=target,
        source_address=way.source(0),
        tcp_rate_hz=flows.tcp_rate_hz,
        udp_rate_hz=flows.udp_rate_hz,
        tcp_sparse_rate_hz=flows.sparse_rates_hz[0],
        udp_sparse_rate_hz=flows.sparse_rates_hz[1],
        agents=agents,
        probers=tuple(_probers(flows, way)),
    )


def flow_checks(
    agent: FlowAgent, wanted: Flows, recorder: Recorder, *, nodes: int = 1
) -> list[Callable[[], preflight.Check]]:
    """What must hold of the flows before anything is measured, in the order of looking.

    New TCP connections are tried at so many ``nodes``.
    """

    def error() -> str | None:
        return problem_of(agent)

    def look(check: Callable[[AgentStatus], preflight.Check]) -> Callable[[], preflight.Check]:
        return lambda: check(agent.status())

    def received() -> preflight.Check:
        return preflight.one_way_received(wanted, recorder.observations(), error())

    return [
        look(lambda now: preflight.flows_dialled(wanted, now.tcp, now.udp, error())),
        look(lambda now: preflight.tcp_answered(wanted, now.tcp, error())),
        look(lambda now: preflight.udp_answered(wanted, now.udp, error())),
        look(lambda now: preflight.clock_identified(now.clocks, error())),
        *([received] if wanted.udp_one_way else []),
        look(lambda now: preflight.new_connections_answered(wanted, now.probers, error(), nodes)),
    ]


def _probers(flows: Flows, way: Way) -> Iterator[ProberConfig]:
    """Each from an address of its own, as far as the way has so many: a prober that shares the
    flows' one uses up their refusals (K13). Those of further nodes come last.
    """
    asked = (
        ("tcp", way.tcp, flows.probe_interval_ns),
        ("udp", way.udp, flows.udp_probe_interval_ns),
    )
    for number, (proto, port, interval_ns) in enumerate(asked, 1):
        if interval_ns is not None:
            yield ProberConfig(
                proto=proto,
                address=way.address,
                port=port,
                source_address=way.source(number),
                interval_ns=interval_ns,
                sparse_every=flows.sparse_every(interval_ns),
                node=way.node,
            )
    if flows.probe_each_node and flows.probe_interval_ns is not None:
        via.check_each_node(way.node)
        for number, (node, address) in enumerate(way.other_nodes, 2):
            yield ProberConfig(
                proto="tcp",
                address=address,
                port=way.tcp,
                source_address=way.source(number + 1),
                interval_ns=flows.probe_interval_ns,
                sparse_every=flows.sparse_every(flows.probe_interval_ns),
                number=number,
                node=node,
            )
