"""Waiting within a trial: what voids it, and when it is over."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import pytest

from pytest_drainwatch import vigil
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.flows.process import AgentStatus, HttpStatus, ProberStatus, ProtoStatus
from pytest_drainwatch.preflight import TrialVoid


@dataclass
class Agent:
    """Says what it is told to."""

    said: AgentStatus

    def status(self) -> AgentStatus:
        return self.said


@dataclass
class Served(Agent):
    """Each time it is asked one more new connection was answered, in all probers."""

    def status(self) -> AgentStatus:
        probers = {
            name: replace(prober, answered=prober.answered + 1)
            for name, prober in self.said.probers.items()
        }
        self.said = replace(self.said, probers=probers)
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
    said: AgentStatus | Agent,
    monkeypatch: pytest.MonkeyPatch,
    *,
    verb: Trigger = Trigger.DELETE,
    everybody: bool = True,
    one_way: bool = False,
    signed: bool = True,
    replaced: bool = True,
    notices_ns: int = 0,
) -> float | None:
    """How long after everything is gone the observation goes on; None if for ever."""
    clock = itertools.count(NS_PER_S, NS_PER_S // 4)
    monkeypatch.setattr("time.monotonic_ns", lambda: next(clock))
    over = vigil.all_over(
        Watch(),  # type: ignore[arg-type]
        said if isinstance(said, Agent) else Agent(said),  # type: ignore[arg-type]
        verb,
        {"uid"},
        everybody=everybody,
        one_way=one_way,
        signed=signed,
        replaced=replaced,
        notices_ns=notices_ns,
    )
    for looks in range(200):
        if over():
            return looks / 4
    return None


def test_it_is_over_a_moment_after_the_last_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seconds_until_over(status(alive=0, ended=10), monkeypatch) == 1.0


def test_it_is_not_over_before_a_load_balancer_has_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = status(alive=0, ended=10)
    assert seconds_until_over(gone, monkeypatch, notices_ns=30 * NS_PER_S) == 31.0


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


def test_where_nobody_says_who_answers_the_pods_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows of a workload of the user's that go on may be led to another pod by now, and those
    on which nothing is said need keepalives to end."""
    going_on = status(alive=10)
    assert seconds_until_over(going_on, monkeypatch, signed=False) == 8.0
    silent = status(alive=10, quiet=2)
    assert seconds_until_over(silent, monkeypatch, signed=False) == 12.0


