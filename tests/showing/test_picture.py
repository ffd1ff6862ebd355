"""What is drawn of a trial: it fits, whatever the terminal, and says the most important first."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.flows.process import AgentStatus, HttpStatus, ProberStatus, ProtoStatus
from pytest_drainwatch.showing.happening import Happened
from pytest_drainwatch.showing.picture import (
    EVENTS_SHOWN,
    Scene,
    cells,
    fitted,
    in_a_line,
    lines,
)
from pytest_drainwatch.showing.tty import Style

COLORS = re.compile(r"\x1b\[\d+m")
PLAIN, RICH = Style(), Style(color=True, letters=True)

numbers = st.integers(0, 10**7)
protos = st.builds(
    ProtoStatus, wanted=numbers, alive=numbers, ended=numbers, moved=numbers, quiet=numbers
)
statuses = st.builds(
    AgentStatus,
    tcp=protos,
    udp=protos,
    probers=st.dictionaries(
        st.text(max_size=3), st.builds(ProberStatus, attempts=numbers, failed=numbers), max_size=3
    ),
    http=st.none() | st.builds(HttpStatus, requests=numbers, failed=numbers),
)
scenes = st.builds(
    Scene,
    trial=st.text(max_size=60),
    phase=st.text(max_size=20),
    elapsed_ns=st.integers(0, 10**13),
    expected_ns=st.none() | st.integers(0, 10**12),
    note=st.just("") | st.text(max_size=90),
    status=st.none() | statuses,
    since_trigger_ns=st.none() | st.integers(0, 10**12),
    events=st.lists(
        st.builds(
            Happened, at_ns=st.integers(0, 10**12), text=st.text(max_size=90), by=st.booleans()
        ),
        max_size=12,
    ),
)
styles = st.builds(Style, color=st.booleans(), letters=st.booleans())


@given(scene=scenes, width=st.integers(12, 240), rows=st.integers(1, 20), style=styles)
def test_no_line_is_wider_than_the_terminal_and_none_too_many(
    scene: Scene, width: int, rows: int, style: Style
) -> None:
    drawn = lines(scene, width, rows, style)
    assert 1 <= len(drawn) <= rows
    for line in drawn:
        shown = COLORS.sub("", line)
        assert cells(shown) < width, "the last column is left: there a terminal would wrap"
        assert shown.isprintable()
        assert style.letters or shown.isascii()
        assert style.color or shown == line


@given(st.text(max_size=120), st.integers(12, 100), styles)
def test_a_line_of_anybodys_fits_too(text: str, width: int, style: Style) -> None:
    shown = fitted(text, width, style)
    assert cells(shown) < width
    assert shown.isprintable()


SCENE = Scene(
    trial="drain-delete[r00]",
    phase="observe",
    elapsed_ns=42 * NS_PER_S // 10,
    expected_ns=9 * NS_PER_S,
    since_trigger_ns=41 * NS_PER_S // 10,
    status=AgentStatus(
        tcp=ProtoStatus(wanted=10, alive=10),
        udp=ProtoStatus(wanted=10, alive=6, moved=4),
        probers={
            "tcp-new": ProberStatus(attempts=1349, failed=54),
            "tcp-new-2": ProberStatus(attempts=1, failed=0),
        },
    ),
    events=[
        Happened(at_ns=0, text="trigger: delete"),
        Happened(at_ns=5_030_000_000, text="first TCP flow ended", by=True),
        Happened(at_ns=34_000_000, text="SIGTERM: pod-a"),
    ],
)


def test_it_says_phase_time_flows_and_events_in_order() -> None:
    head, counted, *events = lines(SCENE, 120, 9, Style(letters=True))
    assert head == (
        "drainwatch: drain-delete[r00]  observe  █████████▎──────────  4.2 of about 9 s, "
        "4.1 s after the trigger"
    )
    assert counted == (
        "  TCP 10 alive, 0 ended · UDP 6 alive, 4 moved, 0 ended · new connections 1,350, 54 failed"
    )
    assert events == [
        "     +0.00 s  trigger: delete",
        "     +0.03 s  SIGTERM: pod-a",
        "   by +5.0 s  first TCP flow ended",
    ]


def test_where_there_is_little_room_the_bar_and_the_words_go_first() -> None:
    assert lines(SCENE, 40, 2, PLAIN) == [
        "drain-delete[r00]  observe 4.2/9 s",
        "  TCP 10 - UDP 6 ~4 - new 1,350 -54",
    ]
    assert lines(SCENE, 60, 1, PLAIN) == ["drain-delete[r00]  observe  4.2 of about 9 s"]
    assert lines(SCENE, 20, 1, PLAIN) == ["observe  4.2/9 s"]


@given(many=st.integers(0, 20), rows=st.integers(2, 20))
def test_as_many_events_are_shown_as_there_is_room_for(many: int, rows: int) -> None:
    events = [Happened(at_ns=n * NS_PER_S, text=f"event {n}") for n in range(many)]
    drawn = lines(replace(SCENE, events=events), 100, rows, PLAIN)[2:]
    assert [line.split("  ")[-1] for line in drawn] == [
        f"event {n}" for n in range(many - min(many, EVENTS_SHOWN, rows - 2), many)
    ]


def test_the_last_events_are_shown_if_not_all_can_be() -> None:
    assert [line.strip() for line in lines(SCENE, 100, 3, PLAIN)[2:]] == [
        "by +5.0 s  first TCP flow ended"
    ]


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        (Scene(trial="", phase="prepare", elapsed_ns=NS_PER_S), "prepare, 1.0 s"),
        (
            SCENE,
            "drain-delete[r00] observe, 4.2 of about 9 s · TCP 10 alive, 0 ended · UDP 6 alive, "
            "4 moved, 0 ended · new connections 1,350, 54 failed · +0.03 s SIGTERM: pod-a",
        ),
    ],
)
def test_in_one_line_for_a_worker_what_matters_comes_first(scene: Scene, said: str) -> None:
    assert in_a_line(scene) == said


def test_failures_are_red_and_words_say_it_as_well() -> None:
    counted = lines(SCENE, 100, 9, RICH)[1]
    assert "\x1b[31m, 54 failed\x1b[0m" in counted
    assert "0 ended" in COLORS.sub("", counted)
    assert "\x1b[31m, 0 ended" not in counted
