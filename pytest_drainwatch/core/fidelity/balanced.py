"""Trials behind a load balancer: how long it goes on sending, predicted from the others.

What a load balancer adds to a pod's end is one time, ``load_balancer_ns`` of ``drainwatch
simulate``: until then it sends new connections there. It is the same whatever the pod does, so
it is fitted over all scenarios that have the same load balancer, and with it each trial is
predicted: whether new connections fail, and for how long. When a balancer's checks fall is chance,
so the time for which they fail is not judged by the others' times but by the trial's own: with
those it must be what was measured, as far as instants and attempts are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_drainwatch.core.fidelity.document import Behind
from pytest_drainwatch.core.fidelity.trial import FidelityError, Trial
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, Bounds
from pytest_drainwatch.core.pod.kubelet import sigterm_after
from pytest_drainwatch.core.probing.document import NewConnections
from pytest_drainwatch.core.repeats.stats import median, statistics
from pytest_drainwatch.core.scenario.app import Accept, Pid1
from pytest_drainwatch.core.simulation.command import command
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.routes import LOAD_BALANCER
from pytest_drainwatch.core.simulation.run import simulate

# Of the simulated requests only when new ones come matters.
_SHORT_NS = NS_PER_MS


def behind(trials: Sequence[Trial]) -> tuple[Behind, ...]:
    """Each scenario's trials, predicted without the one in question.

    Raises :class:`FidelityError` for trials that do not tell, and for one trial alone.
    """
    found = []
    for alike in _by_balancer(trials).values():
        if len(alike) < 2:
            raise FidelityError(
                f"{alike[0].label}: the only trial behind its load balancer; expected two or more, "
                "for each is predicted from the others"
            )
        for scenario in sorted({trial.scenario.id for trial in alike}):
            mine = [trial for trial in alike if trial.scenario.id == scenario]
            found.append(_behind(scenario, mine, alike))
    return tuple(found)


def broken(one: Behind) -> Iterator[str]:
    """What does not hold, in words."""
    count = len(one.trials)
    if one.verdicts_equal < count:
        yield (
            f"{one.scenario}: whether new connections fail was foretold of {one.verdicts_equal} "
            f"of {count} trials"
        )
    if one.replays_right < count:
        yield (
            f"{one.scenario}: with its own times, {count - one.replays_right} of {count} trials "
            "fail for another time than measured, by up to "
            f"{one.replay_error_ns / NS_PER_MS:.0f} ms"
        )


def _by_balancer(trials: Sequence[Trial]) -> Mapping[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(repr(trial.scenario.service.balancer), []).append(trial)
    return found


def _behind(scenario: str, mine: Sequence[Trial], alike: Sequence[Trial]) -> Behind:
    foretold = [_inputs(trial, [o for o in alike if o is not trial]) for trial in mine]
    failing = [_failing(trial) for trial in mine]
    predicted = [_failing_predicted(inputs) for inputs in foretold]
    replayed = [_failing_predicted(_inputs(trial, [trial])) for trial in mine]
    errors = [again - truth for again, truth in zip(replayed, failing, strict=True)]
    return Behind(
        scenario=scenario,
        trials=tuple(trial.label for trial in mine),
        sends=statistics(_sends(trial)[1] for trial in mine),
        sends_predicted=statistics(inputs.load_balancer_ns for inputs in foretold),
        failing=statistics(failing),
        failing_predicted=statistics(predicted),
        verdicts_equal=sum((a > 0) == (b > 0) for a, b in zip(failing, predicted, strict=True)),
        replay_error_ns=max(errors, key=abs),
        replays_right=sum(
            -_vague(trial) <= error <= _vague(trial) + 2 * _interval(trial)
            for trial, error in zip(mine, errors, strict=True)
        ),
        simulate=command(_rounded(_inputs(mine[0], alike))),
    )


def _inputs(trial: Trial, others: Sequence[Trial]) -> Inputs:
    """This trial as inputs of the simulator, with the times that the others show."""
    app = trial.scenario.app
    if app.accept_on_drain is Accept.KEEP or app.pid1 is Pid1.SHELL:
        raise FidelityError(
            f"{trial.label}: how its app ends is not modelled behind a load balancer; expected one "
            "that is PID 1 and closes its listener on SIGTERM"
        )
    return Inputs(
        grace_period_s=app.grace_period_s,
        pre_stop_ns=app.pre_stop.lasts_ns if app.pre_stop else 0,
        behavior=app.behavior,
        drain_ns=app.drain_ns,
        nodes=1,
        propagation_ns=0,
        load_balancer_ns=median([_sends(other)[1] for other in others]),
        longest_ns=_SHORT_NS,
        keepalive=False,
        kubelet_ns=max(0, median([_late(other) for other in others])),
    )


def _failing_predicted(inputs: Inputs) -> int:
    """For how long the load balancer sends to a closed port."""
    run = simulate(inputs)
    (route,) = (each for each in run.routes if each.source == LOAD_BALANCER)
    return max(0, route.until_ns - run.life.listener_closed_ns)


def _sends(trial: Trial) -> Bounds:
    """Until when after the trigger it sent new connections to the pod's node."""
    ends = [
        closes
        for pod in trial.report.trial.windows
        if pod.load_balancer is not None
        and (closes := pod.load_balancer.sends.closes_ns) is not None
    ]
    if len(ends) != 1:
        raise FidelityError(
            f"{trial.label}: it tells of {len(ends)} ends of the load balancer's sending; expected "
            "one pod, whose node it stopped sending to"
        )
    return ends[0]


def _sigterm(trial: Trial) -> Bounds:
    told = trial.report.trial.summary.trigger_to_sigterm_ns
    if told is None:
        raise FidelityError(f"{trial.label}: when SIGTERM came is not known; expected the probe")
    return told


def _late(trial: Trial) -> int:
    """How much later than the hook alone would have it SIGTERM came."""
    app = trial.scenario.app
    hook_ns = app.pre_stop.lasts_ns if app.pre_stop else 0
    return _sigterm(trial)[1] - sigterm_after(app.grace_period_s, hook_ns)


def _vague(trial: Trial) -> int:
    """How far the measured instants are known: what no replay can be held to."""
    return sum(hi - lo for lo, hi in (_sends(trial), _sigterm(trial)))


def _tried(trial: Trial) -> list[NewConnections]:
    tried = [each for each in trial.report.trial.new_connections if each.proto is Proto.TCP]
    if not any(each.attempts for each in tried):
        raise FidelityError(f"{trial.label}: no new TCP connections were tried; expected a prober")
    return tried


def _interval(trial: Trial) -> int:
    """The longest time between two attempts that come to one node, for it gets them in turn.

    The first and the last that fail may be begun that far inside of the time in which any would.
    """
    apart_ns = max(
        (every.interval_ns or 0 for each in _tried(trial) for every in each.by_interval), default=0
    )
    return apart_ns * (trial.scenario.cluster.nodes or 1)


def _failing(trial: Trial) -> int:
    """From the first new connection that failed to the last, both when begun; 0: none did."""
    windows = [each.observed_failing for each in _tried(trial) if each.observed_failing]
    return max((window.begun_ns[1] - window.begun_ns[0] for window in windows), default=0)


def _rounded(inputs: Inputs) -> Inputs:
    """For people: to a ms."""

    def to_ms(ns: int) -> int:
        return (ns + NS_PER_MS // 2) // NS_PER_MS * NS_PER_MS

    return replace(
        inputs,
        load_balancer_ns=to_ms(inputs.load_balancer_ns or 0),
        kubelet_ns=to_ms(inputs.kubelet_ns),
    )
