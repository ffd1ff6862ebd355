"""When the node is looked at, and that looking never gets in a trial's way."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from pytest_drainwatch import mechanism
from pytest_drainwatch.cluster.network import Answer, NodeNetwork
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.mechanism import Evidence, Fields
from pytest_drainwatch.priority import running_soon
from tests.core.netdumps import dump, service_in

SERVICE = service_in(dump("iptables-two"))
CLIENT = "198.18.0.1"
PORTS = {("tcp", 30740), ("udp", 30257)}
PATIENCE_S = 20.0


def network(
    state: str = "two", problem: str | None = None, mode: str | None = "iptables"
) -> NodeNetwork:
    """What a real node said, as if just now."""
    now = time.monotonic_ns()

    def answer(name: str) -> Answer:
        return Answer(asked_ns=now, answered_ns=now + 1, text=dump(name), problem=problem)

    return NodeNetwork(
        conntrack=answer(f"conntrack-{state}"), mode=mode, rules=answer(f"iptables-{state}")
    )


@dataclass
class Scene:
    """A watch whose sights the test moves, and the recording."""

    pods_seen: dict[str, Fields] = field(default_factory=dict)
    slices_seen: dict[str, Fields] = field(default_factory=dict)
    recorded: list[Observation] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def pods(self) -> dict[str, Fields]:
        with self.changed:
            return dict(self.pods_seen)

    def slices(self) -> dict[str, Fields]:
        with self.changed:
            return dict(self.slices_seen)

    def wait_changed(self, timeout_s: float) -> None:
        with self.changed:
            self.changed.wait(timeout_s)

    def show(self, pod: Fields | None = None, *, ready: bool | None = None) -> None:
        """The pod as it is now (None: gone), and its endpoint (None: gone)."""
        with self.changed:
            self.pods_seen = {} if pod is None else {"uid-1": pod}
            listed = [] if ready is None else [{"uid": "uid-1", "ready": ready}]
            self.slices_seen = {"slice-1": {"endpoints": listed}}
            self.changed.notify_all()

    def record(self, seen: Observation) -> None:
        with self.changed:
            self.recorded.append(seen)

    def occasions(self, event: Event = Event.CONNTRACK) -> list[str]:
        with self.changed:
            return [str(o.data.get("occasion")) for o in self.recorded if o.event is event]

    def wait_for(self, *occasions: Occasion) -> None:
        """Wait until these, and no others, were looked at, each with both questions."""
        deadline = time.monotonic() + PATIENCE_S
        while self.occasions(Event.PROXY_RULES) != list(occasions):
            assert time.monotonic() < deadline, self.recorded
            time.sleep(0.01)
        assert self.occasions() == list(occasions)


RUNNING: Fields = {"containers": [{"state": "running"}]}
LEAVING: Fields = {"deletion_timestamp": "then", **RUNNING}
ENDED: Fields = {"deletion_timestamp": "then", "containers": [{"state": "terminated"}]}


def steady(sources: Collection[str]) -> NodeNetwork | None:
    assert list(sources) == [CLIENT]
    return network()


@contextmanager
def looking(scene: Scene, look: object = steady) -> Iterator[Evidence]:
    scene.show(RUNNING, ready=True)
    with Evidence(
        look,  # type: ignore[arg-type]
        scene,
        scene.record,
        service=SERVICE,
        sources=[CLIENT],
        ports=PORTS,
    ) as evidence:
        yield evidence


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_each_moment_is_looked_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "AFTER_EXIT_S", 1)
    with looking(scene) as evidence:
        assert scene.recorded == []
        evidence.before_trigger()
        scene.wait_for(Occasion.TRIGGER)
        scene.show(LEAVING, ready=True)
        time.sleep(3 * mechanism.POLL_S)
        scene.wait_for(Occasion.TRIGGER)
        scene.show(LEAVING, ready=False)
        scene.wait_for(Occasion.TRIGGER, Occasion.READY_FALSE)
        scene.show(ENDED, ready=False)
        scene.wait_for(Occasion.TRIGGER, Occasion.READY_FALSE, Occasion.EXIT)
        exit_ns = scene.recorded[-1].at.lo
        scene.show(None)
        scene.wait_for(Occasion.TRIGGER, Occasion.READY_FALSE, Occasion.EXIT, Occasion.AFTER_EXIT)
        assert scene.recorded[-1].at.lo - exit_ns >= 900_000_000
        evidence.observed()
        scene.wait_for(Occasion.TRIGGER, Occasion.READY_FALSE, Occasion.EXIT, Occasion.AFTER_EXIT)


def test_a_mode_that_is_not_known_is_recorded_as_none(scene: Scene) -> None:
    with looking(scene, lambda sources: network(mode=None)) as evidence:
        evidence.before_trigger()
        scene.wait_for(Occasion.TRIGGER)
    (rules,) = [o for o in scene.recorded if o.event is Event.PROXY_RULES]
    assert rules.data["mode"] is None
    assert "rules" not in rules.data


def test_a_trial_that_ends_early_is_looked_at_a_last_time(scene: Scene) -> None:
    with looking(scene) as evidence:
        evidence.before_trigger()
        scene.show(None)
        scene.wait_for(Occasion.TRIGGER, Occasion.EXIT)
        evidence.observed()
        scene.wait_for(Occasion.TRIGGER, Occasion.EXIT, Occasion.END)


@pytest.mark.parametrize(
    ("ready", "looked"), [(None, []), (True, []), (False, [Occasion.READY_FALSE])]
)
def test_unready_is_who_is_listed_as_that(
    scene: Scene, ready: bool | None, looked: list[Occasion]
) -> None:
    """An endpoint that is gone was perhaps never unready (publishNotReadyAddresses)."""
    with looking(scene) as evidence:
        evidence.before_trigger()
        scene.show(LEAVING, ready=ready)
        time.sleep(3 * mechanism.POLL_S)
        evidence.observed()
        scene.wait_for(Occasion.TRIGGER, *looked, Occasion.END)


def test_a_look_after_the_exit_is_the_last(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the observation is over by then: nothing has changed since."""
    monkeypatch.setattr(mechanism, "AFTER_EXIT_S", 0)
    with looking(scene) as evidence:
        evidence.before_trigger()
        with scene.changed:  # both come at once
            evidence._observed.set()
            scene.show(None)
        evidence.observed()
        scene.wait_for(Occasion.TRIGGER, Occasion.EXIT, Occasion.AFTER_EXIT)