@pytest.mark.parametrize(
    ("http", "waits_s"),
    [
        (HttpStatus(lanes=4, ready=4), 8.0),
        (HttpStatus(lanes=4, ready=4, failing=1), vigil.RECOVERY_NS / NS_PER_S),
        (HttpStatus(lanes=4, ready=4, waiting=2), 8.0 + vigil.LAST_ANSWERS_NS / NS_PER_S),
        (HttpStatus(lanes=4, ready=4, due=1), None),
    ],
)
def test_requests_are_made_answered_and_have_recovered(
    http: HttpStatus, waits_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = AgentStatus(http=http)
    assert seconds_until_over(said, monkeypatch, signed=False) == waits_s


@pytest.mark.parametrize(("verb", "replaced"), [(Trigger.SCALE, True), (Trigger.DELETE, False)])
def test_no_request_is_waited_for_where_nothing_replaces_the_pods(
    verb: Trigger, replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = AgentStatus(http=HttpStatus(lanes=4, ready=4, failing=1))
    took_s = seconds_until_over(said, monkeypatch, verb=verb, signed=False, replaced=replaced)
    assert took_s == 8.0


def test_requests_that_fail_before_the_trigger_void() -> None:
    said = AgentStatus(http=HttpStatus(lanes=4, ready=4, failing=1, problem="status 503"))
    with pytest.raises(TrialVoid, match="1 HTTP client\\(s\\) fail: status 503"):
        vigil.undisturbed(Agent(said))()  # type: ignore[arg-type]


def test_it_is_not_over_while_the_pod_is_there() -> None:
    over = vigil.all_over(Watch({"uid"}), Agent(status()), Trigger.DELETE, {"uid"}, everybody=True)  # type: ignore[arg-type]
    assert over() is False


def test_a_rollout_is_over_without_those_who_came_after(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(NS_PER_S, NS_PER_S // 4)
    monkeypatch.setattr("time.monotonic_ns", lambda: next(clock))
    watch = Watch({"old-1", "old-2", "new-1"})
    moved = status(moved=10)
    over = vigil.all_over(watch, Agent(moved), Trigger.ROLLOUT, {"old-1", "old-2"}, everybody=True)  # type: ignore[arg-type]
    assert not any(over() for _ in range(20))
    watch.uids = {"old-2", "new-1", "new-2"}
    assert not any(over() for _ in range(20)), "one of several is still there"
    watch.uids = {"new-1", "new-2"}
    assert any(over() for _ in range(20))


def test_a_killed_container_is_awaited_until_its_pod_is_ready_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its pod and its endpoint stay; what went is an older run of its container."""
    clock = itertools.count(NS_PER_S, NS_PER_S // 4)
    monkeypatch.setattr("time.monotonic_ns", lambda: next(clock))
    watch = Watch({"uid"})
    shown: dict[str, object] = {"ready": True, "containers": [{"restarts": 3}]}
    monkeypatch.setattr(watch, "pods", lambda: {"uid": shown})
    monkeypatch.setattr(watch, "endpoint_uids", lambda: {"uid"})

    def over(restarts: dict[str, int]) -> bool:
        look = vigil.all_over(
            watch,  # type: ignore[arg-type]
            Agent(status(ended=10)),  # type: ignore[arg-type]
            Trigger.CONTAINER_KILL,
            {"uid"},
            everybody=True,
            restarts=restarts,
        )
        return any(look() for _ in range(20))

    assert not over({}), "one that is to go, and is there"
    assert not over({"uid": 3}), "the same run as before"
    assert over({"uid": 2})
    shown["ready"] = False
    assert not over({"uid": 2}), "it has started, and takes no traffic yet"


def test_a_control_is_never_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing ends, and that is looked at until the window closes."""
    gone = status(alive=0, ended=10)
    assert seconds_until_over(gone, monkeypatch, verb=Trigger.NONE) is None
    assert seconds_until_over(gone, monkeypatch, verb=Trigger.SCALE) == 1.0


@pytest.mark.parametrize(
    ("verb", "failures", "ours", "seconds"),
    [
        (Trigger.DELETE, 0, 0, 1.0),
        (Trigger.DELETE, 7, 0, 2.0),  # none more for so long
        (Trigger.DELETE, 0, 7, 1.0),  # our own limits say nothing of the workload
        (Trigger.SCALE, 7, 0, 1.0),  # nobody will come
        (Trigger.NAMESPACE_DELETE, 7, 0, 1.0),
    ],
)
def test_new_connections_that_failed_must_have_been_answered_for_a_while(
    verb: Trigger, failures: int, ours: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    prober = ProberStatus(attempts=100, answered=90, failed=failures, finished=90 + failures + ours)
    said = AgentStatus(tcp=ProtoStatus(ended=10), probers={"tcp-new": prober})
    assert seconds_until_over(Served(said), monkeypatch, verb=verb) == seconds
    # Where an evacuation leaves no node, nobody will come either.
    assert seconds_until_over(Served(said), monkeypatch, verb=verb, replaced=False) == 1.0


@pytest.mark.parametrize("name", ["tcp-new", "udp-new"])
def test_seldom_tried_ones_must_have_been_answered_too(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No new failure for two seconds is no answer where one is tried every five."""
    fine = ProberStatus(attempts=100, answered=100, finished=100)
    failing = ProberStatus(attempts=100, answered=93, failed=7, finished=100)
    probers = {**dict.fromkeys(("tcp-new", "udp-new"), fine), name: failing}
    said = AgentStatus(tcp=ProtoStatus(ended=10), probers=probers)
    limit = vigil.RECOVERY_NS / NS_PER_S
    assert seconds_until_over(said, monkeypatch) == limit, "and not for ever"
    assert seconds_until_over(said, monkeypatch, verb=Trigger.SCALE) == 1.0

    class Seldom(Agent):
        """An answer every five seconds; it is asked every quarter of one (or oftener)."""

        asked = 0

        def status(self) -> AgentStatus:
            self.asked += 1
            answered = replace(failing, answered=93 + self.asked // 20)
            return replace(self.said, probers={**probers, name: answered})

    over_after = seconds_until_over(Seldom(said), monkeypatch)
    assert over_after is not None
    assert 2.0 < over_after < 6.0


def test_a_replacement_that_never_comes_is_not_awaited_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Failing(Agent):
        def status(self) -> AgentStatus:
            prober = ProberStatus(**{kind: next(more)})
            return AgentStatus(tcp=ProtoStatus(ended=10), probers={"tcp-new": prober})

    def over_after() -> float:
        watch, agent = Watch(), Failing(ALIVE)
        over = vigil.all_over(watch, agent, Trigger.DELETE, {"uid"}, everybody=True)  # type: ignore[arg-type]
        return next(looks / 4 for looks in range(200) if over())

    more = itertools.count()
    clock = itertools.count(NS_PER_S, NS_PER_S // 4)
    monkeypatch.setattr("time.monotonic_ns", lambda: next(clock))
    kind = "failed"
    assert over_after() == vigil.RECOVERY_NS / NS_PER_S
    kind = "finished"  # unlike failures, what runs out on our side does not delay the end
    assert over_after() == vigil.LINGER_NS / NS_PER_S
