"""Predicted against measured as Markdown: for docs/fidelity.md, and for a job summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_drainwatch.core.fidelity.document import Arm, Behind, Fidelity, Held
from pytest_drainwatch.core.fidelity.fit import Fitted
from pytest_drainwatch.render.fidelity import (
    BEHIND_HEAD,
    HEAD,
    behind_cells,
    cells,
    fates_in_words,
    ms,
    transfer,
    verdict,
    where,
)


def show(found: Fidelity) -> str:
    """The whole: the verdict first, then each cluster's tables."""
    lines = [*_verdict(found), ""]
    for cluster in found.clusters:
        lines += _cluster(cluster)
    if found.load_balancers:
        lines += _behind(found.load_balancers)
    return "\n".join(lines).rstrip("\n") + "\n"


def _verdict(found: Fidelity) -> Iterator[str]:
    first, *broken = verdict(found)
    yield f"**{_cell(first)}.**"
    if broken:
        yield ""
        yield from (f"- {_cell(line.strip())}" for line in broken)
    if (said := transfer(found)) is not None:
        yield ""
        yield _cell(said)


def _cluster(cluster: Held) -> Iterator[str]:
    yield f"## {_cell(where(cluster))}"
    yield ""
    for arm in cluster.arms:
        yield from _arm(arm)
    yield "### The latencies"
    yield ""
    yield "Fitted to all of these trials; a prediction uses those of the others alone."
    yield ""
    yield "| latency | trials | median (least to greatest), ms | n | read from |"
    yield "|---|---|---:|---:|---|"
    yield from (_latency(each) for each in cluster.latencies)
    yield ""
    if cluster.simulate is not None:
        yield "Requests on this cluster, by the medians over all its trials:"
        yield ""
        yield f"    {cluster.simulate}"
        yield ""


def _behind(found: Sequence[Behind]) -> Iterator[str]:
    yield "## Behind a load balancer"
    yield ""
    yield "Until it stops sending new connections to the pod's node, and for how long they fail."
    yield ""
    yield f"| {' | '.join(BEHIND_HEAD)} |"
    yield "|---" + "|---:" * (len(BEHIND_HEAD) - 1) + "|"
    yield from (f"| {' | '.join(map(_cell, behind_cells(one)))} |" for one in found)
    yield ""
    yield from (f"    {one.simulate}" for one in found)
    yield ""


def _arm(arm: Arm) -> Iterator[str]:
    yield f"### {_cell(arm.scenario)}"
    yield ""
    head = (*HEAD, "replay error", "from the other arms")
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    for figure in arm.figures:
        row = (*cells(figure), ms(figure.replay_error_ns), ms(figure.from_others_ns))
        yield f"| {' | '.join(map(_cell, row))} |"
    yield ""
    yield from (f"- {_cell(fates_in_words(fates))}" for fates in arm.fates)
    yield ""


def _latency(each: Fitted) -> str:
    value = ms(each.value_ns)
    if each.observed:
        value += f" ({ms(each.least_ns)} to {ms(each.greatest_ns)})"
    source = each.source if each.note is None else f"{each.source}; {each.note}"
    row = (f"`{each.name}`", each.trials, value, str(each.observed), source)
    return f"| {' | '.join(map(_cell, row))} |"


def _cell(said: str) -> str:
    return said.replace("|", "\\|")
