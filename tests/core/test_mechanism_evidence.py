"""What looks at the node say about one flow: hand-made stories, one for each thing to say."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.flow.classify import Mechanism
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.mechanism.evidence import (
    CONCLUDES,
    LACKS_IT,
    FlowEvidence,
    Tracked,
    evidence_of,
)
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.mechanism.pods import pods_of
from pytest_drainwatch.core.mechanism.snapshot import looks_of, shown
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.transitions import transitions
from tests.core import story as s

UDP = "udp-0001"
OLD_IP, NEW_IP = "10.244.0.2", "10.244.0.3"
REJECTS = (
    '-A KUBE-EXTERNAL-SERVICES -p udp -m comment --comment "ns/web:udp has no endpoints" '
    "-m addrtype --dst-type LOCAL -m udp --dport 30257 -j REJECT"
)


def entry(to: str, proto: str = "udp", **fields: object) -> dict[str, object]:
    return {
        "proto": proto,
        "src": "198.18.0.1",
        "sport": 5000,
        "dst": "198.18.0.8",
        "dport": 30257,
        "to": to,
        "to_port": 7002,
        "state": None,
        "assured": True,
        "replied": True,
        "id": 7,
        **fields,
    }


def conntrack(
    occasion: Occasion, ms: float, *entries: dict[str, object], **data: object
) -> Observation:
    return _node(Event.CONNTRACK, ms, occasion=str(occasion), entries=list(entries), **data)


def proxy(occasion: Occasion, ms: float, *rules: str, **data: object) -> Observation:
    return _node(
        Event.PROXY_RULES, ms, occasion=str(occasion), mode="iptables", rules=list(rules), **data
    )


def _node(event: Event, ms: float, **data: object) -> Observation:
    return Observation(source=Source.NODE, event=event, at=s.at(ms, ms + 10), data=data)


def slice_of(ms: float, *pods: tuple[str, str]) -> Observation:
    listed = [{"uid": uid, "name": uid, "addresses": [address]} for uid, address in pods]
    return Observation(
        source=Source.K8S,
        event=Event.ENDPOINT_SLICE,
        at=s.at(ms),
        subject="slice-1",
        data={"type": "MODIFIED", "endpoints": listed},
    )


def pod_ended(ms: float, uid: str = s.OLD, **fields: object) -> Observation:
    leaving: dict[str, object] = {"deletion_timestamp": "then", "containers": [s.gone(0)]}
    return s.pod(uid, ms, **{**leaving, **fields})


HOMES = slice_of(-5000, (s.OLD, OLD_IP))


def judge(
    *seen: Observation,
    mechanism: Mechanism = Mechanism.SILENCE,
    end: tuple[float, float] | None = None,
    proto: str = "udp",
) -> tuple[FlowEvidence, ...]:
    flow = Tracked(
        proto=proto,
        address="198.18.0.1",
        port=5000,
        to_port=30257,
        mechanism=mechanism,
        end=None if end is None else Interval(round(end[0] * NS_PER_MS), round(end[1] * NS_PER_MS)),
        answered=tuple(o.at for o in seen if o.event is Event.FLOW_ANSWERED),
    )
    return evidence_of(flow, looks_of(seen), pods_of(seen, transitions(seen)), s.T0)


def test_stale_dnat() -> None:
    (found,) = judge(
        HOMES,
        s.answered(UDP, s.OLD, -4000, 5000),
        pod_ended(5100),
        conntrack(Occasion.AFTER_EXIT, 10_100, entry(OLD_IP)),
    )
    assert found.stale is True
    assert (found.to, found.to_pod, found.occasion) == (OLD_IP, s.OLD, Occasion.AFTER_EXIT)
    assert found.at_ns == (10_100 * NS_PER_MS, 10_110 * NS_PER_MS)
    assert found.says == (
        f"conntrack led it to the dead pod {OLD_IP} (uid {s.OLD}), at least 5.0 s after its exit: "
        "stale DNAT"
    )


def test_a_flow_that_was_answered_before_and_after_had_an_entry() -> None:
    """Then a listing without one is incomplete, and says nothing of kube-proxy's rules."""
    looked = [conntrack(Occasion.READY_FALSE, 50), proxy(Occasion.READY_FALSE, 60, REJECTS)]
    run = s.answered(UDP, s.OLD, -4000, 5000)
    broken = [s.answered(UDP, s.OLD, -4000, 40), s.answered(UDP, s.OLD, 90, 5000)]
    for answers, proto, lacks in (
        ([run], "udp", True),
        ([run], "tcp", True),
        (broken, "tcp", True),
        (broken, "udp", False),  # a datagram may have made it anew
        (broken[:1], "tcp", False),
        (broken[1:], "tcp", False),
    ):
        (found,) = judge(HOMES, *answers, *looked, proto=proto)
        assert (found.says == LACKS_IT) is lacks
        assert (found.to, found.stale) == (None, None)


