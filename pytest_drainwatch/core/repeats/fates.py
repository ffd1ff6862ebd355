"""How flows ended, over repeats: counted, and where repeats disagree, named.

A flow's name is the order in which it was dialled, so equal names are the same place in
the schedule and not the same connection. Numbers come first therefore; names follow
where the numbers leave open who it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# So many flows, and ways to differ, are named in a text; so many flows listed for machines.
NAMED, LISTED = 5, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFate:
    """How one flow of one trial ended. ``group`` is its role and transport."""

    id: str
    group: str
    outcome: str
    mechanism: str

    def __str__(self) -> str:
        return f"{self.group} {self.ended}"

    @property
    def ended(self) -> str:
        """Its end in words."""
        return f"{self.outcome} by {self.mechanism}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FateCount:
    """Flows that ended in one way: over all repeats, and in each."""

    group: str
    outcome: str
    mechanism: str
    total: int
    per_repeat: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowDisagreement:
    """A flow whose end was not the same in all repeats: its ends, and in which repeats."""

    flow: str
    group: str
    ends: Mapping[str, tuple[str, ...]]


def counted(flows: Iterable[FlowFate]) -> Mapping[str, int]:
    """How many flows ended how, per group."""
    return Counter(str(flow) for flow in flows)


def fate_counts(repeats: Sequence[Sequence[FlowFate]]) -> tuple[FateCount, ...]:
    """Every way in which a flow ended in any of the repeats, sorted by group and end."""
    each = [Counter((f.group, f.outcome, f.mechanism) for f in flows) for flows in repeats]
    return tuple(
        FateCount(
            group=fate[0],
            outcome=fate[1],
            mechanism=fate[2],
            total=sum(counts[fate] for counts in each),
            per_repeat=tuple(counts[fate] for counts in each),
        )
        for fate in sorted({fate for counts in each for fate in counts})
    )


def differing(
    labels: Sequence[str], repeats: Sequence[Sequence[FlowFate]]
) -> Iterator[FlowDisagreement]:
    """Each flow that ended otherwise in another repeat, in the order of their names.

    That one flow is a target's here and a bystander's there was the load balancer's
    choice: ends are compared within a group.
    """
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for label, flows in zip(labels, repeats, strict=True):
        for flow in flows:
            ends = found.setdefault((flow.id, flow.group), {})
            ends.setdefault(flow.ended, []).append(label)
    for (name, group), ends in sorted(found.items()):
        if len(ends) > 1:
            yield FlowDisagreement(
                flow=name, group=group, ends={end: tuple(who) for end, who in ends.items()}
            )


def told(
    labels: Sequence[str], counts: Sequence[Mapping[str, int]], flows: Sequence[FlowDisagreement]
) -> Iterator[str]:
    """What repeats disagree on in words: numbers first, then the first few flows by name.

    Flows that differ alike stand together.
    """
    same_numbers = True
    for fate in sorted({fate for each in counts for fate in each}):
        numbers = [each.get(fate, 0) for each in counts]
        if len(set(numbers)) > 1:
            same_numbers = False
            yield f"{fate}: {', '.join(map(str, numbers))} flows"
    if not flows:
        return
    if same_numbers:
        yield "as many flows ended in each way in every repeat, but not the same ones"
    alike: dict[str, list[str]] = {}
    for flow in flows:
        alike.setdefault(f"({flow.group}): {_ends(flow, labels)}", []).append(flow.flow)
    first = list(alike.items())[:NAMED]
    for ends, names in first:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{', '.join(names[:NAMED])}{more} {ends}"
    untold = len(flows) - sum(len(names) for _, names in first)
    if untold:
        yield f"and {untold} more flows differ in {len(alike) - len(first)} other ways"


def _ends(flow: FlowDisagreement, labels: Sequence[str]) -> str:
    """The rarest end first, with the repeats' names; the commonest last, as the others."""
    short = dict(zip(labels, shortened(labels), strict=True))
    ordered = sorted(flow.ends.items(), key=lambda end: len(end[1]))
    *rare, (common, most) = ordered
    seen = sum(len(who) for who in flow.ends.values())
    parts = [f"{end} in {', '.join(short[label] for label in who)}" for end, who in rare]
    others = len(most) > 2 and seen == len(labels)
    where = f"the other {len(most)}" if others else ", ".join(short[label] for label in most)
    return f"{'; '.join(parts)}; {common} in {where}"


def shortened(labels: Sequence[str]) -> tuple[str, ...]:
    """The last part of each label, where that tells them apart."""
    last = [label.rsplit("/", 1)[-1] for label in labels]
    return tuple(last if len(set(last)) == len(labels) else labels)
