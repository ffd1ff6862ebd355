"""A target pod's windows as bands of the picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.windows.document import Met, PodWindows, Span
from pytest_drainwatch.render.page.data import Band, Tone
from pytest_drainwatch.render.page.moments import at_or_none
from pytest_drainwatch.render.page.pods import Pods
from pytest_drainwatch.render.probing import percent
from pytest_drainwatch.render.text import duration

# Fewer new connections than this show nothing at a glance.
FEW = 10


class _Window(NamedTuple):
    """A window's name in ids and on the picture, its term in reports, what it means, and its
    colour if nobody failed.
    """

    key: str
    name: str
    term: str
    about: str
    tone: Tone = Tone.NEUTRAL


ADVERTISED = _Window(
    "advertised",
    "in the endpoint slice",
    "advertised",
    "The pod is listed as an endpoint of the Service.",
)
READY = _Window(
    "ready",
    "ready for new connections",
    "ready-routable",
    "New connections are led to it: it is listed as ready.",
)
FALLBACK = _Window(
    "fallback",
    "still used as a last resort",
    "fallback-routable",
    "It is terminating and still serves, and no pod is ready: kube-proxy leads new connections "
    "to it all the same.",
    Tone.WARN,
)
DEAD = _Window(
    "dead",
    "still listed, its last connection gone",
    "dead-endpoint",
    "From the end of its last TCP connection until it is no longer listed.",
    Tone.WARN,
)

BALANCER = _Window(
    "balancer",
    "its node still gets new connections",
    "load-balancer",
    "The load balancer in front of the nodes holds the pod's node healthy, and sends new "
    "connections there.",
)


def better_known(found: Iterable[PodWindows]) -> Mapping[tuple[str, str], Bounds]:
    """Changes that the windows bound more closely than the timeline: by event and pod's UID."""
    told: dict[tuple[str, str], Bounds] = {}
    for pod in found:
        for event, at_ns in (
            ("pod_deletion_timestamp_set", pod.deletion_ns),
            ("endpointslice_terminating", pod.terminating_ns),
            ("endpointslice_ready_false", pod.ready_false_ns),
            ("endpointslice_endpoint_removed", pod.removed_ns),
        ):
            if at_ns is not None:
                told[event, pod.pod_uid] = at_ns
    return told


def bands(found: Iterable[PodWindows], pods: Pods) -> Iterator[Band]:
    """Those of each target pod, in the order of the labels' pods."""
    for pod in found:
        yield from _of(pod, ADVERTISED, [pod.advertised], pods)
        yield from _of(pod, READY, [pod.ready_routable], pods)
        if pod.fallback_routable is None:
            unknown = Span(opens_ns=None, note="; ".join(pod.notes) or "not known")
            yield from _of(pod, FALLBACK, [unknown], pods)
        else:
            yield from _of(pod, FALLBACK, pod.fallback_routable, pods)
        if not _never(pod.dead_endpoint):
            yield from _of(pod, DEAD, [pod.dead_endpoint], pods)
        if pod.load_balancer is not None:
            yield from _of(pod, BALANCER, [pod.load_balancer.sends], pods)


def _never(dead: Span) -> bool:
    """Whether the endpoint surely went first, or there was no TCP connection to count from."""
    if dead.opens_ns is None:
        return True
    return dead.lasts_ns is not None and dead.lasts_ns[1] <= 0


def _of(pod: PodWindows, window: _Window, spans: Sequence[Span], pods: Pods) -> Iterator[Band]:
    label = pods.label(pod.pod_uid)
    for number, span in enumerate(spans):
        parts = list(_parts(span))
        for part, (opens, closes) in enumerate(parts):
            more = f":{number}" * (len(spans) > 1) + f".{part}" * (len(parts) > 1)
            yield Band(
                id=f"{window.key}:{pod.pod_uid}{more}",
                opens=at_or_none(opens),
                closes=at_or_none(closes),
                text=f"{label}: {window.name}"
                + (": not known" if opens is None and closes is None else ""),
                detail=_detail(window, span),
                met=met(span.met),
                tone=_tone(window, span),
            )


def _parts(span: Span) -> Iterator[tuple[Bounds | None, Bounds | None]]:
    """What is left of a window between its breaks."""
    opens = span.opens_ns
    for one in span.breaks:
        yield opens, one.opens_ns
        opens = one.closes_ns
    yield opens, span.closes_ns


def _detail(window: _Window, span: Span) -> str:
    lasts = "" if span.lasts_ns is None else f" It lasts {duration(span.lasts_ns)}."
    note = f" {span.note[:1].upper()}{span.note[1:]}." if span.note else ""
    return f"{window.about} Reports call it {window.term}.{lasts}{note}{_few(span.met)}"


def met(found: Met | None) -> str | None:
    """What new connections met that were surely begun in it.

    None where none were tried, or too few to say anything in a word.
    """
    if found is None or (found.attempts < FEW and not found.failed):
        return None
    if found.failed:
        return f"{found.failed:,} of {found.attempts:,} new connections failed"
    bound = "" if found.rate is None else f" ({percent(found.rate)})"
    return f"none of {found.attempts:,} new connections failed{bound}"


def _few(found: Met | None) -> str:
    """The same of few, or of those that may have been begun in it: for those who ask."""
    if found is None or found.attempts >= FEW or found.failed:
        return ""
    attempts, failed = found.at_most
    if not attempts:
        return " No new connection was tried in it."
    of = f"at most {failed:,} of them" if failed else "none of them"
    return f" At most {attempts:,} new connections were tried in it, and {of} failed."


def _tone(window: _Window, span: Span) -> Tone:
    if span.opens_ns is None:
        return Tone.UNKNOWN
    if span.met is not None and span.met.failed:
        return Tone.BAD if span.met.failed == span.met.attempts else Tone.WARN
    return window.tone
