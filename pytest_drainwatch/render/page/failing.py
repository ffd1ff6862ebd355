"""New connections and HTTP requests: when they failed, as bands, and all of them as runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from pytest_drainwatch.core.http.document import KindRequests, Requests
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.http.fate import FAILED as BROKEN
from pytest_drainwatch.core.http.fate import SERVED, Fate
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.probing.document import FAILED, UNKNOWN, NewConnections, Rate
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.render.page import prose
from pytest_drainwatch.render.page.data import Attempts, Band, Tone
from pytest_drainwatch.render.page.moments import at, moment
from pytest_drainwatch.render.probing import percent
from pytest_drainwatch.render.text import NOT_MEASURED

KINDS = {
    LaneKind.KEEPALIVE: "requests over kept-alive connections",
    LaneKind.IDLE: "requests over connections that had idled",
    LaneKind.IN_FLIGHT: "requests under way at the trigger",
    LaneKind.NEW: "requests over new connections",
}


# So many are told apart; of more it is "on and off".
_FEW_STRETCHES = (2, 3)


def new_band(prober: NewConnections) -> str:
    """The id of the band of one prober."""
    return f"new:{prober.prober}"


def http_band(kind: KindRequests) -> str:
    """The id of the band of one kind of requests."""
    return f"http:{kind.kind}"


def named(prober: NewConnections, found: Sequence[NewConnections]) -> str:
    """``new TCP connections``; with the node where several are tried."""
    what = "new TCP connections" if prober.proto == "tcp" else "new UDP flows"
    several = sum(other.proto == prober.proto for other in found) > 1
    return f"{what} at node {prober.node}" if several and prober.node else what


def stretches_left_out(prober: NewConnections) -> str:
    """That report.json keeps the first and the last stretches of equal attempts, and which not."""
    middle = len(prober.runs) // 2
    first, last = prober.runs[middle - 1 : middle], prober.runs[middle : middle + 1]
    where = ""
    if first and last:
        where = f" between {moment((first[0].at_ns[1],) * 2)} and {moment((last[0].at_ns[0],) * 2)}"
    return (
        f"{prober.runs_left_out:,} stretches of attempts{where} are not in the report, and so not "
        "in the picture; counts and rates hold them"
    )


def served_again(prober: NewConnections) -> bool:
    """Whether any that was begun after the last one that failed was answered."""
    failing, last = prober.observed_failing, prober.last_answered_ns
    return failing is None or (last is not None and last[0] > failing.begun_ns[1])


def sentence(prober: NewConnections, found: Sequence[NewConnections], how: str = "") -> str:
    """When a prober's attempts failed, without its full stop; empty where none did."""
    failing = prober.observed_failing
    if failing is None:
        return ""
    return told(
        named(prober, found),
        (failing.failures, failing.attempts),
        failing.first_ns,
        failing.lasts_ns,
        over=served_again(prober),
        stretches=_stretches(prober),
        how=how,
    )


def told(
    what: str,
    counts: tuple[int, int],
    first_ns: Bounds,
    lasts_ns: Bounds,
    *,
    over: bool,
    stretches: int | None = None,
    how: str = "",
) -> str:
    """``New TCP connections failed for 1.06 s, from +63.0 ms on: all 54 tried in that time``.

    ``counts`` are failed and tried from the first that failed to the last; ``over``: one was
    served after it. ``stretches``: in how many they failed, without one that was served.
    """
    failed, tried = counts
    if failed == 1:
        return f"One of the {what} failed{how}, {prose.at(first_ns)}"
    share = f"all {tried:,}" if failed == tried else f"{failed:,} of {tried:,}"
    long, since = prose.lasting(lasts_ns), prose.since(first_ns)
    if failed == tried:
        when = f"for {long}, {since}" if over else f"{since}, to the end of the recording"
    elif not over:
        when = f"on and off {since}, to the end of the recording"
    elif stretches in _FEW_STRETCHES:
        when = f"in {stretches} stretches within {long}, {since}"
    else:
        when = f"on and off for {long}, {since}"
    text = f"{what} failed {when}: {share} tried in that time{how}"
    return text[:1].upper() + text[1:]


def _stretches(prober: NewConnections) -> int | None:
    """Times in which attempts since t = 0 failed and none was answered; None: not known."""
    if prober.runs_left_out:
        return None
    since = [run for run in prober.runs if run.at_ns[1] >= 0]
    judged = [run.result in FAILED for run in since if run.result not in UNKNOWN]
    return sum(failed for failed, _ in groupby(judged))


