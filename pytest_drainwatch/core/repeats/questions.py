"""What is asked when two runs are compared, and what each question must prove.

Every judged figure (see :mod:`.judged`) of every scenario is a question of its own, and
whoever asks forty at the level 0.05 gets two wrong answers. So p-values are corrected: the
chance that a comparison of two equal runs claims anything at all is at most 0.05.

Of it 0.01 go to each question about all scenarios together, of which there are at most three:
flows of targets lost, flows of bystanders lost, new connections that failed (:mod:`.together`).
One that is answered hands its share on to the same figure of each scenario, among which Holm's
correction holds: if all of those are equal, then the question before was answered in error, and
else these err with its share at most. The rest goes to all figures of all scenarios, by Holm's
correction (S. Holm, Scand. J. Stat. 6 (1979) 65).

Figures that could not have been claimed however the trials had been shared out (all values
equal, say) do not count as questions (R. E. Tarone, Biometrics 46 (1990) 515).

That holds for trials that differ in nothing but their side. What differs between two runs
as a whole, such as another load of the machine, is a difference to this test too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pytest_drainwatch.core.repeats import together
from pytest_drainwatch.core.repeats.judged import Figure
from pytest_drainwatch.core.repeats.metrics import Tally

LEVEL = Fraction(5, 100)
# The share of it that a question about all scenarios has: five repeats of each side reach it.
TOGETHER = Fraction(1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question: its p, the least it could have had, and its p corrected, whatever share of
    LEVEL it has: that one is held against LEVEL itself.
    """

    p: Fraction
    attainable: Fraction
    share: Fraction
    corrected: Fraction = Fraction(1)

    @property
    def counts(self) -> bool:
        return self.attainable <= LEVEL * self.share

    @property
    def moves(self) -> bool:
        """Whether any trial surely differs from another: with more repeats it would count."""
        return self.attainable < 1

    @property
    def decided(self) -> bool:
        return self.corrected <= LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What a p must reach for a claim: as it is, and with more repeats."""

    now: Fraction
    later: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """All of them: of each tally its members, by their places among the figures."""

    single: Mapping[int, Asked]
    whole: Mapping[Tally, Asked]
    members: Mapping[Tally, Sequence[int]]

    def levels_alone(self, at: int) -> Levels:
        """What a figure must reach."""
        name = next((name for name, members in self.members.items() if at in members), None)
        own = self._among_all(at, name)
        if name is None or any(self.single[o].moves for o in self.members[name] if o != at):
            return own
        # Where the others never move, all of them together are this one.
        whole = LEVEL * TOGETHER
        return Levels(now=max(own.now, whole), later=max(own.later, whole))

    def suspected(self, name: Tally) -> list[int]:
        """Members that would have been claimed, had nothing been asked but this of each scenario:
        of two equal runs hardly one in twenty has any.
        """
        places = [at for at in self.members[name] if self.single[at].moves]
        found = corrected([self.single[at].p for at in places])
        return [at for at, p in zip(places, found, strict=True) if p <= LEVEL]

    def _among_all(self, at: int, name: Tally | None) -> Levels:
        """Among the figures that are not decided; had it moved, so had its tally."""
        own = self.single[at]
        undecided = [each for each in self.single.values() if not each.decided]
        now, then = sum(e.counts for e in undecided), sum(e.moves for e in undecided)
        asked = sum(e.counts or n is name for n, e in self.whole.items())
        to_ask = sum(e.moves or n is name for n, e in self.whole.items())
        return Levels(
            now=LEVEL * _rest(asked) / (now if own.counts and not own.decided else now + 1),
            later=LEVEL * _rest(to_ask) / (then if own.moves and not own.decided else then + 1),
        )


def _rest(asked: int) -> Fraction:
    """The share of single figures, if so many questions are about all scenarios."""
    return 1 - TOGETHER * asked


def ask(figures: Sequence[Figure]) -> Questions:
    """Every judged figure, and what several of them are together."""
    judged = [at for at, figure in enumerate(figures) if figure.shown_only is None]
    members = {
        name: [at for at in judged if figures[at].together is name]
        for name in Tally
        if any(figures[at].together is name for at in judged)
    }
    whole = _ask_together({n: [figures[at] for at in places] for n, places in members.items()})
    rest = _rest(sum(each.counts for each in whole.values()))
    single = _ask_each({at: figures[at] for at in judged}, rest)
    for name, places in members.items():
        single |= _handed_on(whole, name, {at: single[at] for at in places})
    return Questions(single=single, whole=whole, members=members)


def corrected(p: Sequence[Fraction]) -> list[Fraction]:
    """Holm's correction: to be held against the level, each in its place."""
    order = sorted(range(len(p)), key=lambda at: p[at])
    found = [Fraction(1)] * len(p)
    so_far = Fraction(0)
    for step, at in enumerate(order):
        so_far = max(so_far, min(Fraction(1), p[at] * (len(p) - step)))
        found[at] = so_far
    return found


def _ask_together(groups: Mapping[Tally, Sequence[Figure]]) -> dict[Tally, Asked]:
    asked = {
        name: Asked(
            p=together.two_sided(members),
            attainable=together.attainable_together(members),
            share=TOGETHER,
        )
        for name, members in groups.items()
    }
    return {
        name: replace(each, corrected=min(Fraction(1), each.p / TOGETHER)) if each.counts else each
        for name, each in asked.items()
    }


def _ask_each(figures: Mapping[int, Figure], share: Fraction) -> dict[int, Asked]:
    asked = {
        at: Asked(
            p=together.two_sided([each]),
            attainable=together.attainable_together([each]),
            share=share,
        )
        for at, each in figures.items()
    }
    counted = [at for at, each in asked.items() if each.counts]
    for at, found in zip(counted, corrected([asked[at].p for at in counted]), strict=True):
        asked[at] = replace(asked[at], corrected=min(Fraction(1), found / share))
    return asked


def _handed_on(
    whole: Mapping[Tally, Asked], name: Tally, members: Mapping[int, Asked]
) -> dict[int, Asked]:
    """Its members once the question about all of them is answered: with its share as well."""
    if not whole[name].decided:
        return {}
    places = [at for at, each in members.items() if each.moves]
    found = zip(places, corrected([members[at].p for at in places]), strict=True)
    return {
        at: replace(
            members[at],
            corrected=min(members[at].corrected, max(whole[name].corrected, p / TOGETHER)),
        )
        for at, p in found
    }
