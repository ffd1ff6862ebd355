"""What is said to a workload of the user's, and the checks that it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_drainwatch import preflight
from pytest_drainwatch.core.scenario import Http, Scenario, Workload
from pytest_drainwatch.core.scenario.workload import as_bytes
from pytest_drainwatch.flows.config import AgentConfig, Endpoint
from pytest_drainwatch.flows.http.config import HttpConfig
from pytest_drainwatch.flows.plain import Exchange
from pytest_drainwatch.flows.process import AgentFailed, AgentStatus, FlowAgent
from pytest_drainwatch.way import Way


def said_to(asked: Workload, config: AgentConfig, way: Way, share: int) -> AgentConfig:
    """The same task on a workload of the user's: what is said there, and to whom.

    Nobody there tells who answers, so flows cannot be dialled to a certain pod: of ``share``
    times as many as asked for, about as many as asked for lead to a target.
    """
    http = asked.http
    if http is not None:
        address = HttpConfig.of(
            http, address=way.address, port=way.tcp, source_address=config.source_address
        )
        return replace(config, tcp=None, udp=None, target=None, http=address)
    protocol = asked.protocol
    assert not isinstance(protocol, Http)
    exchange = Exchange.of(as_bytes(protocol.send), as_bytes(protocol.expect))

    def more(end: Endpoint | None) -> Endpoint | None:
        return replace(end, flows=end.flows * share) if end and end.flows else None

    return replace(
        config,
        tcp=more(config.tcp),
        udp=more(config.udp),
        target=None,
        plain=exchange,
        probers=tuple(replace(each, exchange=exchange) for each in config.probers),
    )


def attached_checks(
    agent: FlowAgent, asked: Scenario, *, nodes: int = 1
) -> list[Callable[[], preflight.Check]]:
    """The same of a workload of the user's, which does not say who answers."""
    wanted, workload = asked.flows, asked.workload
    assert workload is not None

    def look(check: Callable[[AgentStatus], preflight.Check]) -> Callable[[], preflight.Check]:
        return lambda: check(agent.status())

    def error() -> str | None:
        return problem_of(agent)

    if workload.http is not None:
        http = workload.http
        return [look(lambda now: preflight.requests_answered(http, now.http, error()))]
    return [
        look(lambda now: preflight.tcp_answered(wanted, now.tcp, error())),
        look(lambda now: preflight.udp_answered(wanted, now.udp, error())),
        look(lambda now: preflight.new_connections_answered(wanted, now.probers, error(), nodes)),
    ]


def problem_of(agent: FlowAgent) -> str | None:
    """Why the agent can do no more; None: it works."""
    try:
        agent.check_alive()
    except AgentFailed as failed:
        return str(failed)
    return None
