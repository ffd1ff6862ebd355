"""The balancer's model beside a real HAProxy: where they agree, and where they differ by design.

The same commands go to both: to the model as they stand, to HAProxy as real connections and as
commands of its runtime API. docs/balancer.md lists the differences; each has its test here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.balancer.grammar import Verb, carry_out, words_of
from pytest_drainwatch.core.balancer.machine import Balancer, Refused, State
from tests.core.balancer import mutants
from tests.core.balancer.played import play
from tests.loopback.haproxy import HAPROXY, NOT_HAD, SAID_NOTHING, Haproxy, Held
from tests.loopback.rig import PATIENCE_S, RigError

pytestmark = pytest.mark.skipif(HAPROXY is None, reason=NOT_HAD)

STATE = {State.ACTIVE: "ready", State.DRAIN: "drain"}


class Both:
    """A model and an HAProxy that are told the same; where HAProxy picks, the model follows."""

    patience_s = PATIENCE_S

    def __init__(self, proxy: Haproxy, names: str, model: Balancer | None = None) -> None:
        self.proxy = proxy
        self.model = (model or Balancer()).pool(names.split())
        self.held: dict[str, list[Held]] = {name: [] for name in names.split()}

    def play(self, script: str) -> list[str]:
        """HAProxy's answers to a script, in the model's words; compares after each command."""
        answers: list[str] = []
        for line in script.replace(";", "\n").splitlines():
            verb, *arguments = words_of(line)
            answers += self._one(Verb(verb), arguments, line)
            self.compare()
        return answers

    def _one(self, verb: Verb, arguments: list[str], line: str) -> list[str]:
        if verb is Verb.PICK:
            return self._pick()
        try:
            self.model, said = carry_out(self.model, line)
        except Refused:
            # Nothing happens to the model, so HAProxy is not asked. What it would do where the
            # model refuses is a difference, with a test of its own below.
            return []
        told = [*said]
        if verb is Verb.DONE:
            self.held[arguments[0]].pop(0).close()
        elif verb is Verb.DRAIN:
            self.proxy.tell(f"set server pool/{arguments[0]} state drain")
        elif verb is Verb.UNDRAIN:
            self.proxy.tell(f"set server pool/{arguments[0]} state ready")
        elif verb is Verb.REMOVE:
            self.proxy.remove(arguments[0])
            told = [f"killed {sum(held.ended() for held in self.held.pop(arguments[0]))}"]
        assert told == [*said]
        return told

    def _pick(self) -> list[str]:
        held = self.proxy.connect()
        if held.name is None:
            with pytest.raises(Refused, match="no backend is ACTIVE"):
                self.model.pick()
            return []
        self.model = self.model.dispatch(held.name)  # refuses whoever is not ACTIVE
        self.held[held.name].append(held)
        return [held.name]

    def compare(self) -> None:
        """Both have the same servers, in the same states, with the same in flight; all serve."""
        told = {each.name: STATE[each.state] for each in self.model.backends}
        in_flight = {each.name: each.in_flight for each in self.model.backends}
        assert self.proxy.servers() == told
        self.proxy.until(lambda: self.proxy.sessions() == in_flight, self.patience_s)
        assert all(held.echoes() for held in chain.from_iterable(self.held.values()))


@pytest.fixture
def three() -> Iterator[Haproxy]:
    with Haproxy(["a", "b", "c"]) as proxy:
        yield proxy


@pytest.fixture
def both(three: Haproxy) -> Both:
    return Both(three, "a b c")


# ---- where they agree ----


def test_the_rotation_of_a_pool_that_does_not_change(both: Both) -> None:
    picks = "PICK; " * 8 + "PICK"
    assert both.play(picks) == play(f"POOL a b c; {picks}").answers


def test_a_drained_backend_gets_nobody_new_and_keeps_what_it_holds(both: Both) -> None:
    assert both.play("PICK; PICK; PICK; DRAIN b") == ["a", "b", "c"]
    assert "b" not in both.play("PICK; PICK; PICK; PICK; PICK; PICK")
    assert both.proxy.ever()["b"] == 1
    assert both.held["b"][0].echoes()


def test_undrain_rejoins_and_keeps_the_count(both: Both) -> None:
    both.play("PICK; PICK; PICK; DRAIN b; PICK; UNDRAIN b")
    assert both.proxy.sessions()["b"] == 1
    assert "b" in both.play("PICK; PICK; PICK")
    assert both.proxy.sessions()["b"] == both.model.backend("b").in_flight >= 2


def test_in_flight_goes_up_and_down(both: Both) -> None:
    both.play("PICK; PICK; PICK; PICK; DONE a; DONE c; PICK; DRAIN a; DONE a")
    assert both.proxy.sessions()["a"] == both.model.backend("a").in_flight


def test_a_clean_removal_kills_nobody(both: Both) -> None:
    assert both.play("PICK; DRAIN a; DONE a; REMOVABLE; REMOVE a") == ["a", "a", "killed 0"]
    assert set(both.proxy.servers()) == {"b", "c"}


def test_a_forced_removal_kills_what_is_in_flight(both: Both) -> None:
    """As many connections end as the model reports, and only those."""
    both.play("PICK; PICK; PICK; PICK; DRAIN a 30; NOW 30")
    assert both.play("REMOVABLE; REMOVE a") == ["a!", "killed 2"]
    assert all(held.echoes() for held in both.held["b"] + both.held["c"])


def test_a_drain_told_twice_is_one(both: Both) -> None:
    both.play("PICK; DRAIN a; DRAIN a; UNDRAIN a; UNDRAIN a; UNDRAIN b")


def test_with_nobody_active_a_connection_is_turned_away(both: Both) -> None:
    both.play("PICK; DRAIN a; DRAIN b; DRAIN c")
    assert both.play("PICK") == []
    assert both.proxy.ever() == {"a": 1, "b": 0, "c": 0}
    assert both.play("UNDRAIN b; PICK") == ["b"]


names = st.sampled_from("abc")
COMMANDS = st.one_of(
    st.just("PICK"),
    st.just("PICK"),
    names.map("DONE {}".format),
    names.map("DRAIN {}".format),
    names.map("DRAIN {} 1".format),
    names.map("UNDRAIN {}".format),
    names.map("REMOVE {}".format),
    st.just("REMOVABLE"),
)


@given(st.lists(COMMANDS, min_size=8, max_size=30))
def test_any_stream_leaves_both_in_the_same_state(commands: list[str]) -> None:
    with Haproxy(["a", "b", "c"]) as proxy:
        both = Both(proxy, "a b c")
        for now, command in enumerate(commands):
            both.play(f"NOW {now}; {command}")


@pytest.mark.parametrize(
    ("mutant", "script"),
    [
        (mutants.DrainIsRemoval, "DRAIN a"),
        (mutants.DrainForgets, "PICK; DRAIN a"),
        (mutants.UndrainForgets, "PICK; DRAIN a; UNDRAIN a"),
        (mutants.DropsSilently, "PICK; DRAIN a 0; REMOVE a"),
    ],
)
def test_a_mistaken_model_does_not_agree(
    three: Haproxy, mutant: type[Balancer], script: str
) -> None:
    mistaken = Both(three, "a b c", mutant())
    mistaken.patience_s = 0.5
    with pytest.raises((AssertionError, RigError)):
        mistaken.play(script)


# ---- where they differ ----


def test_difference_the_rotation_once_the_pool_changes(both: Both) -> None:
    """HAProxy's servers queue up each by itself: c, whose turn was next, stays next."""
    script = "PICK; PICK; DRAIN a; PICK; PICK"
    assert both.play(script) == ["a", "b", "c", "b"]
    assert play(f"POOL a b c; {script}").answers == ["a", "b", "b", "c"]


