"""Leave one out: each trial is predicted from the others, and set beside what it measured.

The simulator knows no chance, so a prediction is one trial: that of the median latencies. Where
a latency is taken from other arms, their trials with the same place are left out as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.fidelity import balanced
from pytest_drainwatch.core.fidelity.compare import Pair, arm, broken
from pytest_drainwatch.core.fidelity.document import FIDELITY_SCHEMA, Fidelity, Held
from pytest_drainwatch.core.fidelity.fit import fit, own
from pytest_drainwatch.core.fidelity.requests import inputs_like
from pytest_drainwatch.core.fidelity.trial import FidelityError, Trial
from pytest_drainwatch.core.recording import Recording
from pytest_drainwatch.core.repeats.repeat import conditions
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.scenario.values import ScenarioError
from pytest_drainwatch.core.simulation.command import command
from pytest_drainwatch.core.simulation.latencies import Latencies

Simulate = Callable[[Scenario, Latencies], Recording]


def compare(trials: Sequence[Trial], simulate: Simulate, version: str) -> Fidelity:
    """Predict each of these trials without it. Raises :class:`FidelityError`."""
    in_order = sorted(trials, key=lambda trial: trial.label)
    plain = [trial for trial in in_order if trial.scenario.service.balancer is None]
    behind = [trial for trial in in_order if trial.scenario.service.balancer is not None]
    apart = _by_cluster(plain) if plain or not behind else {}
    clusters = [_held(alike, simulate) for alike in apart.values()]
    others = balanced.behind(behind)
    found = (
        *(line for one in clusters for each in one.arms for line in broken(each)),
        *(line for each in others for line in balanced.broken(each)),
    )
    return Fidelity(
        fidelity_schema=FIDELITY_SCHEMA,
        drainwatch_version=version,
        holds=not found,
        broken=found,
        clusters=tuple(clusters),
        load_balancers=others,
    )


def _held(trials: Sequence[Trial], simulate: Simulate) -> Held:
    arms = _by_arm(trials)
    numbers = {trial.label: number for each in arms.values() for number, trial in enumerate(each)}
    found = []
    for scenario, mine in arms.items():
        pairs = [
            _pair(trial, [o for o in trials if numbers[o.label] != number], simulate)
            for number, trial in enumerate(mine)
        ]
        strangers = [trial for trial in trials if trial.scenario.id != scenario]
        from_others = (
            _report(mine[0], simulate, fit(strangers, mine[0].scenario).latencies)
            if strangers
            else None
        )
        found.append(arm(scenario, pairs, from_others))
    fitted = [each for mine in arms.values() for each in fit(trials, mine[0].scenario).parameters]
    try:
        asked = inputs_like(trials)
    except ScenarioError as error:
        raise FidelityError(f"{trials[0].label} and its like: {error}") from error
    return Held(
        conditions={name: v for name, v in conditions(trials[0].report).items() if _place(name)},
        trials=len(trials),
        latencies=tuple(dict.fromkeys(fitted)),
        arms=tuple(found),
        simulate=None if asked is None else command(asked),
    )


def _pair(trial: Trial, others: Sequence[Trial], simulate: Simulate) -> Pair:
    known = fit(others, trial.scenario)
    return Pair(
        label=trial.label,
        measured=trial.report,
        predicted=_report(trial, simulate, known.latencies),
        replayed=_report(trial, simulate, own(trial, known)),
    )


def _report(trial: Trial, simulate: Simulate, latencies: Latencies) -> Report:
    """The simulated trial on a cluster whose kube-proxy syncs as seldom as the measured one's."""
    scenario, period_ms = trial.scenario, trial.report.environment.min_sync_period_ms
    try:
        if scenario.cluster.min_sync_period_ms is None and period_ms is not None:
            cluster = replace(scenario.cluster, min_sync_period_ms=period_ms)
            # What is waited for at most stays as it was.
            scenario = replace(scenario, cluster=cluster, observe_timeout_ns=scenario.observe_ns)
        return derive(simulate(scenario, latencies))
    except ScenarioError as error:
        raise FidelityError(f"{trial.label}: {error}") from error


def _by_cluster(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """Trials that share everything but the scenario: what was measured where, and by what."""
    if not trials:
        raise FidelityError("no trial; expected a folder of measured trials: drainwatch fidelity")
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        place = {name: v for name, v in conditions(trial.report).items() if _place(name)}
        found.setdefault(repr(sorted(place.items())), []).append(trial)
    return found


def _place(name: str) -> bool:
    return not name.startswith("config.") and name != "trigger"


def _by_arm(trials: Sequence[Trial]) -> Mapping[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.report.trial.scenario, []).append(trial)
    for scenario, mine in found.items():
        if len(mine) < 2:
            raise FidelityError(
                f"{mine[0].label}: the only trial of {scenario}: none is left to fit to when it is "
                "predicted. Expected at least two, as measured with: --dw-repeat 5"
            )
        first: Mapping[str, object] = conditions(mine[0].report)
        for other in mine[1:]:
            its = conditions(other.report)
            differs = [n for n in sorted(first.keys() | its.keys()) if first.get(n) != its.get(n)]
            if differs:
                raise FidelityError(
                    f"{other.label} and {mine[0].label} are no repeats of each other: "
                    f"{differs[0]} is {its.get(differs[0])!r} and {first.get(differs[0])!r}. "
                    "Give each of them a name of its own, or leave one out"
                )
    return found