def test_a_listing_with_a_problem_tells_of_no_absence() -> None:
    cut = conntrack(Occasion.EXIT, 5, entry(OLD_IP, sport=1), problem="listing incomplete")
    assert judge(HOMES, cut) == ()
    (found,) = judge(HOMES, conntrack(Occasion.EXIT, 5, entry(OLD_IP), problem="incomplete"))
    assert found.to_pod == s.OLD, "what it lists was there"


def test_an_answer_to_a_new_connection_shows_that_a_pod_lives() -> None:
    tried = s.client(
        Event.NEW_CONNECTIONS, "tcp-new", s.at(0, 900),
        result="answered", responder=f"{s.OLD}/n", last_ns=s.ns(899),
    )  # fmt: skip
    (found,) = judge(HOMES, conntrack(Occasion.READY_FALSE, 50, entry(OLD_IP)), tried)
    assert found.stale is False


def test_a_pod_that_still_answers_is_alive() -> None:
    (found,) = judge(
        HOMES,
        conntrack(Occasion.READY_FALSE, 50, entry(OLD_IP)),
        s.answered(UDP, s.OLD, -4000, 5000),
        pod_ended(5100),
    )
    assert found.stale is False
    assert "living pod" in found.says


def test_a_pod_of_which_nothing_is_seen_may_have_ended() -> None:
    (found,) = judge(HOMES, conntrack(Occasion.EXIT, 50, entry(OLD_IP)), pod_ended(5100))
    assert found.stale is None
    assert "may have ended" in found.says


def test_a_container_that_restarts_is_no_dead_pod() -> None:
    crashed = pod_ended(100, deletion_timestamp=None)
    (found,) = judge(HOMES, crashed, conntrack(Occasion.EXIT, 5000, entry(OLD_IP)))
    assert found.stale is None


def test_a_pod_that_is_gone_from_the_list_is_dead() -> None:
    gone = Observation(
        source=Source.K8S,
        event=Event.WATCH_LISTED,
        at=s.at(200),
        data={"resource": "pods", "subjects": []},
    )
    (found,) = judge(HOMES, s.pod(s.OLD, -100), gone, conntrack(Occasion.EXIT, 300, entry(OLD_IP)))
    assert found.stale is True


def test_a_tcp_connection_that_is_over_is_not_stale() -> None:
    for state, stale in (("TIME_WAIT", False), ("ESTABLISHED", True)):
        (found,) = judge(
            HOMES,
            pod_ended(100),
            conntrack(Occasion.EXIT, 200, entry(OLD_IP, "tcp", state=state)),
            proto="tcp",
        )
        assert (found.state, found.stale) == (state, stale)
        assert ("stale DNAT" in found.says) is stale


