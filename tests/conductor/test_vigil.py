"""Waiting within a trial: what voids it, and when it is over."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from pytest_drainwatch import vigil
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.flows.process import AgentStatus, ProtoStatus
from pytest_drainwatch.preflight import TrialVoid


@dataclass
class Agent:
    """Says what it is told to."""

    said: AgentStatus

    def status(self) -> AgentStatus:
        return self.said


@dataclass
class Watch:
    """Sees what it is told to."""

    uids: set[str] = field(default_factory=set)

    def pods(self) -> dict[str, dict[str, object]]:
        return {uid: {} for uid in self.uids}

    def endpoint_uids(self) -> set[str]:
        return set()


def status(**tcp: int) -> AgentStatus:
    return AgentStatus(tcp=ProtoStatus(**tcp), udp=ProtoStatus())


ALIVE = status(alive=10, target_alive=10, target_answering=10)


def test_calm_flows_do_not_void() -> None:
    assert vigil.undisturbed(Agent(ALIVE))() is False  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "said",
    [
        AgentStatus(first_ends=("tcp-0001: flow_reset",)),
        status(alive=10, quiet=10),
        status(alive=10, refused=1),
    ],
)
def test_a_flow_that_ends_or_falters_voids(said: AgentStatus) -> None:
    """A path that carries a few hundred datagrams and then stops is not a settled one (C10)."""
    with pytest.raises(TrialVoid, match="'settled' failed"):
        vigil.undisturbed(Agent(said))()  # type: ignore[arg-type]


def seconds_until_over(
    said: AgentStatus,
    monkeypatch: pytest.MonkeyPatch,
    *,
    everybody: bool = True,
    one_way: bool = False,
) -> float | None:
    """How long after everything is gone the observation goes on; None if for ever."""
    clock = itertools.count(0, NS_PER_S // 4)
    monkeypatch.setattr("time.monotonic_ns", lambda: next(clock))
    over = vigil.all_over(
        Watch(),  # type: ignore[arg-type]
        Agent(said),  # type: ignore[arg-type]
        {"uid"},
        everybody=everybody,
        one_way=one_way,
    )
    for looks in range(200):
        if over():
            return looks / 4
    return None


def test_it_is_over_a_moment_after_the_last_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds_until_over(status(alive=0, ended=10), monkeypatch) == 1.0


def test_it_is_not_over_while_a_target_flow_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds_until_over(ALIVE, monkeypatch) is None


def test_unanswered_flows_of_any_pod_are_given_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bystander that has just fallen silent is not one that survived."""
    bystander = status(alive=1, quiet=1)
    assert seconds_until_over(bystander, monkeypatch, everybody=False) == 12.0
    udp = AgentStatus(udp=ProtoStatus(alive=1, quiet=1))
    assert seconds_until_over(udp, monkeypatch, everybody=False) == 6.0


def test_flows_of_which_the_agent_knows_nothing_are_given_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One-way flows: silence needs seconds to be one, and who falls silent is not told."""
    gone = status(alive=0, ended=10)
    assert seconds_until_over(gone, monkeypatch, one_way=True) == 6.0


def test_bystanders_may_live_unless_every_pod_was_terminated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = status(alive=5)
    assert seconds_until_over(others, monkeypatch, everybody=False) == 1.0
    assert seconds_until_over(others, monkeypatch, everybody=True) is None


def test_it_is_not_over_while_the_pod_is_there() -> None:
    over = vigil.all_over(Watch({"uid"}), Agent(status()), {"uid"}, everybody=True)  # type: ignore[arg-type]
    assert over() is False
