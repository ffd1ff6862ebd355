"""What measured trials say of the times that a shutdown budget needs.

Two figures of each trial: for how long new connections still came to the pod after its
deletion (what a preStop hook has to last for), and how long its container took from SIGTERM to
its own end (what the grace period has to leave). One value a trial, the upper end of what is
known: attempts of one trial are not independent, trials are. A trial that cannot tell a figure
is left out with the reason, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pytest_drainwatch.core.document import Report, TrialReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.jsonvalue import integer
from pytest_drainwatch.core.pod.ending import EndedBy
from pytest_drainwatch.core.repeats.alike import ASKED, SIMULATED
from pytest_drainwatch.core.repeats.repeat import conditions
from pytest_drainwatch.core.repeats.tolerance import UpperLimit, upper_limit
from pytest_drainwatch.core.scenario import Accept, Behavior, Trigger

# What the way to a pod depends on, and with it how long it takes to change.
_OF_THE_WAY = ("environment.", "config.access", "config.external_traffic_policy", "config.cluster")
# How an application ends does not depend on these, and on everything else that is its own.
_NOT_OF_THE_END = ("pre_stop", "grace_period_seconds", "ready_after_seconds")
# Those after which the pod's Service goes on with other pods, all ended at one instant.
_ONE_INSTANT = (Trigger.DELETE, Trigger.EVICT)


class MeasuredError(ValueError):
    """These trials cannot be used for advice; says why, and what was expected."""


class Name(StrEnum):
    """A figure."""

    PROPAGATION = "propagation"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of all trials: its values in ns, ascending, and its upper tolerance limit.

    ``bounds_only`` of the values are upper bounds and no more: nothing failed, so new connections
    had stopped coming some time before. ``left_out``: how many trials told nothing, by reason.
    """

    name: Name
    values_ns: tuple[int, ...]
    bounds_only: int
    left_out: Mapping[str, int]
    limit: UpperLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What ``trials`` trials say."""

    trials: int
    figures: tuple[Figure, ...]

    def figure(self, name: Name) -> Figure:
        """The figure of that name."""
        return next(figure for figure in self.figures if figure.name is name)


@dataclass(frozen=True, slots=True)
class _Value:
    ns: int
    bound_only: bool = False


def measured(
    reports: Iterable[tuple[str, Report]], quantile: Fraction, confidence: Fraction
) -> Measured:
    """The figures of trials, each with the name that an error gives it.

    Raises :class:`MeasuredError` for simulated trials, for trials of different ways to the pods
    (another Kubernetes, kube-proxy, kind of Service, …), and for none.
    """
    named = list(reports)
    if not named:
        raise MeasuredError("there is no trial; expected a folder of results with report.json")
    _refuse_unlike(named)
    trials = [report.trial for _, report in named]
    return Measured(
        trials=len(trials),
        figures=(
            _figure(Name.PROPAGATION, map(_propagation, trials), quantile, confidence),
            _figure(Name.SHUTDOWN, _shutdowns(trials), quantile, confidence),
        ),
    )


def _refuse_unlike(named: Sequence[tuple[str, Report]]) -> None:
    first: Mapping[str, object] | None = None
    for name, report in named:
        held = conditions(report)
        if held[SIMULATED]:
            raise MeasuredError(
                f"{name} is a simulated trial: a model predicted it, so it is no measurement. "
                "Expected measured ones: pytest scenarios/ or drainwatch run"
            )
        way = {key: value for key, value in held.items() if key.startswith(_OF_THE_WAY)}
        first = way if first is None else first
        for key in sorted(way.keys() | first.keys()):
            if way.get(key) != first.get(key):
                raise MeasuredError(
                    f"{key} is {first.get(key)!r} in {named[0][0]} and {way.get(key)!r} in {name}: "
                    "the ways to their pods differ, so their times are not of one distribution. "
                    "Expected trials of one cluster and one kind of Service; give them one by one"
                )


def _figure(
    name: Name, told: Iterable[_Value | str], quantile: Fraction, confidence: Fraction
) -> Figure:
    values, left_out = list[_Value](), Counter[str]()
    for each in told:
        if isinstance(each, str):
            left_out[each] += 1
        else:
            values.append(each)
    known_ns = tuple(sorted(value.ns for value in values))
    return Figure(
        name=name,
        values_ns=known_ns,
        bounds_only=sum(value.bound_only for value in values),
        left_out=dict(sorted(left_out.items())),
        limit=upper_limit(known_ns, quantile, confidence),
    )


def _propagation(trial: TrialReport) -> _Value | str:
    """Until when after the trigger new connections still came to the pod, at most; or why not."""
    config = trial.config
    if trial.trigger.verb not in _ONE_INSTANT:
        return f"trigger {trial.trigger.verb}: t = 0 is not when each pod was deleted"
    if integer(config.get("replicas"), 1) <= len(trial.trigger.targets):
        return "no other pod: connections fail until a replacement is Ready"
    if config.get("external_traffic_policy") == "Local":
        return "externalTrafficPolicy Local: the pods of other nodes do not count"
    if trial.degraded:
        return "degraded trial"
    tried = [each for each in trial.new_connections if each.proto is Proto.TCP]
    if not any(each.attempts for each in tried):
        return "no new TCP connections were tried"
    if any(each.not_judged or each.lost != 0 for each in tried):
        return "of some new connections it is not known what became of them"
    failing = [each for each in tried if each.observed_failing is not None]
    if not failing:
        return _none_failed(trial)
    # The last that failed was begun by then, and the next one was answered.
    return _Value(
        max(
            window.begun_ns[1] + (each.interval_ns or 0)
            for each in failing
            if (window := each.observed_failing) is not None
        )
    )


def _none_failed(trial: TrialReport) -> _Value | str:
    """They had stopped coming before the pod stopped accepting."""
    config = trial.config
    stops = config.get("drain_behavior") == Behavior.EXIT_NOW or (
        config.get("drain_behavior") == Behavior.DRAIN
        and config.get("accept_on_drain") != Accept.KEEP
    )
    stopped_ns = trial.summary.trigger_to_sigterm_ns
    if not stops or stopped_ns is None:
        return "none failed, and when the pod stopped accepting is not known"
    return _Value(stopped_ns[1], bound_only=True)


def _shutdowns(trials: Sequence[TrialReport]) -> Iterator[_Value | str]:
    """Of one application: what another one takes is of another distribution."""
    ways = sorted(name.partition(".")[2] for name in ASKED)
    own = [name for name in ways if name not in _NOT_OF_THE_END]
    differ = [name for name in own if len({repr(t.config.get(name)) for t in trials}) > 1]
    for trial in trials:
        yield f"applications differ in {', '.join(differ)}" if differ else _shutdown(trial)


def _shutdown(trial: TrialReport) -> _Value | str:
    """From SIGTERM to the end of the target's containers, at most; or why not."""
    if trial.degraded:
        return "degraded trial"
    ends = [end for end in trial.pod_ends if end.role is Role.TARGET]
    if not ends:
        return "no container's end was seen"
    if any(end.ended_by is not EndedBy.EXIT for end in ends):
        return "a container did not end by itself after SIGTERM, so what it needed is not known"
    took = [
        end.ended_ns[1] - signal[0]
        for end in ends
        if end.ended_ns is not None and (signal := end.sigterm_ns or end.stop_signal_ns) is not None
    ]
    return _Value(max(took)) if len(took) == len(ends) else "when SIGTERM came is not known"
