"""Text for people: uncertainty is shown where it is larger than the last digit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Counts
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.scenario import Behavior, Scenario, matrix
from pytest_drainwatch.render import terminal
from tests.core.trials import recording_of

MS = NS_PER_MS


@pytest.mark.parametrize(
    ("bounds", "shown"),
    [
        (None, "not measured"),
        ((41 * MS, 41 * MS + 200_000), "41 ms"),
        ((41 * MS, 46 * MS), "41..46 ms"),
        ((-8 * MS, 3 * MS), "-8..3 ms"),
        ((25_041 * MS, 25_043 * MS), "25.04 s"),
        ((25_041 * MS, 25_066 * MS), "25.04..25.07 s"),
        ((0, 0), "0 ms"),
    ],
)
def test_durations_show_their_uncertainty(bounds: tuple[int, int] | None, shown: str) -> None:
    assert terminal.duration(bounds) == shown


def test_a_report_has_its_three_parts() -> None:
    text = terminal.show(derive(recording_of(Scenario())))
    lines = text.splitlines()
    parts = [line for line in lines if line in {"SUMMARY", "TIMELINE", "FLOWS"}]
    assert parts == ["SUMMARY", "TIMELINE", "FLOWS"]
    assert "  trigger -> sigterm                40 ms" in lines
    assert any("tcp-0001  target  drained-clean-close  announced-fin" in line for line in lines)
    assert any("sigterm_received" in line for line in lines)


def test_what_was_not_measured_says_so() -> None:
    recording = recording_of(Scenario())
    blind = replace(
        recording, observations=tuple(o for o in recording.observations if o.source != "probe")
    )
    text = terminal.show(derive(blind))
    assert "trigger -> sigterm                not measured" in text
    assert "note: no SIGTERM line" in text


@pytest.mark.parametrize("scenario", matrix(behavior=list(Behavior), trigger=["delete"]))
def test_a_short_timeline_keeps_both_ends(scenario: Scenario) -> None:
    entries = derive(recording_of(scenario)).trial.timeline
    rows = terminal.timeline(entries, limit=6)
    assert len(rows) == 7
    assert "more" in rows[3]
    assert "observation_window_closed" in rows[-1]
    assert "pod_object_deleted" in rows[-2]


def test_equal_ends_are_folded() -> None:
    (end,) = [
        e for e in derive(recording_of(Scenario())).trial.timeline if e.event == "flow_terminal"
    ]
    ends = [replace(end, flow_id=f"tcp-000{n}", t_ms=end.t_ms + n) for n in range(4)]
    rows = terminal.timeline(ends, limit=20)
    assert len(rows) == 1
    assert "4 flows by +5044 ms: drained-clean-close" in rows[0]


def test_counts_in_words() -> None:
    assert terminal.counts(Counts()) == "none"
    mixed = Counts(total=10, severed=10, mechanisms={"refused": 6, "rehomed": 4})
    assert terminal.counts(mixed) == "6/10 refused, 4/10 rehomed"
    assert terminal.counts(Counts(total=2, mechanisms={"none": 2})) == "2/2 survived"