def test_difference_who_comes_back_waits_for_a_round(both: Both) -> None:
    """In the model it rejoins immediately: its turn may be the very next."""
    script = "DRAIN c; PICK; PICK; UNDRAIN c; PICK; PICK; PICK"
    assert both.play(script) == ["a", "b", "a", "b", "c"]
    assert play(f"POOL a b c; {script}").answers == ["a", "b", "c", "a", "b"]


def test_difference_a_drain_has_no_deadline(three: Haproxy) -> None:
    """A timeout is not understood, and not refused; nothing ends until somebody ends it."""
    held = three.connect()
    assert three.ask("set server pool/a state drain 1") == SAID_NOTHING
    time.sleep(1.2)
    assert held.name == "a"
    assert held.echoes()
    assert three.sessions()["a"] == 1
    assert play("POOL a; PICK; DRAIN a 1; NOW 1; REMOVABLE").answers == ["a", "a!"]


def test_difference_removing_asks_for_maintenance(three: Haproxy) -> None:
    """Our DRAIN is enough for REMOVE; HAProxy deletes only what is in maintenance."""
    three.tell("set server pool/a state drain")
    assert three.ask("del server pool/a").strip() == (
        "Only servers in maintenance mode can be deleted."
    )
    three.tell("set server pool/a state maint")
    assert three.ask("del server pool/a").strip() == "Server deleted."
    assert play("POOL a b; DRAIN a; REMOVE a").answers == ["killed 0"]


