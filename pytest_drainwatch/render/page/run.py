"""A run's summary, and its comparison with a baseline -> the page's run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.repeats.aggregate import Repeat
from pytest_drainwatch.core.repeats.compared import Comparison as Compared
from pytest_drainwatch.core.repeats.compared import FigureFound, ScenarioFound, Verdict
from pytest_drainwatch.core.repeats.document import MetricSummary, ScenarioSummary
from pytest_drainwatch.core.repeats.fates import FlowFate
from pytest_drainwatch.core.repeats.metrics import Metric, OwnMetric, Reading, Tally
from pytest_drainwatch.core.repeats.summary import State, Summary, name_of
from pytest_drainwatch.render import compare
from pytest_drainwatch.render.aggregate import between
from pytest_drainwatch.render.page.data import (
    At,
    Comparison,
    Fate,
    Measure,
    Missing,
    Question,
    Run,
    ScenarioRow,
    Tone,
)
from pytest_drainwatch.render.page.flows import fate_tone
from pytest_drainwatch.render.page.moments import at_or_none
from pytest_drainwatch.render.text import duration

NAMES: dict[str, str] = {
    Metric.FIRST_TCP: "trigger to the first TCP connection's end",
    Metric.LAST_TCP: "trigger to the last TCP connection's end",
    Metric.FIRST_UDP: "trigger to the first UDP flow's end",
    Metric.LAST_UDP: "trigger to the last UDP flow's end",
    Metric.ENDPOINT_REMOVED: "trigger to the endpoint's removal",
    Metric.CONTAINER_TERMINATED: "trigger to the container's end",
    Metric.DEAD_WINDOW: "last TCP connection's end to the endpoint's removal",
    Metric.FIRST_UDP_TO_EXIT: "container's end to the first UDP flow's end",
    Metric.LAST_UDP_TO_EXIT: "container's end to the last UDP flow's end",
    Metric.SIGTERM: "trigger to SIGTERM",
    Metric.SIGTERM_TO_READY_FALSE: "SIGTERM to the endpoint's ready: false",
    Metric.SIGTERM_TO_REMOVED: "SIGTERM to the endpoint's removal",
    OwnMetric.NEW_TCP_FAILING: "new TCP connections failing, first to last",
    OwnMetric.NEW_UDP_FAILING: "new UDP flows failing, first to last",
    OwnMetric.NEW_FAILED: "time for which new connections failed",
    OwnMetric.HTTP_FAILING: "HTTP requests failing, first to last",
}
_VERDICTS = {
    Verdict.REGRESSION: Tone.BAD,
    Verdict.INSUFFICIENT_EVIDENCE: Tone.UNKNOWN,
    Verdict.IMPROVEMENT: Tone.GOOD,
    Verdict.NO_CHANGE: Tone.NEUTRAL,
}
_COUNTED = {
    Tally.NEW_CONNECTIONS_FAILED: "new connections",
    Tally.HTTP_REQUESTS_FAILED: "HTTP requests",
}
ALL = "all scenarios"  # of a question that is asked of all of them together


def run(
    summary: Summary, repeats: Mapping[str, Sequence[Repeat]], compared: Compared | None = None
) -> Run:
    """The whole run. ``repeats`` are those of each scenario, refused ones too; a repeat's label
    is the id of its trial on the page.
    """
    pooled = {one.id: one for one in summary.scenarios}
    against = {one.id: one for one in compared.scenarios} if compared is not None else {}
    return Run(
        name=summary.run_id,
        complete=summary.complete,
        incomplete_because=list(summary.incomplete_because),
        scenarios=[
            _scenario(name, found, pooled.get(name), against.get(name))
            for name, found in repeats.items()
        ],
        not_pooled=[one.reason for one in summary.refused],
        missing=[
            Missing(
                name=name_of(entry),
                state=str(entry.state),
                why=" ".join((entry.why or "it is not known why").split()),
            )
            for entry in summary.trials
            if entry.state is not State.MEASURED
        ],
        comparison=None if compared is None else _comparison(compared),
    )


def not_compared(baseline: str, why: str) -> Comparison:
    """What stands in place of a comparison that could not be made: it is no pass."""
    return Comparison(baseline=baseline, verdict="no comparison", text=why, questions=[])


def _scenario(
    name: str,
    repeats: Sequence[Repeat],
    pooled: ScenarioSummary | None,
    against: ScenarioFound | None,
) -> ScenarioRow:
    figures = {} if against is None else {each.name: each for each in against.figures}
    return ScenarioRow(
        id=name,
        trials=[one.label for one in repeats],
        fates=list(_fates(repeats)),
        new=_new(repeats),
        measures=[
            _measure(key, found, repeats, figures.get(key))
            for key, found in (pooled.metrics.items() if pooled is not None else ())
            if found.observed
        ],
        disagreements=list(pooled.disagreements) if pooled is not None else [],
    )


def _fates(repeats: Sequence[Repeat]) -> Iterator[Fate]:
    """How flows of the pods that ended fared, then those of others, the commonest end first."""
    counts: dict[tuple[str, str, str], int] = {}
    flows: Sequence[FlowFate] = [flow for one in repeats for flow in one.flows]
    for flow in flows:
        key = (flow.group, flow.outcome, flow.mechanism)
        counts[key] = counts.get(key, 0) + 1
    order = sorted(counts, key=lambda key: (not key[0].startswith("target"), key[0], -counts[key]))
    for group, outcome, mechanism in order:
        yield Fate(
            proto=group.removeprefix("target "),
            outcome=outcome,
            mechanism=mechanism,
            count=counts[group, outcome, mechanism],
            tone=fate_tone(outcome, mechanism),
        )


def _new(repeats: Sequence[Repeat]) -> str:
    """``new connections: 54–107 failed a trial, for 1.06 to 2.11 s in all; HTTP requests: …``."""
    parts = []
    for tally, what in _COUNTED.items():
        if not any(_tried(one, tally) for one in repeats):
            continue
        known = [at for one in repeats if (at := one.tallies.get(tally)) is not None]
        if not known:
            parts.append(f"{what}: not measured")
            continue
        lo, hi = min(found.lo for found in known), max(found.hi for found in known)
        seen = "" if len(known) == len(repeats) else f" (known of {len(known)} of {len(repeats)})"
        how = "none failed" if hi == 0 else f"{between((lo, hi))} failed in a trial"
        parts.append(f"{what}: {how}{_for(repeats, tally) if hi else ''}{seen}")
    return "; ".join(parts) or "not tried"


def _tried(one: Repeat, tally: Tally) -> bool:
    """Whether any were tried: of new connections the count is there, and None, if not."""
    if tally is Tally.NEW_CONNECTIONS_FAILED:
        return OwnMetric.NEW_FAILED in one.own_metrics
    return tally in one.tallies


def _for(repeats: Sequence[Repeat], tally: Tally) -> str:
    """For how long, in the shortest and the longest case."""
    if tally is not Tally.NEW_CONNECTIONS_FAILED:
        return ""
    found = [_bounds(one.own_metrics.get(OwnMetric.NEW_FAILED)) for one in repeats]
    known = [each for each in found if each is not None]
    if not known:
        return ""
    return f", for {duration((min(lo for lo, _ in known), max(hi for _, hi in known)))} in all"


def _measure(
    key: str, found: MetricSummary, repeats: Sequence[Repeat], against: FigureFound | None
) -> Measure:
    readings = [_reading(one, key) for one in repeats]
    interval = found.median_interval
    few = interval is None or found.observed < 2  # one value says nothing of the others
    return Measure(
        key=key,
        name=NAMES.get(key, key.removesuffix("_ms").replace("_", " ")),
        values=[at_or_none(_bounds(reading)) for reading in readings],
        trials=[one.label for one in repeats],
        median=at_or_none(found.median_ns),
        interval=None
        if interval is None or few
        else _outward(interval.lo_ms * 1_000, interval.hi_ms * 1_000),
        coverage=None if interval is None or few else interval.coverage,
        baseline=None if against is None else [at_or_none(v) for v in against.baseline.values],
    )


def _reading(one: Repeat, key: str) -> Reading | None:
    for metric, reading in (*one.metrics.items(), *one.own_metrics.items()):
        if metric == key:
            return reading
    return None


def _bounds(reading: Reading | None) -> Bounds | None:
    """Where a value lies; of a report that keeps no bounds it is what was shown."""
    if reading is None:
        return None
    if reading.within is None:
        return reading.shown_ns, reading.shown_ns
    return reading.within.lo, reading.within.hi


def _outward(lo_us: float, hi_us: float) -> At:
    return floor(lo_us), ceil(hi_us)


def _comparison(found: Compared) -> Comparison:
    return Comparison(
        baseline=found.baseline,
        verdict=str(found.verdict),
        text="; ".join(
            [
                f"judged at {found.level:g}, two-sided, {compare.questions(found)}",
                f"durations count from {duration((found.least_effect_ns,) * 2)} on",
                *(f"not compared: {why}" for why in found.left_out.values()),
                *_only("baseline", found.only_in_baseline),
                *_only("run", found.only_in_run),
                *compare.next_step(found),
            ]
        ),
        questions=[*_together(found), *(q for one in found.scenarios for q in _questions(one))],
    )


def _only(side: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"only in the {side}, so not compared: {', '.join(names)}"


def _together(found: Compared) -> Iterator[Question]:
    for one in found.together if len(found.scenarios) > 1 else ():
        yield Question(
            scenario=ALL,
            figure=one.name.replace("_", " "),
            verdict=str(one.verdict),
            text=compare.why(one),
            tone=_VERDICTS[one.verdict],
        )


def _questions(scenario: ScenarioFound) -> Iterator[Question]:
    """Those that were judged, the worst first, with both medians and the shift between them."""
    for figure in compare.shown(scenario):
        if figure.verdict is None:
            continue
        _, _, count, here, there, shift, surely = compare.row(figure)
        why = f"; {figure.why}" if figure.why else ""
        yield Question(
            scenario=scenario.id,
            figure=NAMES.get(figure.name, figure.name.removesuffix("_ms").replace("_", " ")),
            verdict=str(figure.verdict),
            text=f"{here} in the baseline, {there} in this run ({count} repeats): a shift of "
            f"{shift}, really within {surely}{why}",
            tone=_VERDICTS[figure.verdict],
        )
