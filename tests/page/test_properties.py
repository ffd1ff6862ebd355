"""Whatever was recorded: the page holds every flow of it, and nothing on it is impossible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.render.page.hurt import CUT
from pytest_drainwatch.render.page.trial import trial
from tests.core import story as s
from tests.core.tries import prober, tries
from tests.page.shape import check_trial

MS = st.integers(0, 50_000)
Seen = list[Observation]


@st.composite
def connections(draw: st.DrawFn, name: str) -> Seen:
    """A TCP connection: told and closed, closed, reset, or alive to the end."""
    at_ms, width = draw(MS), draw(st.integers(0, 500))
    closed = s.at(at_ms, at_ms + width)
    end = {
        "told": [
            s.client(Event.FLOW_ANNOUNCED, name, closed, seq=100, reason="drain-deadline"),
            s.client(Event.FLOW_FIN, name, closed),
        ],
        "closed": [s.client(Event.FLOW_FIN, name, closed)],
        "reset": [s.client(Event.FLOW_RESET, name, closed, errno="ECONNRESET")],
        "alive": [ended(name)],
    }
    return [*s.alive(name, at_ms), *draw(st.sampled_from(list(end.values())))]


@st.composite
def datagrams(draw: st.DrawFn, name: str) -> Seen:
    """A UDP flow: answered, perhaps not for a while, by one pod or two."""
    at_ms, lost = draw(MS), draw(st.integers(0, 50))
    back_ms = at_ms + draw(st.integers(200, 5_000))
    who = draw(st.sampled_from([s.OLD, s.NEW]))
    seen = s.alive(name, at_ms)
    if lost:
        seen.append(s.unanswered(name, at_ms + 16, back_ms - 20, lost))
    if draw(st.booleans()):
        if who != s.OLD:
            seen.append(s.responder(name, who, back_ms, back_ms + 1, s.OLD))
        seen.append(s.answered(name, who, back_ms, 59_000, (101 + lost, 300)))
    return [*seen, ended(name, unanswered=lost)]


def ended(name: str, unanswered: int = 0) -> Observation:
    return s.client(
        Event.FLOW_OPEN_AT_END, name, s.at(60_000), sent=300, answered=300 - unanswered,
        unanswered=unanswered, late=0, reordered=0, duplicates=0, last_seq=300, unsent=0,
    )  # fmt: skip


@st.composite
def trials(draw: st.DrawFn) -> list[list[Observation]]:
    count = draw(st.integers(1, 4))
    flows = [draw(connections(f"tcp-{n}")) for n in range(count)]
    flows += [draw(datagrams(f"udp-{n}")) for n in range(draw(st.integers(0, 3)))]
    if draw(st.booleans()):
        parts = [tries(-900, 100)]
        start_ms = draw(st.integers(100, 2_000))
        how = draw(st.sampled_from([Result.REFUSED, Result.RESET, Result.ANSWERED]))
        parts.append(tries(start_ms, draw(st.integers(1, 100)), how))
        if draw(st.booleans()):
            parts.append(tries(start_ms + 1_000, 100, who=s.NEW))
        flows.append(prober(*parts))
    if draw(st.booleans()):
        flows.append([s.log(Event.SIGTERM_RECEIVED, draw(st.integers(1, 100)))])
    return flows


@given(trials())
def test_every_page_is_possible_and_has_every_flow(seen: list[list[Observation]]) -> None:
    report = derive(s.recording([s.accepted()], s.cluster(0, 55_000), *seen))
    found = trial(report)
    check_trial(found)
    assert {flow["id"] for flow in found["flows"]} == {flow.id for flow in report.trial.flows}
    hurt = (
        any(flow.outcome in CUT and flow.proto == "tcp" for flow in report.trial.flows)
        or any(flow.continuity and flow.continuity.lost for flow in report.trial.flows)
        or any(prober.failed for prober in report.trial.new_connections)
    )
    assert (found["hurt"] is not None) == hurt
