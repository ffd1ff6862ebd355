"""What is told of a trial while it lasts, from its records alone."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.flows.process import AgentStatus, HttpStatus, ProberStatus
from pytest_drainwatch.showing.happening import Happened, Happenings
from tests.showing.acted import CLOCK, MS, record, status

SAMPLE = Path(__file__).parents[2] / "results/sample/kubernetes-1.37/B-drain-delete/r00"


def told(*batches: tuple[list[Observation], AgentStatus | None, int]) -> list[Happened]:
    happenings, seen = Happenings(CLOCK), list[Observation]()
    for new, said, now_ns in batches:
        seen += new
        happenings.look(tuple(seen), said, now_ns)
    return sorted(happenings.all(), key=lambda each: each.at_ns)


ACCEPTED = record(Event.TRIGGER_ACCEPTED, 1000 * MS, verb="delete")


def test_before_the_trigger_nothing_is_told() -> None:
    early = record(Event.SIGTERM_RECEIVED, 900 * MS, Source.PROBE)
    assert told(([early], status(ended=1), 950 * MS)) == []
    assert [each.text for each in told(([early], None, 0), ([ACCEPTED], None, 0))] == [
        "trigger: delete"
    ]


def test_what_came_between_the_call_and_its_answer_is_told_once_it_is_known() -> None:
    """The API's answer may be recorded after a signal that it brought about."""
    early = record(Event.SIGTERM_RECEIVED, 1034 * MS, Source.PROBE)
    found = told(([early], None, 1040 * MS), ([ACCEPTED], None, 1050 * MS))
    assert found[1] == Happened(at_ns=34 * MS, text="SIGTERM: uid-old")


def test_of_another_clock_it_is_known_only_that_it_was_seen_by_then() -> None:
    line = Observation(
        source=Source.PROBE,
        event=Event.SIGTERM_RECEIVED,
        at=record(Event.VOID, 77).at,
        subject="uid-old",
        clock="another",
    )
    found = told(([ACCEPTED], None, 1000 * MS), ([line], None, 1200 * MS))
    assert found[1] == Happened(at_ns=200 * MS, text="SIGTERM: uid-old", by=True)


def test_counts_tell_the_first_end_and_the_last() -> None:
    found = told(
        ([ACCEPTED], status(), 1000 * MS),
        ([], status(), 1100 * MS),
        ([], status(alive=4, ended=6, failed=3), 1200 * MS),
        ([], status(alive=0, ended=10, moved=10, failed=9), 1300 * MS),
    )
    assert [(each.at_ns // MS, each.text) for each in found[1:]] == [
        (200, "first TCP flow ended"),
        (200, "first new connection failed (tcp-new)"),
        (300, "last TCP flow gone"),
        (300, "first UDP flow answered by another pod"),
        (300, "last UDP flow gone"),
    ]
    assert all(each.by for each in found[1:])


def test_what_had_failed_before_the_trigger_is_no_news() -> None:
    http = HttpStatus(requests=9, failed=1)
    before = AgentStatus(probers={"tcp-new": ProberStatus(failed=2)}, http=http)
    found = told(([], before, 0), ([ACCEPTED], before, 1000 * MS), ([], before, 1100 * MS))
    assert len(found) == 1
    worse = AgentStatus(
        probers={"tcp-new": ProberStatus(failed=3)}, http=HttpStatus(requests=9, failed=2)
    )
    found = told(([], before, 0), ([ACCEPTED], before, 1000 * MS), ([], worse, 1100 * MS))
    assert [each.text for each in found[1:]] == [
        "first new connection failed (tcp-new)",
        "first HTTP request failed",
    ]


def test_a_control_has_no_trigger() -> None:
    control = record(Event.TRIGGER_ACCEPTED, 0, verb="none")
    assert [each.text for each in told(([control], None, 0))] == ["no trigger"]


RECORDED = loads((SAMPLE / "recording.jsonl").read_text(encoding="utf-8"))
HARNESS = [each for each in RECORDED.observations if each.source is not Source.CLIENT]


@given(st.lists(st.integers(0, len(HARNESS)), max_size=12))
def test_of_a_real_trial_the_same_is_told_however_often_one_looks(cuts: list[int]) -> None:
    happenings = Happenings(RECORDED.header.clock)
    for cut in [*sorted(cuts), len(HARNESS)]:
        happenings.look(HARNESS[:cut], None, 0)
    found = sorted(happenings.all(), key=lambda each: (each.at_ns, each.text))
    texts = [each.text.partition(":")[0] for each in found]
    assert texts[0] == "trigger"
    assert {"SIGTERM", "endpoint ready", "endpoint removed", "new pod ready"} <= set(texts)
    assert "container ended with exit code 0" in texts
    whole = Happenings(RECORDED.header.clock)
    whole.look(HARNESS, None, 0)
    assert found == sorted(whole.all(), key=lambda each: (each.at_ns, each.text))