def test_difference_maintenance_and_deleting_kill_nobody(three: Haproxy) -> None:
    """Our forced REMOVE kills; HAProxy's never does, and is refused for as long as it is busy."""
    held = three.connect()
    three.tell("set server pool/a state maint")
    assert held.echoes()
    answer = three.ask("del server pool/a").strip()
    assert answer == "Server still has connections attached to it, cannot remove it."
    assert held.echoes()
    three.tell("shutdown sessions server pool/a")
    assert held.ended()
    assert play("POOL a; PICK; DRAIN a 0; REMOVE a").answers == ["a", "killed 1"]


def test_difference_killing_reports_no_number(three: Haproxy) -> None:
    """How many `shutdown sessions` kills must be read before it."""
    held = [three.connect() for _ in range(6)]
    assert three.sessions()["a"] == 2
    assert three.ask("shutdown sessions server pool/a") == SAID_NOTHING
    assert sum(each.ended() for each in held if each.name == "a") == 2
    assert play("POOL a; PICK; PICK; DRAIN a 0; REMOVE a").answers[-1] == "killed 2"


def test_difference_nothing_asks_for_a_drain_before(three: Haproxy) -> None:
    """An ACTIVE server can be yanked, requests and all; the model refuses."""
    held = three.connect()
    assert three.servers()["a"] == "ready"
    three.remove("a")
    assert held.ended()
    assert "a is ACTIVE" in play("POOL a; PICK; REMOVE a").errors[0]


def test_difference_a_server_can_be_told_to_kill_once_it_is_marked_down() -> None:
    """`on-marked-down shutdown-sessions`: maintenance then kills at once, a drain still not."""
    with Haproxy(["a"], each="on-marked-down shutdown-sessions") as proxy:
        held = proxy.connect()
        proxy.tell("set server pool/a state drain")
        assert held.echoes()
        proxy.tell("set server pool/a state maint")
        assert held.ended()


def test_difference_a_drained_server_still_gets_who_is_stuck_to_it() -> None:
    """Persistence outlives a drain, not maintenance: DRAIN here means nobody new at all."""
    sticky = "    stick-table type ip size 1k\n    stick on src"
    with Haproxy(["a", "b"], more=sticky) as proxy:
        assert proxy.connect().name == "a"
        proxy.tell("set server pool/a state drain")
        assert [proxy.connect().name for _ in range(4)] == ["a"] * 4
        assert proxy.ever()["a"] == 5
        proxy.tell("set server pool/a state maint")
        assert proxy.connect().name == "b"
    assert play("POOL a b; PICK; DRAIN a; PICK; PICK").answers == ["a", "b", "b"]
