"""Predicted against measured as plain text: the verdict last, where a terminal ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.fidelity.document import Arm, Behind, Fates, Fidelity, Figure, Held
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.repeats.stats import Statistics
from pytest_drainwatch.render.text import NOT_MEASURED, plain, table

HEAD = ("metric, ms", "measured (least to greatest)", "predicted", "error", "%", "replayed")
BEHIND_HEAD = (
    "scenario",
    "trials",
    "sends until, ms",
    "predicted",
    "failing for, ms",
    "predicted",
    "fails or not",
    "replay off by, ms",
)
FOOT = (
    "predicted: the median of as many simulations as trials, each fitted to the other ones.",
    "replayed: from least to greatest, simulations fitted to each trial itself.",
)


def show(found: Fidelity) -> str:
    """The whole."""
    lines: list[str] = []
    for cluster in found.clusters:
        lines += [f"simulated against measured: {plain(where(cluster))}", ""]
        for arm in cluster.arms:
            lines += [*_arm(arm), ""]
        if cluster.simulate is not None:
            lines += [f"requests on this cluster: {plain(cluster.simulate)}", ""]
    if found.load_balancers:
        lines += [*_behind(found.load_balancers), ""]
    lines += [*FOOT, ""]
    if (said := transfer(found)) is not None:
        lines.append(said)
    lines += verdict(found)
    return "\n".join(lines) + "\n"


def _behind_verdict(found: Sequence[Behind]) -> Iterator[str]:
    if found:
        trials, equal = (
            sum(len(one.trials) for one in found),
            sum(x.verdicts_equal for x in found),
        )
        yield (
            f"behind a load balancer it was foretold of {equal} of {trials} trials whether new "
            "connections fail"
        )


def _behind(found: Sequence[Behind]) -> Iterator[str]:
    yield "behind a load balancer: until when it sends new connections, and how long they fail"
    yield from table([BEHIND_HEAD, *map(behind_cells, found)], right=tuple(range(1, 8)))
    yield from (f"  {one.scenario}: {plain(one.simulate)}" for one in found)


def behind_cells(one: Behind) -> tuple[str, ...]:
    """A row of that table."""
    return (
        plain(one.scenario),
        str(len(one.trials)),
        _spread(one.sends),
        ms(one.sends_predicted.median),
        _spread(one.failing),
        ms(one.failing_predicted.median),
        f"{one.verdicts_equal} of {len(one.trials)}",
        f"{one.replay_error_ns / NS_PER_MS:+,.1f}",
    )


def where(cluster: Held) -> str:
    """A cluster in words."""
    said = cluster.conditions.get
    version = said("environment.kubernetes_version") or "of an unknown version"
    mode = said("environment.kube_proxy_mode") or "mode not known"
    return f"Kubernetes {version}, kube-proxy {mode}, {cluster.trials} trials"


def verdict(found: Fidelity) -> Iterator[str]:
    """What holds, in words."""
    arms = [arm for cluster in found.clusters for arm in cluster.arms]
    flows = sum(fates.flows for arm in arms for fates in arm.fates)
    equal = sum(fates.outcomes_equal for arm in arms for fates in arm.fates)
    judged = [f for arm in arms for f in arm.figures if f.inside is not None]
    inside = sum(figure.inside is True for figure in judged)
    said = []
    if flows or not found.load_balancers:
        said.append(
            f"{equal} of {flows} flows ended as predicted; {inside} of {len(judged)} predicted "
            "medians lie within what was measured"
        )
    said += _behind_verdict(found.load_balancers)
    yield f"{'HOLDS' if found.holds else 'DOES NOT HOLD'}: {'; '.join(said)}"
    yield from (f"  {plain(line)}" for line in found.broken)


def transfer(found: Fidelity) -> str | None:
    """How far latencies of one scenario serve another one; None: there is one scenario alone."""
    figures = [f for cluster in found.clusters for arm in cluster.arms for f in arm.figures]
    judged = [f.others_inside for f in figures if f.others_inside is not None]
    if not judged:
        return None
    return (
        f"Not judged: fitted to the other scenarios alone, {sum(judged)} of {len(judged)} would "
        "lie there."
    )


def fates_in_words(fates: Fates) -> str:
    """How the flows of one kind ended, and whether that was predicted."""
    ways = ", ".join(f"{count} {way}" for way, count in fates.measured.items() if count)
    return (
        f"{fates.group}: {fates.outcomes_equal} of {fates.flows} outcomes and "
        f"{fates.mechanisms_equal} of {fates.flows} mechanisms as predicted ({ways})"
    )


def cells(figure: Figure) -> tuple[str, ...]:
    """One metric as a row: the columns of :data:`HEAD`."""
    truth, again = figure.measured, figure.replayed
    measured = _spread(truth)
    if truth.observed and truth.not_measured:
        measured += f", {truth.observed} of {truth.observed + truth.not_measured}"
    outside = " outside" if figure.inside is False else ""
    return (
        figure.metric.removesuffix("_ms"),
        measured,
        ms(figure.predicted.median) + outside,
        "" if figure.error_ns is None else f"{figure.error_ns / NS_PER_MS:+,.1f}",
        "" if figure.error_percent is None else f"{figure.error_percent:+.1f}",
        f"{ms(again.minimum)} to {ms(again.maximum)}" if again.observed else NOT_MEASURED,
    )


def _spread(truth: Statistics) -> str:
    if truth.median is None:
        return NOT_MEASURED
    return f"{ms(truth.median)} ({ms(truth.minimum)} to {ms(truth.maximum)})"


def ms(ns: int | None) -> str:
    """A duration in ms."""
    return "–" if ns is None else f"{ns / NS_PER_MS:,.1f}"


def _arm(arm: Arm) -> Iterator[str]:
    yield f"{plain(arm.scenario)} ({len(arm.trials)} trials)"
    yield from table([HEAD, *map(cells, arm.figures)], right=(1, 2, 3, 4, 5))
    yield from (f"  {plain(fates_in_words(fates))}" for fates in arm.fates)
