"""Tables that fit: lists are broken over lines, nothing is lost, the last column is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.render.terminal import RUN_COLUMNS, trial_rows
from pytest_drainwatch.render.text import fitted, plain, table

REPORT = "results/20261130T124007Z-16924/exit-now-delete/r00/report.json"
WIDE = (
    "exit-now-delete",
    "57 ms",
    "9/10 fin-unannounced, 1/10 rst",
    "10.09 s",
    "6/10 refused, 4/10 unreachable",
    "10.04–10.08 s",
    "2,329/2,342 failed, 0.06–11.71 s",
    "0",
    REPORT,
)
NARROW = (*WIDE[:2], "10/10 rst", "57 ms", "10/10 rehomed", "1.11 s", "0/2,015 failed (<0.15 %)")


def test_a_run_fits_on_an_ordinary_screen_up_to_its_paths() -> None:
    lines = trial_rows([WIDE, (*NARROW, "0", REPORT)])
    assert lines[0].index("REPORT") <= 122
    assert max(len(line.partition("results/")[0].rstrip()) for line in lines[1:]) <= 120
    assert [line.split() for line in lines[1:3]] == [
        [*("exit-now-delete", "57", "ms", "9/10", "fin-unannounced,", "10.09", "s"),
         *("6/10", "refused,", "10.04–10.08", "s", "2,329/2,342", "failed,", "0", REPORT)],
        ["1/10", "rst", "4/10", "unreachable", "0.06–11.71", "s"],
    ]  # fmt: skip


def test_a_run_that_fits_has_a_line_a_trial() -> None:
    lines = trial_rows([(*NARROW, "0", REPORT), (*NARROW, "0", REPORT)])
    assert len(lines) == 3
    assert all(line.endswith(REPORT) for line in lines[1:])
    assert "0/2,015 failed (<0.15 %)" in lines[1]
    assert lines[0].split() == " ".join(RUN_COLUMNS).split()


def test_what_cannot_be_broken_stays_whole() -> None:
    name = "a" * 200
    (line,) = table(fitted([(name, "1 x, 2 y", REPORT)], 120))[:1]
    assert name in line
    assert line.endswith(REPORT)


@pytest.mark.parametrize(("width", "lines"), [(25, 1), (24, 2), (14, 2), (13, 2), (0, 2)])
def test_a_cell_is_broken_only_if_it_must_be(width: int, lines: int) -> None:
    rows = [("n", "6/10 abc, 4/10 defg.", REPORT)]
    found = fitted(rows, width)
    assert len(found) == lines
    assert found[0][1] == ("6/10 abc, 4/10 defg." if lines == 1 else "6/10 abc,")


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_nothing_in_a_table_moves_the_cursor(cells: list[str]) -> None:
    (line,) = table([cells])
    assert line.isprintable()


def test_letters_of_any_language_are_left_alone() -> None:
    assert plain("abläufe – ✓ 排水") == "abläufe – ✓ 排水"
    assert plain("a\x1b]0;x\x07\nb") == "a?]0;x??b"


CELL = st.lists(st.sampled_from(["1/2 rst", "10/10 a-b", "2,0 s", "(<1 %)", "-"]), max_size=4).map(
    ", ".join
)


@given(st.lists(st.tuples(CELL, CELL, CELL), max_size=4), st.integers(0, 80))
def test_no_word_is_lost_and_it_is_never_wider_than_before(
    rows: list[tuple[str, str, str]], width: int
) -> None:
    found = fitted(rows, width)
    for column in range(3):
        words = " ".join(row[column] for row in found).split()
        assert words == " ".join(row[column] for row in rows).split()
    assert [row[2] for row in found if row[2]] == [row[2] for row in rows if row[2]]
    before, after = (max(map(len, table(each)), default=0) for each in (rows, found))
    assert after <= before
