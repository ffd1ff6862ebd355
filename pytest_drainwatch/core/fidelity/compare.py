"""Predictions beside measurements: errors, and whether the prediction came true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.fidelity.document import Arm, Fates, Figure
from pytest_drainwatch.core.repeats.fates import FlowFate
from pytest_drainwatch.core.repeats.repeat import repeat
from pytest_drainwatch.core.repeats.stats import median, statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A measured trial, its prediction, and its replay with the latencies that it shows itself."""

    label: str
    measured: Report
    predicted: Report
    replayed: Report


def arm(scenario: str, pairs: Sequence[Pair], from_others: Report | None) -> Arm:
    """All trials of one scenario; ``from_others`` is predicted from the other scenarios alone."""
    return Arm(
        scenario=scenario,
        trials=tuple(pair.label for pair in pairs),
        figures=tuple(_figures(pairs, from_others)),
        fates=tuple(_fates(pairs)),
    )


def broken(found: Arm) -> Iterator[str]:
    """What did not come true, in words."""
    for fates in found.fates:
        if fates.outcomes_equal < fates.flows:
            yield (
                f"{found.scenario}: {fates.group} flows: {fates.outcomes_equal} outcomes of "
                f"{fates.flows} as predicted; mechanisms measured {_counted(fates.measured)}, "
                f"predicted {_counted(fates.predicted)}"
            )
        for way in fates.strange:
            yield (
                f"{found.scenario}: {fates.group} flows: {way} as often as no trial measured it: "
                f"measured {_counted(fates.measured)}, predicted {_counted(fates.predicted)}"
            )
    for figure in found.figures:
        if figure.inside is False:
            yield f"{found.scenario}: {figure.metric}: {_outside(figure)}"


def figures_of(report: Report) -> dict[str, int | None]:
    """Every figure of a trial, by its name: as it is shown, in ns."""
    found = repeat(report, "")
    readings = (*found.metrics.items(), *found.own_metrics.items())
    return {str(name): at.shown_ns if at else None for name, at in readings}


def _figures(pairs: Sequence[Pair], from_others: Report | None) -> Iterator[Figure]:
    sides = [
        [figures_of(report) for report in side]
        for side in (
            [pair.measured for pair in pairs],
            [pair.predicted for pair in pairs],
            [pair.replayed for pair in pairs],
        )
    ]
    elsewhere: dict[str, int | None] = {} if from_others is None else figures_of(from_others)
    for metric in dict.fromkeys(name for side in sides for one in side for name in one):
        measured, predicted, replayed = ([one.get(metric) for one in side] for side in sides)
        yield _figure(metric, measured, predicted, replayed, elsewhere.get(metric))


def _figure(
    metric: str,
    measured: Sequence[int | None],
    predicted: Sequence[int | None],
    replayed: Sequence[int | None],
    from_others_ns: int | None,
) -> Figure:
    truth, said = statistics(measured), statistics(predicted)
    error_ns: int | None = None
    percent: float | None = None
    inside: bool | None = None
    if truth.minimum is not None and truth.maximum is not None and truth.median is not None:
        # What was measured and not predicted is no pass.
        inside = said.median is not None and truth.minimum <= said.median <= truth.maximum
        if said.median is not None:
            error_ns = said.median - truth.median
            percent = 100 * error_ns / abs(truth.median) if truth.median else None
    apart = [
        abs(again - was)
        for was, again in zip(measured, replayed, strict=True)
        if was is not None and again is not None
    ]
    return Figure(
        metric=metric,
        measured=truth,
        predicted=said,
        error_ns=error_ns,
        error_percent=None if percent is None else round(percent, 2),
        inside=inside,
        replayed=statistics(replayed),
        replay_error_ns=max(apart, default=None),
        from_others_ns=from_others_ns,
    )


def _fates(pairs: Sequence[Pair]) -> Iterator[Fates]:
    sides = [(_by_group(pair.measured), _by_group(pair.predicted)) for pair in pairs]
    drawn = any(pair.measured.trial.config.get("replicas") != 1 for pair in pairs)
    for group in sorted({group for both in sides for side in both for group in side}):
        flows = outcomes = mechanisms = 0
        truths, guesses = list[Counter[str]](), list[Counter[str]]()
        for truth, guess in ((a.get(group, {}), b.get(group, {})) for a, b in sides):
            ways, guessed = _ways(truth.values()), _ways(guess.values())
            truths.append(ways)
            guesses.append(guessed)
            if drawn:
                foretold = {each.outcome for each in guess.values()}
                flows += len(truth)
                outcomes += sum(each.outcome in foretold for each in truth.values())
                mechanisms += sum(count for way, count in ways.items() if way in guessed)
                continue
            flows += max(len(truth), len(guess))
            outcomes += sum(
                each.outcome == guess[name].outcome for name, each in truth.items() if name in guess
            )
            mechanisms += (ways & guessed).total()
        known = sorted({way for each in (*truths, *guesses) for way in each})
        yield Fates(
            group=group,
            flows=flows,
            outcomes_equal=outcomes,
            mechanisms_equal=mechanisms,
            measured={way: sum(each[way] for each in truths) for way in known},
            predicted={way: sum(each[way] for each in guesses) for way in known},
            strange=tuple(way for way in known if not drawn and not _usual(way, truths, guesses)),
        )


def _usual(way: str, truths: Sequence[Counter[str]], guesses: Sequence[Counter[str]]) -> bool:
    """Whether trials measured it as often as it is predicted, by the median."""
    seen = [each[way] for each in truths]
    return min(seen) <= median([each[way] for each in guesses]) <= max(seen)


def _by_group(report: Report) -> dict[str, dict[str, FlowFate]]:
    found: dict[str, dict[str, FlowFate]] = {}
    for fate in repeat(report, "").flows:
        found.setdefault(fate.group, {})[fate.id] = fate
    return found


def _ways(fates: Iterable[FlowFate]) -> Counter[str]:
    return Counter(each.mechanism for each in fates)


def _counted(ways: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {way}" for way, count in ways.items() if count) or "none"


def _outside(figure: Figure) -> str:
    truth, said = figure.measured, figure.predicted
    ms = [None if ns is None else ns / 1e6 for ns in (said.median, truth.minimum, truth.maximum)]
    if ms[0] is None:
        return f"measured {ms[1]:.1f} to {ms[2]:.1f} ms, and not predicted"
    return f"predicted median {ms[0]:.1f} ms, measured {ms[1]:.1f} to {ms[2]:.1f} ms"