def test_a_pod_that_stays_is_no_exit(scene: Scene) -> None:
    """A replica whose readiness falters, or whose container ends, is not being terminated."""
    with looking(scene) as evidence:
        evidence.before_trigger()
        scene.show({"containers": [{"state": "terminated"}]}, ready=False)
        evidence.observed()
        scene.wait_for(Occasion.TRIGGER, Occasion.END)


def test_a_pod_that_came_later_is_no_target(scene: Scene) -> None:
    with looking(scene) as evidence:
        with scene.changed:
            scene.pods_seen = {}
        evidence.before_trigger()
        scene.show(LEAVING, ready=False)
        evidence.observed()
        scene.wait_for(Occasion.TRIGGER, Occasion.END)


def test_given_up_means_no_further_look(scene: Scene) -> None:
    with looking(scene) as evidence:
        evidence.before_trigger()
    scene.show(None)
    evidence.close()
    scene.wait_for(Occasion.TRIGGER)


def test_given_up_before_the_trigger(scene: Scene) -> None:
    with looking(scene) as evidence:
        pass
    evidence.close()
    assert scene.recorded == []
    Evidence(steady, scene, scene.record, service=SERVICE, sources=[], ports=[]).close()


def test_only_the_flows_and_the_service_are_recorded(scene: Scene) -> None:
    with looking(scene) as evidence:
        evidence.before_trigger()
    conntrack, rules = scene.recorded
    assert conntrack.source is rules.source is Source.NODE
    entries = conntrack.data["entries"]
    assert isinstance(entries, list)
    assert {(e["proto"], e["dport"]) for e in entries} == PORTS
    assert (conntrack.data["left_out"], conntrack.data["problem"]) == (0, None)
    lines = rules.data["rules"]
    assert isinstance(lines, list)
    assert any("DNAT" in line for line in lines)
    assert not any("default/kubernetes" in line for line in lines)
    assert rules.data["mode"] == "iptables"


