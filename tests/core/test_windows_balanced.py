"""The window of a load balancer: how long it goes on sending to the node of a pod that ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.jsonvalue import objects
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.windows.balanced import NO_NODE, NOT_SEEN, STILL_UP, WAS_DOWN
from pytest_drainwatch.core.windows.document import BalancerWindow
from pytest_drainwatch.render import terminal
from tests.core import story as s
from tests.core.story import OLD, OTHER, at
from tests.core.tries import prober, tries

MS = NS_PER_MS
HERE, THERE = "node-1", "node-2"


def balancer(event: Event, when: Interval, node: str = "", **data: object) -> Observation:
    return Observation(source=Source.BALANCER, event=event, at=when, subject=node, data=data)


def server(lo: float, hi: float, node: str = HERE, *, up: bool) -> Observation:
    return balancer(Event.BALANCER_SERVER, at(lo, hi), node, up=up, check="L7OK", sessions=0)


def let_go(lo: float, hi: float, node: str = HERE, sessions: int = 3) -> Observation:
    return balancer(Event.BALANCER_DEREGISTERED, at(lo, hi), node, sessions=sessions)


STARTED = balancer(Event.BALANCER_STARTED, at(-8000))
UP = [STARTED, server(-7000, -6990, up=True), server(-7000, -6990, THERE, up=True)]


def on_nodes(seen: Iterable[Observation], **nodes: str | None) -> list[Observation]:
    """The same, its slices saying on which node each pod is."""
    found = []
    for o in seen:
        if o.event is Event.ENDPOINT_SLICE:
            listed = [{**e, "node": nodes.get(str(e["uid"]))} for e in objects(o.data["endpoints"])]
            o = replace(o, data={**o.data, "endpoints": listed})
        found.append(o)
    return found


def report(*parts: Iterable[Observation], node: str | None = HERE) -> TrialReport:
    whose = on_nodes(s.cluster(), **{OLD: node})
    return derive(s.recording([s.accepted()], whose, *parts)).trial


def window(*parts: Iterable[Observation], node: str | None = HERE) -> BalancerWindow:
    (pod,) = report(*parts, node=node).windows
    assert pod.load_balancer is not None
    return pod.load_balancer


def test_without_a_load_balancer_there_is_no_window() -> None:
    (pod,) = report().windows
    assert pod.load_balancer is None
    assert not [note for note in report().notes if "load balancer" in note]


def test_it_sends_to_the_node_until_it_held_that_down() -> None:
    down = [server(1060, 1070, up=False), let_go(2080, 2081)]
    found = window(UP, down)
    assert found.sends.opens_ns == (0, 0)
    assert found.sends.closes_ns == found.sends.lasts_ns == (1060 * MS, 1070 * MS)
    assert (found.let_go_ns, found.closed) == ((2080 * MS, 2081 * MS), 3)
    assert found.again_ns is None


def test_what_happened_to_another_node_is_not_its_end() -> None:
    found = window(UP, [server(1060, 1070, THERE, up=False), let_go(2080, 2081, THERE)])
    assert (found.sends.opens_ns, found.sends.closes_ns) == ((0, 0), None)
    assert found.sends.note == STILL_UP
    assert (found.let_go_ns, found.closed) == (None, None)


def test_what_was_before_the_trigger_is_not_its_end() -> None:
    before = [server(-9000, -8990, up=False), let_go(-8500, -8499)]
    assert window(before, UP).sends.note == STILL_UP
    assert window(before, UP).let_go_ns is None
    found = window(UP, [server(-500, -490, up=False)])
    assert (found.sends.opens_ns, found.sends.note) == (None, WAS_DOWN)


def test_a_node_that_comes_back_says_when() -> None:
    found = window(UP, [server(1000, 1010, up=False), server(4000, 4010, up=True)])
    assert found.sends.closes_ns == (1000 * MS, 1010 * MS)
    assert found.again_ns == (4000 * MS, 4010 * MS)


@pytest.mark.parametrize(("node", "note"), [(None, NO_NODE), ("node-9", NOT_SEEN)])
def test_what_is_not_known_is_none_with_a_note(node: str | None, note: str) -> None:
    found = window(UP, [server(1060, 1070, up=False)], node=node)
    assert (found.sends.opens_ns, found.sends.closes_ns, found.sends.note) == (None, None, note)


def test_new_connections_of_that_time_count_and_the_last_that_the_pod_answered_is_told() -> None:
    down = [server(1000, 1010, up=False)]
    mine, lost = tries(-500, 120), tries(100, 180, Result.NEVER_SERVED)
    late = tries(1000, 200, who=OTHER)
    elsewhere = [s.pod(OTHER, -10)]
    found = window(UP, down, elsewhere, prober(mine, lost, late))
    assert found.sends.met is not None
    assert (found.sends.met.attempts, found.sends.met.failed) == (200, 180)
    assert found.last_answered_ns is not None
    assert 95 * MS <= found.last_answered_ns[1] < 100 * MS
    served = window(UP, down, elsewhere, prober(tries(-500, 300), late))
    assert served.sends.met is not None
    assert served.sends.met.failed == 0


def test_the_timeline_and_the_text_tell_of_it() -> None:
    down = [server(1060, 1070, up=False), let_go(2080, 2081)]
    told = derive(s.recording([s.accepted()], on_nodes(s.cluster(), **{OLD: HERE}), UP, down))
    events = [entry.event for entry in told.trial.timeline if entry.source is Source.BALANCER]
    assert events[-2:] == ["balancer_server_down", "balancer_deregistered"]
    shown = terminal.show(told)
    assert "load-balancer" in shown
    assert "3 connection(s) closed" in shown
    assert [note for note in told.trial.notes if "connections end at the load balancer" in note]
