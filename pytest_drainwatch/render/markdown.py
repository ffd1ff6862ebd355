"""A summary as Markdown, for a pull request's job summary.

GitHub shows at most 1 MiB of it, and what is longer is not shown at all: so it is cut
between lines before that, and says so.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core.repeats.document import MetricSummary, ScenarioSummary
from pytest_drainwatch.core.repeats.summary import State, Summary
from pytest_drainwatch.render.aggregate import fates, numbers, tallies
from pytest_drainwatch.render.text import plain

# GitHub's limit, less what a workflow may write beside it.
MOST_BYTES = 1_000_000
_ENDS = {"<pre>": "</pre>\n", "<details>": "\n</details>\n"}
_CUT = "\n*Cut here: longer than a job summary may be. All of it: `{}`.*\n"
# What Markdown, HTML in it, or GitHub take for more than a letter: "@" and "#" make links.
_ANYWHERE = r"[\\`*_\[\]<>#|~&@$^]|:(?=//)|(?<=\bwww)\."
_IN_CELL = re.compile(_ANYWHERE)
# A line may begin with a sign or a number that makes a list or a heading of it.
_IN_LINE = re.compile(_ANYWHERE + r"|^[^a-zA-Z0-9]|^\d(?=\d*[.)](?:\s|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A trial whose test failed: the line that did not hold, who was hurt, and what to try."""

    test: str
    promise: str
    hurt: str
    advice: str


def show(
    found: Summary,
    *,
    broken: Sequence[Broken] = (),
    facts: Mapping[str, str] | None = None,
    compared: str | None = None,
    beside: int = 0,
) -> str:
    """The whole, within the limit. What only a run of tests knows stands beside the summary:
    ``broken`` promises, ``facts`` of the run, and what the comparison with a baseline said.
    ``beside``: bytes that are in the same file already.
    """
    lines = _lines(found, broken, facts or {}, compared)
    return cut("".join(line + "\n" for line in lines), "drainwatch aggregate", beside)


def text(said: object) -> str:
    """Anybody's text as plain text, in a line of its own."""
    return _plain(said, _IN_LINE)


def cell(said: object) -> str:
    """Anybody's text as plain text within a table."""
    return _plain(said, _IN_CELL)


def _plain(said: object, special: re.Pattern[str]) -> str:
    line = " ".join(str(said).split())
    return special.sub(lambda sign: f"&#{ord(sign[0])};", plain(line))


def _lines(
    found: Summary, broken: Sequence[Broken], facts: Mapping[str, str], compared: str | None
) -> Iterator[str]:
    measured = sum(entry.state is State.MEASURED for entry in found.trials)
    yield "## What happened to connections when a pod terminated"
    yield ""
    yield f"{measured} of {len(found.trials)} trials measured, run {text(found.run_id)}."
    yield ""
    if facts:
        yield "; ".join(f"{name}: {text(value)}" for name, value in facts.items())
        yield ""
    if broken:
        yield "### Broken promises"
        yield ""
        yield from table(
            ("test", "promise", "who was hurt", "try"),
            ((one.test, one.promise, one.hurt, one.advice) for one in broken),
        )
    if compared:
        yield "### Against the baseline"
        yield ""
        yield from preformatted(compared)
    if found.incomplete_because:
        yield "### Incomplete"
        yield ""
        yield from (f"- {text(why)}" for why in found.incomplete_because)
        yield ""
    if found.refused:
        yield "### Not pooled"
        yield ""
        yield from (f"- {text(one.reason)}" for one in found.refused)
        yield ""
    if found.scenarios:
        yield "### Outcomes"
        yield ""
        yield from table(("scenario", "repeats", "flows", "ended"), _outcomes(found.scenarios))
        yield "### Lost"
        yield ""
        yield from table(("scenario", "what", "n", "min", "median", "max"), _lost(found.scenarios))
    told = [(one.id, said) for one in found.scenarios for said in one.disagreements]
    if told:
        yield "### Repeats disagree"
        yield ""
        yield from (f"- {text(name)}: {text(said)}" for name, said in told)
        yield ""
    notes = dict.fromkeys(note for one in found.scenarios for note in one.notes)
    if notes:
        yield "### Notes"
        yield ""
        yield from (f"- {text(note)}" for note in notes)
        yield ""
    if found.scenarios:
        yield "<details><summary>Times (ms since the trigger)</summary>"
        yield ""
        yield from table(
            ("scenario", "figure", "n", "min", "median", "max", "median is within, how surely"),
            _times(found.scenarios),
        )
        yield "</details>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows of anybody's text, and an empty line."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(cell(each) for each in row)} |" for row in rows)
    yield ""


def preformatted(said: str) -> Iterator[str]:
    """Anybody's lines as they are, and an empty line: nothing in it is taken for Markdown."""
    yield "<pre>"
    yield from (html.escape(plain(line)) for line in said.splitlines())
    yield "</pre>"
    yield ""


def _outcomes(scenarios: Iterable[ScenarioSummary]) -> Iterator[tuple[str, ...]]:
    for one in scenarios:
        for group, ends in fates(one):
            yield (one.id, str(len(one.repeats)), group, ends)


def _lost(scenarios: Iterable[ScenarioSummary]) -> Iterator[tuple[str, ...]]:
    for one in scenarios:
        for name, found in tallies(one):
            count = f"{found.observed} of {len(one.repeats)}"
            yield (one.id, name.replace("_", " "), count, *numbers(found))


def _times(scenarios: Iterable[ScenarioSummary]) -> Iterator[tuple[str, ...]]:
    for one in scenarios:
        for name, found in one.metrics.items():
            if found.observed:
                yield (
                    one.id,
                    name.removesuffix("_ms").replace("_", " "),
                    f"{found.observed} of {len(one.repeats)}",
                    *(str(ms) for ms in (found.min_ms, found.median_ms, found.max_ms)),
                    _within(found),
                )


def _within(found: MetricSummary) -> str:
    at = found.median_interval
    if at is None or found.observed < 2:
        return "-"
    return f"{at.lo_ms:.1f} to {at.hi_ms:.1f}, {at.coverage:.2%}"


def cut(whole: str, command: str, beside: int = 0) -> str:
    """As much of it as GitHub shows, cut between lines; ``command`` shows all of it.

    Empty if there is no room left ``beside`` what is there.
    """
    said = _CUT.format(command)
    encoded = whole.encode()
    if len(encoded) <= MOST_BYTES - beside:
        return encoded.decode()
    room = MOST_BYTES - beside - len(said.encode()) - sum(map(len, _ENDS.values()))
    if room <= 0:
        return ""
    kept = encoded[: encoded.rfind(b"\n", 0, room) + 1].decode()
    # Names are escaped: these are our own.
    ends = (end for begin, end in _ENDS.items() if kept.count(begin) > kept.count(end.strip()))
    return kept + "".join(ends) + said
