"""A comparison as Markdown: what the text says, and nothing that is taken for Markdown."""

from __future__ import annotations

import html
import re
from dataclasses import replace

from pytest_drainwatch.core.repeats.compared import Needed, Verdict
from pytest_drainwatch.render.compare_markdown import show
from pytest_drainwatch.render.markdown import MOST_BYTES
from tests.render.test_compare import LOST, MOVED, WINDOW, comparison, scenario

EVIL = "<img src=x>|`a`\n# @all\x1b[2J"


def test_the_verdict_comes_first_and_each_scenario_has_a_line() -> None:
    said = show(
        comparison(
            scenario(WINDOW, LOST, notes=("for both",)),
            scenario(LOST, id="other", notes=("for both",), verdict=Verdict.NO_CHANGE),
            together=(MOVED,),
            only_in_run=("new",),
            left_out={"gone": "scenario gone: not one trial measured it"},
        )
    )
    assert said.startswith("## Connections when a pod terminated: regression\n")
    assert "- scenario gone: not one trial measured it" in said
    assert (
        "| regression | target flows lost | p = 0.00033, corrected, most of all in other |" in said
    )
    assert "| hook | regression | 5 : 5 | - |" in said
    assert "| other | no-change | 5 : 5 | - |" in said
    assert "- hook, other: for both" in said, "once"
    plain = html.unescape(said)
    assert "- hook: tcp_dead_before_endpoint_removed: not measured in 1 of 5 repeats" in plain
    assert "| 5 : 5 | 0 | 1400–1402 | +1,400 to +1,402 | +1,390 to +1,410 (96.8%) |" in plain
    assert "Only in the run, so not compared: new." in said
    assert plain.endswith("next: drainwatch aggregate B\n")


def test_what_is_missing_says_how_many_would_do() -> None:
    few = replace(
        LOST,
        verdict=Verdict.INSUFFICIENT_EVIDENCE,
        why="too few",
        needed=Needed(of_run=9, of_each=5),
    )
    undecided = scenario(few, verdict=Verdict.INSUFFICIENT_EVIDENCE)
    said = html.unescape(show(comparison(undecided, verdict=Verdict.INSUFFICIENT_EVIDENCE)))
    assert "terminated: insufficient-evidence" in said
    assert "too few; at least 9 repeats of the run beside this baseline or 5 of each" in said
    assert "together" not in said, "nobody counted connections"


def test_anybodys_text_stays_text() -> None:
    said = show(
        comparison(
            scenario(replace(LOST, name=EVIL), id=EVIL, notes=(EVIL,)),
            together=(replace(MOVED, name=EVIL, moved=(EVIL,)),),
            baseline=EVIL,
            run=EVIL,
            only_in_run=(EVIL,),
            left_out={EVIL: EVIL},
        )
    )
    assert "<img" not in said
    assert "`" not in said
    assert "@" not in said
    assert all(letter.isprintable() for letter in said.replace("\n", ""))
    for lines in re.findall(r"(?:^\|.*\n)+", said, re.MULTILINE):
        assert len({line.count("|") for line in lines.splitlines()}) == 1


def test_it_is_never_longer_than_a_job_summary_may_be() -> None:
    many = [scenario(LOST, id=f"{n} " + "x" * 400) for n in range(3000)]
    said = show(comparison(*many))
    assert len(said.encode()) <= MOST_BYTES
    assert said.endswith("All of it: `drainwatch compare`.*\n")
