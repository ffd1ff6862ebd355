"""A report's configuration -> the scenario that it is of, checked: it must say the same again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import (
    App,
    ClusterNeeds,
    Flows,
    LoadBalancer,
    Scenario,
    Service,
)
from pytest_drainwatch.core.scenario.app import PreStop
from pytest_drainwatch.core.scenario.scenario import WORKLOADS
from pytest_drainwatch.core.scenario.values import ScenarioError

# Where a trial ran; no part of the scenario.
_PLACE = frozenset({"namespace", "target_host"})
_CONTROLLERS = {word: controller for controller, word in WORKLOADS.items()}


def scenario_of(report: Report) -> Scenario:
    """The scenario of a trial of the probe. Raises :class:`ScenarioError`.

    ``observe_timeout_seconds`` is taken as asked for only where it is not the default.
    """
    config = {name: v for name, v in report.trial.config.items() if name not in _PLACE}
    if isinstance(config.get("attached"), Mapping):
        raise ScenarioError(
            "it is of a workload of the user's, which the simulator does not know; expected a "
            "trial of the probe"
        )
    try:
        scenario = _scenario(config, report.trial.scenario)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ScenarioError(f"its configuration is not that of a scenario: {why}") from error
    again = scenario.config()
    differs = sorted(
        name for name in config.keys() | again.keys() if config.get(name) != again.get(name)
    )
    if differs:
        name = differs[0]
        raise ScenarioError(
            f"its configuration cannot be rebuilt: {name} is {config.get(name)!r} in the report "
            f"and {again.get(name)!r} in the scenario of it; was it written by another version?"
        )
    return scenario


def _scenario(config: Mapping[str, Any], name: str) -> Scenario:
    asked: dict[str, Any] = {
        "app": _app(config),
        "flows": _flows(config),
        "service": Service(
            access=config["access"],
            external_traffic_policy=config["external_traffic_policy"],
            session_affinity=config["session_affinity"],
            publish_not_ready_addresses=config["publish_not_ready_addresses"],
            balancer=_balancer(config.get("balancer")),
            **_given(config, "via_node"),
        ),
        "cluster": ClusterNeeds(**config["cluster"]),
        "trigger": config["trigger"],
        "targets": config["targets"],
        "settle_ns": _ns(config["settle_seconds"], NS_PER_S),
        "name": name,
    }
    usual = Scenario(**asked)
    observe_ns = _ns(config["observe_timeout_seconds"], NS_PER_S)
    return (
        usual
        if usual.observe_ns == observe_ns
        else Scenario(**asked, observe_timeout_ns=observe_ns)
    )


def _app(config: Mapping[str, Any]) -> App:
    return App(
        behavior=config["drain_behavior"],
        readiness_on_drain=config["readiness_on_drain"],
        drain_ns=_ns(config["drain_max_seconds"], NS_PER_S),
        grace_period_s=config["grace_period_seconds"],
        exit_now_reset=config["exit_now_reset"],
        replicas=config["replicas"],
        pre_stop=_hook(config["pre_stop"]),
        pid1=config["pid1"],
        response_delay_ns=_ns(config["response_delay_ms"], NS_PER_MS),
        accept_on_drain=config["accept_on_drain"],
        controller=_CONTROLLERS[config["workload"]],
        ready_after_s=config["ready_after_seconds"],
        **_given(config, "spread_over_nodes"),
    )


def _balancer(said: Mapping[str, Any] | None) -> LoadBalancer | None:
    if said is None:
        return None
    return LoadBalancer(
        check_interval_ns=_ns(said["check_interval_ms"], NS_PER_MS),
        fall=said["fall"],
        rise=said["rise"],
        deregistration_ns=_ns(said["deregistration_seconds"], NS_PER_S),
    )


def _hook(said: Mapping[str, Any] | None) -> PreStop | None:
    if said is None:
        return None
    if "sleep_seconds" in said:
        return PreStop(sleep_s=said["sleep_seconds"])
    if "http_get_seconds" in said:
        return PreStop(http_ns=_ns(said["http_get_seconds"], NS_PER_S))
    return PreStop(exec=tuple(said["exec"]))


def _flows(config: Mapping[str, Any]) -> Flows:
    interval_ns = _ns_or_none(config["probe_interval_ms"])
    udp_interval_ns = _ns_or_none(config["udp_probe_interval_ms"])
    asked: dict[str, Any] = {
        "tcp": config["tcp_flows"],
        "udp": config["udp_flows"],
        "tcp_rate_hz": config["tcp_rate_hz"],
        "udp_rate_hz": config["udp_rate_hz"],
        "tcp_sparse_rate_hz": config["tcp_sparse_rate_hz"],
        "udp_sparse_rate_hz": config["udp_sparse_rate_hz"],
        "udp_one_way": config["udp_one_way_flows"],
        "probe_interval_ns": interval_ns,
        "udp_probe_interval_ns": udp_interval_ns,
        **_given(config, "probe_each_node"),
    }
    sparse = (
        _ns_or_none(config["probe_sparse_interval_ms"]),
        _ns_or_none(config["udp_probe_sparse_interval_ms"]),
    )
    usual = Flows(**asked)
    if usual.probe_sparse_intervals_ns == sparse:
        return usual
    pairs = zip(sparse, (interval_ns, udp_interval_ns), strict=True)
    every = [wide // narrow for wide, narrow in pairs if wide and narrow]
    return Flows(**asked, probe_sparse_every=every[0]) if every else usual


def _given(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a report says only where it is asked for."""
    return {name: config[name]} if name in config else {}


def _ns(value: float, unit_ns: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is no number")
    return round(value * unit_ns)


def _ns_or_none(ms: float | None) -> int | None:
    return None if ms is None else _ns(ms, NS_PER_MS)
