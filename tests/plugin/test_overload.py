"""Advice at the end of a run that its machine could not carry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Episode
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Source
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.render.overload import Stalled, advice, stalls_while_measuring
from tests.core.trials import recording_of
from tests.plugin.conftest import run

COUNTS = st.builds(Stalled, stalls=st.integers(0, 3), worst_ms=st.integers(0, 900))


def at(kind: Event, lo_ms: int, hi_ms: int) -> Episode:
    bounds = (lo_ms * NS_PER_MS, hi_ms * NS_PER_MS)
    return Episode(source=Source.CLIENT, subject="", at_ns=bounds, kind=str(kind))


@pytest.mark.parametrize(
    ("episodes", "expected"),
    [
        ([], (0, 0)),
        ([at(Event.AGENT_STALLED, 10, 130)], (1, 120)),
        ([at(Event.AGENT_STALLED, 10, 130), at(Event.WATCHER_STALLED, -900, -400)], (2, 500)),
        # Before settling nothing is measured.
        ([at(Event.AGENT_STALLED, -3000, -1000)], (0, 0)),
        ([at(Event.AGENT_STALLED, -3000, -999)], (1, 2001)),
        # Another matter than a busy machine.
        ([at(Event.HOST_SUSPENDED, 0, 5000), at(Event.AGENT_THROTTLED, 0, 500)], (0, 0)),
    ],
)
def test_stalls_count_from_the_settle_time_on(
    episodes: list[Episode], expected: tuple[int, int]
) -> None:
    trial = replace(derive(recording_of(Scenario())).trial, stalls=tuple(episodes))
    assert stalls_while_measuring(trial, settle_ns=1000 * NS_PER_MS) == expected


def test_the_advice_says_how_many_how_long_and_what_to_do() -> None:
    found = [Stalled(stalls=0, worst_ms=0)] * 20 + [Stalled(stalls=2, worst_ms=412)] * 5
    text = " ".join(advice(found, workers=8, cpus=2))
    for said in ("5 of 25 trial(s)", "412 ms", "8 worker(s) on 2 CPU(s)", "-n 4", "--dw-tcp-rate"):
        assert said in text


@given(found=st.lists(COUNTS), workers=st.integers(1, 64), cpus=st.none() | st.integers(1, 64))
def test_there_is_advice_if_and_only_if_something_stalled(
    found: list[Stalled], workers: int, cpus: int | None
) -> None:
    said = advice(found, workers=workers, cpus=cpus)
    assert bool(said) == any(each.stalls for each in found)
    if said:
        assert ("-n " in " ".join(said)) == (workers > 1)
        assert "-n 0" not in " ".join(said)


STALLED = """
@pytest.fixture(autouse=True)
def busy(measured, monkeypatch):
    from dataclasses import replace
    import pytest_drainwatch.trial as conductor
    from tests.plugin.test_overload import at
    from pytest_drainwatch.core.observation import Event
    whole = conductor.measure
    def measure(held):
        trial = whole(held)
        stalls = (at(Event.AGENT_STALLED, 0, 250),) if trial.scenario.id == "ignore-delete" else ()
        judged = replace(trial.report, trial=replace(trial.report.trial, stalls=stalls))
        return replace(trial, report=judged)
    monkeypatch.setattr(conductor, "measure", measure)
"""


@pytest.mark.parametrize(
    ("arguments", "workers"), [([], "1 worker(s)"), (["-n2"], "2 worker(s)")], ids=str
)
def test_a_run_with_stalls_ends_in_advice(
    drain_suite: pytest.Pytester, arguments: list[str], workers: str
) -> None:
    with (drain_suite.path / "conftest.py").open("a") as conftest:
        conftest.write(STALLED)
    result = run(drain_suite, *arguments)
    result.stdout.fnmatch_lines([f"1 of 3 trial(s) had stalls*250 ms: {workers} on *"])


def test_with_q_there_is_none(drain_suite: pytest.Pytester) -> None:
    with (drain_suite.path / "conftest.py").open("a") as conftest:
        conftest.write(STALLED)
    drain_suite.runpytest("-q").stdout.no_fnmatch_line("*had stalls*")


def test_a_run_without_stalls_does_not(drain_suite: pytest.Pytester) -> None:
    drain_suite.runpytest().stdout.no_fnmatch_line("*had stalls*")
