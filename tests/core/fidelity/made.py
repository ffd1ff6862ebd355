"""Trials whose latencies are known, for they are simulated; passed off as measured ones here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.fidelity.trial import Trial, measured
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.scenario import App, Behavior, Flows, Scenario, Trigger
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.trial import simulate_trial

FLOWS = Flows(tcp=3, udp=3, tcp_rate_hz=5, udp_rate_hz=30, probe_interval_ns=10 * NS_PER_MS)
DRAINS = Scenario(
    app=App(drain_ns=4 * NS_PER_S, grace_period_s=10),
    flows=FLOWS,
    settle_ns=1 * NS_PER_S,
)


def as_behaving(behavior: Behavior) -> Scenario:
    """The same with another behaviour."""
    return replace(DRAINS, app=replace(DRAINS.app, behavior=behavior))


EXITS, IGNORES = as_behaving(Behavior.EXIT_NOW), as_behaving(Behavior.IGNORE)
SCALED = replace(DRAINS, trigger=Trigger.SCALE)


def unmarked(recording: Recording) -> Recording:
    """As if it had been measured."""
    return replace(recording, header=replace(recording.header, simulated=False))


def trial(scenario: Scenario, took: Latencies, label: str = "r00") -> Trial:
    """A trial that met these latencies."""
    recording = unmarked(simulate_trial(scenario, took))
    return measured(label, derive(recording), recording)


def repeats(scenario: Scenario, all_took: Iterable[Latencies]) -> list[Trial]:
    """Repeats of one scenario, each with latencies of its own."""
    return [
        trial(scenario, took, f"{scenario.id}/r{number:02d}")
        for number, took in enumerate(all_took)
    ]