def test_no_entry_and_what_kube_proxy_does() -> None:
    leads = (
        '-A KUBE-NODEPORTS -p udp -m comment --comment "ns/web:udp" -m udp --dport 30257 '
        "-j KUBE-EXT-A",
        "-A KUBE-EXT-A -j KUBE-SVC-A",
        '-A KUBE-SVC-A -m comment --comment "ns/web:udp -> x" -j KUBE-SEP-A',
        f"-A KUBE-SEP-A -p udp -m udp -j DNAT --to-destination {NEW_IP}:7002",
    )
    for lines, says in (
        ((REJECTS,), "kube-proxy rejects new connections"),
        ((REJECTS.replace("REJECT", "DROP"),), "kube-proxy drops new connections"),
        (leads, f"kube-proxy leads new connections to {NEW_IP}"),
        ((), "kube-proxy has no rule for new connections"),
        ((REJECTS.replace("30257", "30258"),), "kube-proxy has no rule for new connections"),
    ):
        (found,) = judge(HOMES, conntrack(Occasion.EXIT, 200), proxy(Occasion.EXIT, 210, *lines))
        assert (found.to, found.to_pod, found.stale) == (None, None, None)
        assert found.says == f"no entry; {says}"


def test_no_entry_and_rules_that_could_not_be_read() -> None:
    (found,) = judge(conntrack(Occasion.EXIT, 200))
    assert "could not be read" in found.says


def test_who_refused() -> None:
    """The same entry before and after the refusal, so no rule for new connections was met."""

    def refused(after: dict[str, object], **asked: object) -> bool:
        mechanism = asked.pop("mechanism", Mechanism.REFUSED)
        assert isinstance(mechanism, Mechanism)
        found = judge(
            HOMES,
            conntrack(Occasion.TRIGGER, -20, entry(OLD_IP)),
            s.answered(UDP, s.OLD, -4000, 5000),
            pod_ended(5100),
            conntrack(Occasion.EXIT, 5200, after),
            proxy(Occasion.EXIT, 5210, REJECTS),
            mechanism=mechanism,
            end=(5000, 5050),
        )
        assert CONCLUDES not in found[0].says
        return CONCLUDES in found[1].says

    assert refused(entry(OLD_IP))
    assert not refused(entry(OLD_IP), mechanism=Mechanism.UNREACHABLE)
    assert not refused(entry(OLD_IP, id=8)), "another entry: it was made anew"
    assert not refused(entry(NEW_IP, id=8)), "it was led elsewhere since"
    assert not refused(entry(OLD_IP, id=None)), "nobody knows whether it is the same"
    assert not refused(entry(OLD_IP, sport=5001)), "that is another flow's"


def test_of_tcp_nothing_is_concluded() -> None:
    """Its refusals are of connections that never came to be."""
    for proto, concluded in (("tcp", False), ("udp", True)):
        found = judge(
            HOMES,
            conntrack(Occasion.TRIGGER, -20, entry(OLD_IP, proto)),
            conntrack(Occasion.EXIT, 5200, entry(OLD_IP, proto)),
            proto=proto,
            mechanism=Mechanism.REFUSED,
            end=(5000, 5050),
        )
        assert (CONCLUDES in found[1].says) is concluded


def test_a_look_during_the_refusal_concludes_nothing() -> None:
    found = judge(
        HOMES,
        conntrack(Occasion.TRIGGER, -20, entry(OLD_IP)),
        conntrack(Occasion.EXIT, 5045, entry(OLD_IP)),
        mechanism=Mechanism.REFUSED,
        end=(5000, 5050),
    )
    assert not any(CONCLUDES in piece.says for piece in found)


def test_an_address_that_was_given_again() -> None:
    (found,) = judge(
        HOMES,
        pod_ended(100),
        slice_of(300, (s.NEW, OLD_IP)),
        conntrack(Occasion.AFTER_EXIT, 5100, entry(OLD_IP)),
    )
    assert (found.to, found.to_pod, found.stale) == (OLD_IP, None, None)
    assert f"{s.OLD}, {s.NEW}" in found.says
    assert "not known" in found.says


def test_an_address_of_nobody() -> None:
    (found,) = judge(conntrack(Occasion.TRIGGER, -20, entry(OLD_IP)))
    assert (found.to, found.to_pod, found.stale) == (OLD_IP, None, None)


def test_an_address_is_nobodys_only_if_slices_were_seen() -> None:
    led = conntrack(Occasion.TRIGGER, -20, entry(NEW_IP))
    gap = Observation(
        source=Source.K8S, event=Event.WATCH_GAP, at=s.at(-99, -50), data={"resource": "any"}
    )
    for seen, known in (([HOMES], True), ([], False), ([HOMES, gap], False)):
        (found,) = judge(*seen, led)
        assert ("no endpoint of the Service had" in found.says) is known
        assert ("was not seen" in found.says) is not known


