"""kube-proxy's rules as real nodes listed them: which are about a Service, and what they do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.mechanism import rules
from pytest_drainwatch.core.mechanism.rules import Effect
from tests.core.netdumps import dump, service_in

MODES = ("iptables", "nftables")
NODE_PORTS = {"iptables": {"tcp": 30740, "udp": 30257}, "nftables": {"tcp": 31324, "udp": 31840}}


def probe_effects(mode: str, state: str) -> dict[tuple[str, int], Effect]:
    listing = dump(f"{mode}-{state}")
    lines, left_out = rules.lines_about(mode, listing, service_in(dump(f"{mode}-two")))
    assert left_out == 0
    return by_port(mode, lines)


def by_port(mode: str, lines: list[str]) -> dict[tuple[str, int], Effect]:
    found = rules.effects(mode, lines)
    assert found is not None
    return {(effect.proto, effect.port): effect for effect in found}


def outside(found: dict[tuple[str, int], Effect]) -> Effect:
    """Of TCP's node port."""
    (effect,) = (e for (proto, port), e in found.items() if proto == "tcp" and port != 7001)
    return effect


@pytest.mark.parametrize("mode", MODES)
def test_two_endpoints(mode: str) -> None:
    found = probe_effects(mode, "two")
    ports = NODE_PORTS[mode]
    assert set(found) == {("tcp", 7001), ("udp", 7002), *ports.items()}
    for effect in found.values():
        assert effect.endpoints == ("10.244.0.2", "10.244.0.3")
        assert not effect.rejects
        assert not effect.drops


@pytest.mark.parametrize(("mode", "left"), [("iptables", "10.244.0.2"), ("nftables", "10.244.0.3")])
def test_one_endpoint(mode: str, left: str) -> None:
    found = probe_effects(mode, "one")
    assert len(found) == 4
    assert {effect.endpoints for effect in found.values()} == {(left,)}


@pytest.mark.parametrize(
    ("mode", "state"), [("iptables", "zero"), ("nftables", "zero"), ("nftables", "draining")]
)
def test_no_endpoint_is_rejected(mode: str, state: str) -> None:
    """Draining in nftables mode: the Service's chains are still there, and empty."""
    found = probe_effects(mode, state)
    assert len(found) == 4
    for effect in found.values():
        assert (effect.endpoints, effect.rejects, effect.drops) == ((), True, False)


@pytest.mark.parametrize("mode", MODES)
def test_the_way_decides_where_a_policy_is_local(mode: str) -> None:
    """From outside: the terminating pods here; by ClusterIP: the ready one elsewhere (K2).

    In nftables mode, chains of endpoints that are gone are still listed: nothing leads there.
    """
    lines, _ = rules.lines_about(mode, dump(f"{mode}-local"), "default/web")
    found = by_port(mode, lines)
    assert found["tcp", 7001].endpoints == ("10.244.9.9",)
    assert outside(found).endpoints == ("10.244.0.2", "10.244.0.3")
    assert not any(effect.rejects or effect.drops for effect in found.values())


@pytest.mark.parametrize("mode", MODES)
def test_no_endpoint_here_is_dropped_where_a_policy_is_local(mode: str) -> None:
    lines, _ = rules.lines_about(mode, dump(f"{mode}-gone"), "default/web")
    found = by_port(mode, lines)
    assert found["tcp", 7001].endpoints == ("10.244.9.9",)
    effect = outside(found)
    assert (effect.endpoints, effect.rejects, effect.drops) == ((), False, True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", ["two", "zero"])
def test_other_services_are_left_out(mode: str, state: str) -> None:
    listing = dump(f"{mode}-{state}")
    lines, _ = rules.lines_about(mode, listing, service_in(dump(f"{mode}-two")))
    assert "default/kubernetes" in listing
    assert not any("default/kubernetes" in line or ":6443" in line for line in lines)
    namespace = service_in(dump(f"{mode}-two")).partition("/")[0]
    for other in (f"{namespace}/drainwatch", f"{namespace}/drainwatch-prob", "x/drainwatch-probe"):
        assert rules.lines_about(mode, listing, other) == ([], 0)
    assert rules.effects(mode, []) == ()


@pytest.mark.parametrize("mode", MODES)
def test_a_service_whose_name_begins_like_another_is_another(mode: str) -> None:
    lines, _ = rules.lines_about(mode, dump(f"{mode}-local"), "default/web")
    assert not any("web-two" in line for line in lines)
    lines, _ = rules.lines_about(mode, dump(f"{mode}-local"), "default/web-two")
    (effect,) = by_port(mode, lines).values()
    assert (effect.proto, effect.port, effect.rejects) == ("tcp", 80, True)


@pytest.mark.parametrize("mode", MODES)
def test_what_was_cut_is_not_known(mode: str) -> None:
    lines, _ = rules.lines_about(mode, dump(f"{mode}-two"), service_in(dump(f"{mode}-two")))
    assert rules.effects(mode, lines) is not None
    assert rules.effects(mode, [*lines[:-1], lines[-1][:40] + rules.CUT]) is None


def test_long_listings_are_bounded() -> None:
    service = "ns/web"
    long = f'-A KUBE-SERVICES -p tcp -m comment --comment "{service}:{"x" * 400}" -j REJECT'
    lines, left_out = rules.lines_about("iptables", "\n".join([long] * 100), service)
    assert len(lines) == rules.MAX_LINES
    assert left_out == 100 - rules.MAX_LINES
    assert {len(line) for line in lines} == {rules.MAX_LENGTH}
    assert rules.effects("iptables", lines) is None


def test_an_unknown_mode_says_nothing() -> None:
    assert not rules.known("ipvs")
    assert rules.effects("ipvs", ["TCP  10.96.0.10:7001 rr"]) is None


@given(
    st.sampled_from(MODES),
    st.sampled_from(["two", "one", "zero", "local", "gone"]),
    st.data(),
)
def test_fewer_rules_never_lead_to_more(mode: str, state: str, data: st.DataObject) -> None:
    """A rule that was not recorded takes an endpoint or a REJECT away and invents none."""
    listing = dump(f"{mode}-{state}")
    own = "default/web" if state in ("local", "gone") else service_in(dump(f"{mode}-two"))
    lines, _ = rules.lines_about(mode, listing, own)
    kept = data.draw(st.lists(st.sampled_from(range(len(lines))), unique=True).map(sorted))
    whole, part = by_port(mode, lines), by_port(mode, [lines[i] for i in kept])
    for key, effect in part.items():
        assert set(effect.endpoints) <= set(whole[key].endpoints)
        assert whole[key].rejects >= effect.rejects
        assert whole[key].drops >= effect.drops


@given(st.sampled_from(MODES), st.text(max_size=200))
def test_any_text_is_read(mode: str, said: str) -> None:
    lines, _ = rules.lines_about(mode, said, "ns/web")
    assert rules.effects(mode, [*lines, said]) is not None or said.endswith(rules.CUT)
