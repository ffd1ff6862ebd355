"""Closed sets have words for all of their members; and instants in prose say what is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.flow.classify import VERDICTS, Outcome
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.probing.document import FAILED
from pytest_drainwatch.core.udp.continuity import ANSWERING, PhaseKind
from pytest_drainwatch.core.windows.document import Met
from pytest_drainwatch.render.page import flows, prose, tried
from pytest_drainwatch.render.page.failing import KINDS
from pytest_drainwatch.render.page.story import SILENT
from pytest_drainwatch.render.page.windows import FEW, met
from pytest_drainwatch.render.page.words import FATES


def test_every_fate_of_a_connection_has_words() -> None:
    # What only UDP flows can be, or what nobody could measure, is said in other sentences.
    missing = {each for each in VERDICTS.values() if each not in FATES}
    assert {outcome for outcome, _ in missing} <= {Outcome.NOT_MEASURED}


def test_every_phase_is_a_state_and_has_words() -> None:
    assert set(flows.PHASES) == set(PhaseKind)
    assert set(SILENT) == set(PhaseKind) - ANSWERING


def test_every_way_to_fail_has_words() -> None:
    assert set(KINDS) == set(LaneKind)
    assert set(tried.RESULTS) == FAILED


@pytest.mark.parametrize(
    ("bounds", "at", "since"),
    [
        ((46_430_296, 46_430_296), "at +46.4 ms", "from +46.4 ms on"),
        ((44_137_189, 45_109_285), "at about +45 ms", "from about +45 ms on"),
        ((418_387, 34_754_174), "within the first 35 ms", "from the first 35 ms on"),
        ((0, 1_950_000_000), "within the first 2.0 s", "from the first 2.0 s on"),
        ((25_060_847_160, 25_123_660_047), "at about +25.09 s", "from about +25.09 s on"),
        (
            (282_000_000, 353_000_000),
            "between +282 ms and +353 ms",
            "from +282–353 ms on",
        ),
        ((12_700_000_000, 22_680_000_000), "between +12.7 s and +22.7 s", "from +12.7–22.7 s on"),
    ],
)
def test_instants_in_prose(bounds: tuple[int, int], at: str, since: str) -> None:
    assert (prose.at(bounds), prose.since(bounds)) == (at, since)


@given(st.integers(0, 100 * NS_PER_S), st.integers(0, 100 * NS_PER_S))
def test_one_number_stands_only_for_what_is_narrow(lo: int, width: int) -> None:
    text = prose.near((lo, lo + width))
    if "–" not in text:
        assert width <= max(5 * NS_PER_MS, 0.05 * (lo + width))


@pytest.mark.parametrize(
    ("attempts", "failed", "words"),
    [
        (FEW - 1, 0, None),
        (FEW, 0, f"none of {FEW} new connections failed"),
        (1, 1, "1 of 1 new connections failed"),
    ],
)
def test_what_few_attempts_met_is_not_shown_unless_they_failed(
    attempts: int, failed: int, words: str | None
) -> None:
    found = Met(attempts=attempts, failed=failed, rate=None, at_most=(attempts, failed))
    assert met(found) == words