def test_whose_kernel_refused_is_known_of_one_pod_alone() -> None:
    for homes, concluded in (
        ([HOMES], True),
        ([], False),
        ([HOMES, slice_of(300, (s.NEW, OLD_IP))], False),
    ):
        found = judge(
            *homes,
            conntrack(Occasion.TRIGGER, -20, entry(OLD_IP)),
            conntrack(Occasion.EXIT, 5200, entry(OLD_IP)),
            mechanism=Mechanism.REFUSED,
            end=(5000, 5050),
        )
        assert (CONCLUDES in found[1].says) is concluded


def test_a_look_that_failed_says_nothing_of_a_flow() -> None:
    failed = _node(Event.CONNTRACK, 5, occasion="exit", problem="no such program")
    assert judge(HOMES, failed) == ()
    (look,) = looks_of([failed])
    snapshot = shown(look, s.T0)
    assert snapshot.conntrack_entries is None
    assert snapshot.rules is None
    assert snapshot.problem == "no such program"


def test_an_entry_that_was_left_out_is_not_absent() -> None:
    assert judge(HOMES, conntrack(Occasion.EXIT, 5, entry(OLD_IP, sport=1), left_out=3)) == ()
    (look,) = looks_of([conntrack(Occasion.EXIT, 5, entry(OLD_IP), left_out=3)])
    assert shown(look, s.T0).conntrack_entries == 4


def test_rules_that_were_left_out_are_not_judged() -> None:
    for left_out, known in ((0, True), (1, False)):
        (look,) = looks_of([proxy(Occasion.EXIT, 5, REJECTS, left_out=left_out)])
        snapshot = shown(look, s.T0)
        assert (snapshot.rules is not None) is known
        assert (snapshot.problem is None) is known
        assert snapshot.conntrack_entries is None


def test_a_snapshot_holds_both_looks() -> None:
    (look,) = looks_of(
        [conntrack(Occasion.EXIT, 5, entry(OLD_IP)), proxy(Occasion.EXIT, 20, REJECTS)]
    )
    snapshot = shown(look, s.T0)
    assert snapshot.at_ns == (5 * NS_PER_MS, 30 * NS_PER_MS)
    assert snapshot.conntrack_entries == 1
    assert snapshot.rules is not None
    assert [(e.proto, e.port, e.rejects) for e in snapshot.rules] == [("udp", 30257, True)]
    assert (snapshot.proxy_mode, snapshot.problem) == ("iptables", None)


def test_an_occasion_of_a_later_version_is_passed_over() -> None:
    assert looks_of([_node(Event.CONNTRACK, 5, occasion="someday", entries=[])]) == ()


WHOLE: Sequence[Observation] = (
    HOMES,
    conntrack(Occasion.TRIGGER, -20, entry(OLD_IP)),
    s.answered(UDP, s.OLD, -4000, 5000),
    conntrack(Occasion.READY_FALSE, 50, entry(OLD_IP)),
    pod_ended(5100),
    conntrack(Occasion.EXIT, 5200, entry(OLD_IP)),
    proxy(Occasion.EXIT, 5210, REJECTS),
    slice_of(5300),
    s.answered("udp-0002", s.NEW, 5300, 9000),
    conntrack(Occasion.AFTER_EXIT, 10_200, entry(OLD_IP)),
)


@given(st.lists(st.sampled_from(range(len(WHOLE))), unique=True).map(sorted))
def test_less_evidence_never_turns_a_certainty_round(kept: list[int]) -> None:
    whole = {piece.occasion: piece for piece in judge(*WHOLE)}
    for piece in judge(*(WHOLE[i] for i in kept)):
        assert piece.stale in (None, whole[piece.occasion].stale)
        assert piece.to_pod in (None, whole[piece.occasion].to_pod)
        assert piece.to == whole[piece.occasion].to
