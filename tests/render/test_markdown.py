"""A job summary: nothing in it is taken for Markdown or HTML, and it is never too long."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.repeats.aggregate import Repeat, pool
from pytest_drainwatch.core.repeats.fates import FlowFate, counted
from pytest_drainwatch.core.repeats.metrics import Metric, Reading, Tally
from pytest_drainwatch.core.repeats.summary import (
    Refused,
    State,
    Summary,
    TrialEntry,
    summarised,
)
from pytest_drainwatch.render.markdown import MOST_BYTES, Broken, cell, show, text

LIMIT = 1024 * 1024  # GitHub's


def entry(state: State = State.MEASURED, why: str | None = None) -> TrialEntry:
    return TrialEntry(
        scenario="drain",
        repeat=0,
        attempt=1,
        test=None,
        folder="drain/r00",
        state=state,
        why=why,
    )


def repeats(name: str = "tcp-0001") -> list[Repeat]:
    found = []
    for number, end in enumerate(("drained", "severed", "drained")):
        flows = (FlowFate(id=name, group="target tcp", outcome=end, mechanism="fin"),)
        found.append(
            Repeat(
                label=f"r{number:02d}",
                conditions={},
                metrics={Metric.SIGTERM: Reading.of(Interval(number, number + 1_000_000))},
                fates=counted(flows),
                flows=flows,
                tallies={Tally.TARGET_FLOWS_LOST: Interval(number, 2)},
            )
        )
    return found


def summary(name: str = "drain", **changes: object) -> Summary:
    made = summarised(
        "run",
        trials=[entry(), entry(State.VOID, "no flows")],
        scenarios=[pool(name, repeats(), ["a note"])],
        refused=[Refused(id="mixed", reason="they differ")],
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_everything_that_a_reviewer_asks_for_is_there() -> None:
    said = show(summary())
    assert "1 of 2 trials measured, run run." in said
    assert "- drain/r00 is void: no flows" in said
    assert "- they differ" in said
    assert "| drain | 3 | target tcp | 2 drained by fin, 1 severed by fin |" in said
    assert "| drain | target flows lost | 3 of 3 | 0–2 | 1–2 | 2 |" in said
    assert "| drain | trigger to sigterm | 3 of 3 | 1 | 1 | 1 | 0.0 to 1.0, 75.00% |" in said
    assert (
        "- drain: tcp-0001 (target tcp): severed by fin in r01; drained by fin in r00, r02" in said
    )
    assert "- a note" in said


def test_what_is_empty_has_no_heading() -> None:
    said = show(summarised("run", trials=[entry()]))
    assert said.count("#") == 2


BROKEN = Broken(
    test="test_it[a|b]",
    promise="assert trial.tcp.drained == trial.tcp.total",
    hurt="tcp: 10/10 rst at 31 ms",
    advice="handle SIGTERM",
)


def test_what_only_a_run_of_tests_knows_stands_beside_it() -> None:
    said = show(summary(), broken=[BROKEN], facts={"page": "results/x/report.html"})
    assert "page: results/x/report.html" in said
    assert "### Broken promises" in said
    row = next(line for line in said.splitlines() if "10/10 rst" in line)
    assert "assert trial.tcp.drained == trial.tcp.total" in row
    assert row.endswith("| handle SIGTERM |")
    assert len(re.findall(r"\|", row)) == 5
    without = show(summary())
    assert "Broken promises" not in without
    assert "Against the baseline" not in without


@given(st.text(), st.text(), st.text())
def test_any_broken_promise_is_one_row(test: str, promise: str, hurt: str) -> None:
    broken = Broken(test=test, promise=promise, hurt=hurt, advice="")
    lines = show(summary(), broken=[broken]).splitlines()
    at = lines.index("### Broken promises")
    assert len(re.findall(r"\|", lines[at + 4])) == 5
    assert lines[at + 5] == ""


@given(st.text())
def test_what_the_baseline_says_stays_as_it_is(said: str) -> None:
    shown = show(summary(), compared=f"first  line\n{said}\n</pre> `x` <b>")
    (inside,) = re.findall(r"<pre>\n(.*?)\n</pre>", shown, re.DOTALL)
    assert "first  line" in inside
    assert "<" not in inside
    assert html.unescape(inside).endswith("</pre> `x` <b>")


def rendered(said: str) -> str:
    """What a reader sees of text in which every special letter is an entity."""
    return html.unescape(said)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "a|b",
        "![x](http://evil/x.png)",
        "[a](javascript:x)",
        "`code` *bold* __b__ ~~s~~",
        "@everyone #12 https://evil www.evil.com",
        "$x^2$",
        "# heading",
        "- list",
        "1. list",
        "&lt;b&gt;",
        "\\| \\<",
    ],
)
def test_hostile_names_stay_text(hostile: str) -> None:
    said = text(hostile)
    assert not re.search(r"[<>|`*_\[\]@$~\\]", said)
    assert not re.search(r"://|www\.", said)
    assert not re.match(r"[-+=#>&.)]*\s|\d+[.)]\s", said)
    assert rendered(said) == hostile
    table = show(summary(hostile))
    row = next(line for line in table.splitlines() if "2 drained by fin" in line)
    assert len(re.findall(r"\|", row)) == 5, "as many cells as its head has"
    assert set(re.findall(r"<[^>]*>?", table)) == {
        "<details>",
        "<summary>",
        "</summary>",
        "</details>",
    }


@given(st.text())
def test_any_text_is_one_line_without_markup(said: str) -> None:
    found = text(said)
    assert len(found.splitlines()) <= 1
    assert not re.search(r"[<>|`*_\[\]@$~\\]", found)
    if found:
        assert re.match(r"[a-zA-Z0-9]|&#", found)
    assert not re.search(r"[<>|`*_\[\]@$~\\\n\r]", cell(said))


def test_what_is_cut_within_the_baselines_words_ends_them() -> None:
    """Else the note that it is cut would be one of them."""
    said = show(summary(), compared="a line that is long enough\n" * 50_000)
    assert len(said.encode()) <= LIMIT
    before, _, after = said.partition("</pre>")
    assert "Cut here" not in before
    assert "Cut here" in after
    assert said.count("<pre>") == said.count("</pre>") == 1


@pytest.mark.parametrize("beside", [0, MOST_BYTES - 3000, MOST_BYTES - 100, MOST_BYTES, LIMIT])
def test_what_is_in_the_file_already_counts(beside: int) -> None:
    whole = show(summary())
    said = show(summary(), beside=beside)
    assert len(said.encode()) + beside <= max(MOST_BYTES, beside)
    assert (said == whole) == (beside + len(whole.encode()) <= MOST_BYTES)
    assert said in ("", whole) or "Cut here" in said


def test_a_job_summary_is_never_longer_than_github_shows() -> None:
    many = [f"drain/r{number:02d} – is void: {'x' * 500}" for number in range(9000)]
    said = show(summary(incomplete_because=tuple(many)))
    assert MOST_BYTES - 1000 < len(said.encode()) <= MOST_BYTES < LIMIT
    assert said.endswith("All of it: `drainwatch aggregate`.*\n")
    # Cut between lines.
    assert said.splitlines()[-3].endswith("x" * 500)


def test_what_is_folded_is_closed_before_the_cut() -> None:
    alike = repeats()[:1]
    scenarios = tuple(pool(f"drain-{number}", alike) for number in range(6000))
    said = show(summary(scenarios=scenarios))
    assert len(said.encode()) <= MOST_BYTES
    assert said.count("<details>") == said.count("</details>") == 1
    assert said.index("</details>") < said.index("Cut here")


def test_one_endless_line_is_no_way_around_the_limit() -> None:
    said = show(summary(incomplete_because=("é" * MOST_BYTES,)))
    assert len(said.encode()) <= MOST_BYTES
    assert "Cut here" in said