def of_new_connections(found: Sequence[NewConnections]) -> Iterator[Band]:
    """From the first one that failed to the last."""
    for prober in found:
        failing = prober.observed_failing
        if failing is None:
            continue
        all_of_them = failing.failures == failing.attempts
        between = "each one" if all_of_them else f"{failing.failures:,} of {failing.attempts:,}"
        yield Band(
            id=new_band(prober),
            opens=at(failing.first_ns),
            closes=at(failing.last_ns),
            text=f"{'' if all_of_them else 'some '}{named(prober, found)} fail",
            detail="From the first that failed to the last, for "
            f"{prose.lasting(failing.lasts_ns)}: "
            f"{between} failed ({_how(prober.results, FAILED)}).",
            met=f"{failing.failures:,} of {failing.attempts:,} failed",
            tone=Tone.BAD,
        )


def of_requests(found: Requests | None) -> Iterator[Band]:
    """The same of each kind of HTTP requests."""
    for kind in found.kinds if found is not None else ():
        failing = kind.failing
        if failing is None:
            continue
        some = "" if failing.failures == failing.requests else "some "
        yield Band(
            id=http_band(kind),
            opens=at(failing.first_ns),
            closes=at(failing.last_ns),
            text=f"{some}{KINDS[kind.kind]} fail",
            detail="From the first that failed to the last, for "
            f"{prose.lasting(failing.lasts_ns)}: "
            f"{_how(kind.fates, BROKEN)}.",
            met=f"{failing.failures:,} of {failing.requests:,} failed",
            tone=Tone.BAD,
        )


def attempts(
    new: Sequence[NewConnections], asked: Requests | None, until_ns: int | None = None
) -> list[Attempts]:
    """Each prober, then each kind of requests.

    ``until_ns`` is when the recording ends: where nobody says who served, requests that were
    served lie between t = 0 and then, and the report keeps no more of them.
    """
    return [
        *(_of_prober(prober, new) for prober in new),
        *(_of_kind(kind, asked, until_ns) for kind in (asked.kinds if asked is not None else ())),
    ]


def rate(failed: int, attempts: int, bounds: Rate | None) -> str:
    """``54 of 610 failed: 2.9–6.7 % of the time``."""
    if not attempts:
        return NOT_MEASURED
    return f"{failed:,} of {attempts:,} failed: {percent(bounds)}, with 95 % confidence"


def _of_prober(prober: NewConnections, found: Sequence[NewConnections]) -> Attempts:
    words = list(dict.fromkeys(run.result for run in prober.runs))
    notes = list(prober.notes)
    if prober.runs_left_out:
        notes.append(stretches_left_out(prober))
    return Attempts(
        lane="new",
        name=named(prober, found),
        results=[(word, _tone(word)) for word in words],
        runs=[(*at(run.at_ns), words.index(run.result), run.count) for run in prober.runs],
        rate=rate(prober.failed, prober.attempts, prober.failure_rate),
        notes=notes,
    )


def _of_kind(kind: KindRequests, asked: Requests | None, until_ns: int | None) -> Attempts:
    """The report keeps requests that were not served one by one, and of those served the ends."""
    unserved = [
        one
        for one in (asked.not_served if asked is not None else ())
        if one.lane.rpartition("-")[0] == kind.kind and one.fate not in SERVED
    ]
    served = [(one.first_ns[0], one.last_ns[1], one.requests) for one in kind.answered_by]
    rest = kind.served - sum(number for _, _, number in served)
    if until_ns is not None and rest > 0:
        served.append((0, until_ns, rest))
    words = [str(Fate.SERVED), *dict.fromkeys(str(one.fate) for one in unserved)]
    stretches: list[tuple[Bounds, str, int]] = [
        *(((lo, hi), str(Fate.SERVED), number) for lo, hi, number in served),
        *((one.at_ns, str(one.fate), one.count) for one in unserved),
    ]
    notes = list(kind.notes)
    if asked is not None and asked.not_served_left_out:
        notes.append(f"the report leaves {asked.not_served_left_out:,} stretches out")
    return Attempts(
        lane="http",
        name=KINDS[kind.kind],
        results=[(word, _fate_tone(word)) for word in words],
        runs=[
            (*at(when), words.index(word), count)
            for when, word, count in sorted(stretches, key=lambda each: each[0])
        ],
        rate=rate(kind.failed, kind.attempts, kind.failure_rate),
        notes=notes,
    )


def _tone(word: str) -> Tone:
    if word == Result.ANSWERED:
        return Tone.GOOD
    return Tone.BAD if word in FAILED else Tone.UNKNOWN


def _fate_tone(word: str) -> Tone:
    if word in SERVED:
        return Tone.GOOD
    return Tone.BAD if word in BROKEN else Tone.UNKNOWN


def _how(counts: Mapping[str, int], failed: Iterable[str]) -> str:
    """``54 refused``, in the order of the report."""
    among = frozenset(failed)
    return ", ".join(f"{number:,} {word}" for word, number in counts.items() if word in among)
