"""All that is found of a trial, the parts that were hurt first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_drainwatch.core.document import Report, TrialReport
from pytest_drainwatch.render.advice.ended import by_themselves, ends_of, not_by_themselves
from pytest_drainwatch.render.advice.finding import Because, Finding
from pytest_drainwatch.render.advice.flows import held
from pytest_drainwatch.render.advice.fresh import tried
from pytest_drainwatch.render.advice.requests import asked

OF_SIGTERM = 143  # what a shell calls a death by SIGTERM
_BY_SIGTERM = (
    "143 is SIGTERM's: the app has no handler for it, or ended in order and says so all the same, "
    "as a JVM does; which of the two is not known"
)


def findings(report: Report) -> tuple[Finding, ...]:
    """Each part of the trial: how it fared, why, and what to try. The same is said once."""
    trial = report.trial
    found = [
        *held(trial),
        *tried(trial, report.environment),
        *asked(trial, report.environment),
        *_exits(trial),
    ]
    said: set[Because] = set()
    return tuple(_once(each, said) for each in sorted(found, key=_rank))


def _rank(found: Finding) -> int:
    return {True: 0, None: 1, False: 2}[found.broken]


def _once(found: Finding, said: set[Because]) -> Finding:
    new = tuple(because for because in found.because if because not in said)
    said.update(new)
    return replace(found, because=new)


def _exits(trial: TrialReport) -> Iterator[Finding]:
    """How the target's containers exited."""
    ends = ends_of(trial)
    codes = dict.fromkeys(end.exit_code for end in ends)
    if not codes:
        return
    bad = [code for code in codes if code]
    unseen = None in codes
    what = ", ".join("code not seen" if code is None else f"code {code}" for code in codes)
    because = list(not_by_themselves(trial)) if bad or unseen else []
    for code in dict.fromkeys(end.exit_code for end in by_themselves(trial) if end.exit_code):
        if code == OF_SIGTERM:
            because.append(Because(why=_BY_SIGTERM))
        else:
            because.append(Because(why=f"{code} is the app's own: why is for its log to say"))
    yield Finding(
        part="exit",
        broken=True if bad else None if unseen else False,
        what=what,
        because=tuple(because),
    )