def test_a_node_that_cannot_be_looked_into(scene: Scene) -> None:
    with looking(scene, lambda _: None) as evidence:
        evidence.before_trigger()
        scene.show(None)
        evidence.observed()
    (told,) = scene.recorded
    assert told.data == {"occasion": "trigger", "problem": mechanism.CANNOT_LOOK}


def test_a_program_that_failed(scene: Scene) -> None:
    with looking(scene, lambda _: network(problem="no such program")) as evidence:
        evidence.before_trigger()
        evidence.observed()
    assert {o.data["problem"] for o in scene.recorded} == {"no such program"}
    assert not any("entries" in o.data or "rules" in o.data for o in scene.recorded)


def test_a_look_that_raises_is_a_look_with_a_problem(scene: Scene) -> None:
    def broken(_: Collection[str]) -> NodeNetwork | None:
        raise RuntimeError("boom")

    with looking(scene, broken) as evidence:
        evidence.before_trigger()
        evidence.observed()
    assert [o.data["occasion"] for o in scene.recorded] == [Occasion.TRIGGER, Occasion.END]
    assert all("boom" in str(o.data["problem"]) for o in scene.recorded)


def test_a_watch_that_breaks_ends_looking_and_nothing_else(scene: Scene) -> None:
    class Broken(Scene):
        def slices(self) -> dict[str, Fields]:
            raise RuntimeError("boom")

    broken = Broken(recorded=scene.recorded)
    with looking(broken) as evidence:
        evidence.before_trigger()
        broken.show(LEAVING, ready=False)
        evidence.observed()
    told = scene.recorded[-1]
    assert told.data["occasion"] == Occasion.END
    assert "boom" in str(told.data["problem"])


def test_a_full_disk_is_the_recorders_affair(scene: Scene) -> None:
    def full(_: Observation) -> None:
        raise OSError(28, "No space left on device")

    scene.show(RUNNING, ready=True)
    with Evidence(steady, scene, full, service=SERVICE, sources=[CLIENT], ports=PORTS) as evidence:
        evidence.before_trigger()
        evidence.observed()


def test_a_look_that_hangs_does_not_hold_the_trial(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mechanism, "PATIENCE_S", 0.1)
    monkeypatch.setattr(mechanism, "TRIGGER_PATIENCE_S", 0.1)
    go_on = threading.Event()

    def hangs(_: Collection[str]) -> NodeNetwork | None:
        go_on.wait(PATIENCE_S)
        return network()

    with looking(scene, hangs) as evidence:
        began = time.monotonic()
        evidence.before_trigger()
        evidence.observed()
        evidence.close()
        assert time.monotonic() - began < PATIENCE_S / 2
        go_on.set()


def test_looking_is_not_slower_than_the_watches_that_wait_for_its_lock(scene: Scene) -> None:
    seen: list[tuple[int, int]] = []

    def policy() -> tuple[int, int]:
        nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        return os.sched_getscheduler(0), nice

    def look(_: Collection[str]) -> NodeNetwork | None:
        seen.append(policy())
        return network()

    before = policy()
    with looking(scene, look) as evidence:
        evidence.before_trigger()
    with running_soon():
        assert seen == [policy()]
    assert policy() == before
