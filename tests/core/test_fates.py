"""What repeats disagree on: numbers first, then flows by name, and never too many of them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.repeats.fates import (
    NAMED,
    FlowFate,
    counted,
    differing,
    fate_counts,
    told,
)

ENDS = (("drained", "fin"), ("severed", "rst"), ("severed", "rehomed"))
GROUPS = ("target tcp", "bystander tcp")


def fate(name: str, end: int = 0, group: int = 0) -> FlowFate:
    outcome, mechanism = ENDS[end]
    return FlowFate(id=name, group=GROUPS[group], outcome=outcome, mechanism=mechanism)


def said(*repeats: list[FlowFate], prefix: str = "") -> list[str]:
    labels = [f"{prefix}r{number:02d}" for number in range(len(repeats))]
    return list(
        told(labels, [counted(flows) for flows in repeats], list(differing(labels, repeats)))
    )


def test_one_flow_of_five_repeats_is_named_with_its_repeat() -> None:
    usual = [fate("tcp-0001"), fate("tcp-0003")]
    other = [fate("tcp-0001"), fate("tcp-0003", 1)]
    assert said(usual, usual, other, usual, usual, prefix="drain/") == [
        "target tcp drained by fin: 2, 2, 1, 2, 2 flows",
        "target tcp severed by rst: 0, 0, 1, 0, 0 flows",
        "tcp-0003 (target tcp): severed by rst in r02; drained by fin in the other 4",
    ]


def test_two_repeats_are_both_named() -> None:
    assert said([fate("a")], [fate("a", 1)])[-1] == (
        "a (target tcp): drained by fin in r00; severed by rst in r01"
    )


def test_as_many_but_not_the_same_ones_is_said_to_be_that() -> None:
    found = said([fate("a"), fate("b", 1)], [fate("a", 1), fate("b")])
    assert found[0] == "as many flows ended in each way in every repeat, but not the same ones"
    assert [line[0] for line in found[1:]] == ["a", "b"]


def test_whose_a_flow_is_is_the_load_balancers_choice_and_no_disagreement() -> None:
    """A target here and a bystander there, and each ended as its like do."""
    here = [fate("a", 1, 0), fate("b", 0, 1)]
    there = [fate("a", 0, 1), fate("b", 1, 0)]
    assert said(here, there) == []


def test_a_flow_that_a_repeat_lacks_is_not_among_the_others() -> None:
    found = said([fate("a"), fate("b")], [fate("a", 1)], [fate("a")], [fate("a")])
    assert found[-1] == "a (target tcp): severed by rst in r01; drained by fin in the other 3"
    found = said([fate("a")], [fate("b")], [fate("a", 1)], [fate("a")], [fate("a")])
    assert found[-1] == "a (target tcp): severed by rst in r02; drained by fin in r00, r03, r04"


def test_very_many_that_differ_are_counted_and_the_first_few_named() -> None:
    names = [f"tcp-{n:05d}" for n in range(9000)]
    found = said([fate(name) for name in names], [fate(name, 1) for name in names])
    assert len(found) == 3
    assert found[2] == (
        "tcp-00000, tcp-00001, tcp-00002, tcp-00003, tcp-00004 and 8995 more (target tcp): "
        "drained by fin in r00; severed by rst in r01"
    )


def test_very_many_ways_to_differ_are_counted_too() -> None:
    """A flow for each way of 2 ends in 6 repeats, all of them equal excepted."""
    flows = [
        [fate(f"f{way:02d}", way >> repeat & 1) for way in range(1, 63)] for repeat in range(6)
    ]
    found = said(*flows)
    assert found[0].startswith("as many")
    assert len(found) == 1 + NAMED + 1
    assert found[-1] == "and 57 more flows differ in 57 other ways"


repeats_of_flows = st.lists(
    st.dictionaries(
        st.sampled_from("abcdef"), st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=6
    ).map(lambda flows: [fate(name, *how) for name, how in flows.items()]),
    min_size=1,
    max_size=5,
)


@given(repeats_of_flows)
def test_equal_repeats_agree_and_differing_flows_differ(repeats: list[list[FlowFate]]) -> None:
    labels = [f"r{number:02d}" for number in range(len(repeats))]
    found = list(differing(labels, repeats))
    for one in found:
        ends = {
            (label, flow.ended)
            for label, flows in zip(labels, repeats, strict=True)
            for flow in flows
            if (flow.id, flow.group) == (one.flow, one.group)
        }
        assert ends == {(label, end) for end, who in one.ends.items() for label in who}
        assert len(one.ends) > 1
    named = {(one.flow, one.group) for one in found}
    for key in {(flow.id, flow.group) for flows in repeats for flow in flows} - named:
        seen = {f.ended for flows in repeats for f in flows if (f.id, f.group) == key}
        assert len(seen) == 1
    assert said(repeats[0], list(reversed(repeats[0]))) == []


@given(repeats_of_flows)
def test_every_flow_is_counted_once(repeats: list[list[FlowFate]]) -> None:
    found = fate_counts(repeats)
    for number, flows in enumerate(repeats):
        assert sum(fate.per_repeat[number] for fate in found) == len(flows)
    assert all(fate.total == sum(fate.per_repeat) > 0 for fate in found)
    whole = Counter(str(flow) for flows in repeats for flow in flows)
    assert {f"{f.group} {f.outcome} by {f.mechanism}": f.total for f in found} == whole
