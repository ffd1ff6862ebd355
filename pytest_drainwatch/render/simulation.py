"""A simulated run of requests as text: what comes of it, source by source, and the trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from textwrap import wrap

from pytest_drainwatch.core.simulation.command import command
from pytest_drainwatch.core.simulation.requests import Outcome, Request
from pytest_drainwatch.core.simulation.run import Simulated
from pytest_drainwatch.core.simulation.says import says
from pytest_drainwatch.core.simulation.steps import steps
from pytest_drainwatch.core.simulation.words import seconds
from pytest_drainwatch.render.text import GAP, table

MARKED = "SIMULATED: a model predicts this; nothing of it was measured."
WIDTH = 100
NO_BREAK = "\N{NO-BREAK SPACE}"


def show(run: Simulated) -> str:
    """All of it, a line a thing."""
    counts = list(_counts(run))
    parts = [
        [MARKED, f"{GAP}{command(run.inputs)}"],
        [f"{GAP}{line}" for said in says(run) for line in _wrapped(said)],
        ["REQUESTS", *table(counts, right=range(1, len(counts[0])))],
        ["TRACE, from the deletion", *table(list(_trace(run)), right=[0])],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _wrapped(said: str) -> list[str]:
    """Lines of a sentence; no number is parted from its unit."""
    held = re.sub(r"(?<=\d) (?=s\b)", NO_BREAK, said)
    return [line.replace(NO_BREAK, " ") for line in wrap(held, WIDTH)]


def _counts(run: Simulated) -> Iterator[list[str]]:
    """A row for each source; only outcomes that there were have a column."""
    met = [outcome for outcome, count in run.totals.items() if count]
    yield ["", "sent", *met]
    of: dict[str, list[Request]] = {route.source: [] for route in run.routes}
    for request in run.requests:
        of.setdefault(request.source, []).append(request)
    for source, sent in of.items():
        yield [source, *_row(sent, met)]
    yield ["all", *_row(list(chain.from_iterable(of.values())), met)]


def _row(sent: list[Request], met: list[Outcome]) -> list[str]:
    counts = (sum(one.outcome is outcome for one in sent) for outcome in met)
    return [str(len(sent)), *map(str, counts)]


def _trace(run: Simulated) -> Iterator[list[str]]:
    for step in steps(run):
        yield [seconds(step.at_ns), step.text]
