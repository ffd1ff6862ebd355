"""A flow's pieces, for whatever history: in order, without gaps, and none of two equal ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.core.udp.continuity import ANSWERING, Continuity, Phase, PhaseKind
from pytest_drainwatch.render.page.data import State
from pytest_drainwatch.render.page.flows import flow, pieces
from pytest_drainwatch.render.page.pods import pods_of
from tests.core import story as s
from tests.core.trials import recording_of

REPORT = derive(recording_of(Scenario()))
(TCP,) = REPORT.trial.flows
(UDP,) = derive(
    s.recording([s.accepted(), s.deleted()], s.alive("udp-0001", 100), s.finished())
).trial.flows
WHO = ("uid-old/n", "uid-new/n")
TIMES = st.integers(-5_000_000_000, 60_000_000_000)


@st.composite
def udp_flows(draw: st.DrawFn) -> FlowReport:
    """A UDP flow with phases in the order of their latest begins."""
    edges = sorted(draw(st.lists(TIMES, min_size=1, max_size=6)))
    phases = []
    for edge in edges:
        kind = draw(st.sampled_from(PhaseKind))
        who = draw(st.sampled_from(WHO)) if kind in ANSWERING else None
        width = draw(st.integers(0, 3_000_000_000))
        lost = draw(st.one_of(st.none(), st.integers(0, 100)))
        phases.append(Phase(kind=kind, begins_ns=(edge - width, edge), responder=who, lost=lost))
    continuity = Continuity(
        sent=None, unsent=None, answered=None, lost=None, late=None, open=None, reordered=None,
        duplicated=None, phases=tuple(phases), outages=(), recovered_at_ns=None, gap_ns=None,
        recovered_by=None, note=None,
    )  # fmt: skip
    return replace(UDP, continuity=continuity, responders=WHO)


@given(udp_flows())
def test_pieces_follow_each_other(report: FlowReport) -> None:
    trial = replace(REPORT.trial, flows=(report,))
    found = pieces(report, pods_of(trial))
    assert found
    for piece in found:
        lo, hi = piece["at"]
        assert lo <= hi
        assert 0 <= piece["edge"] <= hi - lo
        assert (piece["by"] is not None) == (piece["state"] in (State.ANSWERED, State.FOREIGN)) or (
            piece["state"] is State.UNKNOWN
        )
    for one, other in pairwise(found):
        assert one["at"][1] == other["at"][0]
        assert (one["state"], one["by"]) != (other["state"], other["by"])


@given(udp_flows())
def test_every_flow_has_a_story_of_one_sentence(report: FlowReport) -> None:
    trial = replace(REPORT.trial, flows=(report,))
    found = flow(report, pods_of(trial), rows=True)
    assert found["story"].endswith(".")
    assert found["story"][0].isupper() or not found["story"][0].isalpha()
    assert "uid-" not in found["story"]


def test_a_connection_is_answered_until_it_is_closed() -> None:
    found = pieces(TCP, pods_of(REPORT.trial))
    assert [piece["state"] for piece in found] == [State.OPEN, State.ANSWERED]
    assert found[-1]["at"][1] == 5_041_000
    cut = replace(TCP, history=tuple(h for h in TCP.history if h.event in ("connected",)))
    assert [piece["state"] for piece in pieces(cut, pods_of(REPORT.trial))] == [State.OPEN]
