"""What a report says of a target pod's windows: values, with the field names of report.json.

All times are in ns since t = 0. A window opens at t = 0 if it was open then. An end lies
between what must have preceded it and the receipt of the frame that showed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.probing.document import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A stretch within a window in which it was not open."""

    opens_ns: Bounds
    closes_ns: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """What new TCP connections met that were surely begun within a window.

    An attempt belongs to the window that it was begun in, however long it took to fail or to
    be answered. The window's certain part reaches from the latest time at which it may have
    opened to the earliest at which it may have closed, or to the end of what was tried if no
    frame showed that it did; without its breaks, and without the gaps in the watch of slices,
    which may hide a break.

    ``attempts`` are those judged, ``failed`` those of them that failed, and ``not_judged``
    those of which nobody knows what became of them; ``rate`` holds whatever that was, and
    wherever attempts belong that the recording has lost; it is one of time, as
    :mod:`~pytest_drainwatch.core.probing.counts` says. It is None where none was judged, or
    the recording does not tell how many are lost. ``at_most`` are the attempts judged, and
    the failed ones, that may have been begun within the window, the sure ones among them.
    """

    attempts: int
    failed: int
    rate: Rate | None
    not_judged: int = 0
    at_most: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A window; ``lasts_ns`` is a duration. None: not seen, and the note says why.

    It closes with the last change that was not undone: those that were are its ``breaks``,
    and count as part of ``lasts_ns``. ``met`` is None where no new connections were tried, or
    the window was not seen.
    """

    opens_ns: Bounds | None
    closes_ns: Bounds | None = None
    lasts_ns: Bounds | None = None
    note: str | None = None
    breaks: tuple[Break, ...] = ()
    met: Met | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerWindow:
    """What the load balancer in front of the nodes did with a pod's node.

    ``sends``: from t = 0 until it held the node unhealthy; so long it sent new connections there,
    whichever pods the node led them to, and ``met`` counts all new connections of that time.
    ``again_ns``: when it first held it healthy after that. ``last_answered_ns``: from the
    beginning of the last new connection that this pod answered to its answer. ``let_go_ns``: when
    the deregistration delay was over, and the node's connections were closed; ``closed`` is how
    many those were, of all its pods. None: that did not happen.
    """

    sends: Span
    again_ns: Bounds | None = None
    last_answered_ns: Bounds | None = None
    let_go_ns: Bounds | None = None
    closed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWindows:
    """The windows of one target pod.

    ``advertised``: listed in any slice. ``ready_routable``: ready, so that kube-proxy leads
    new connections to it. ``fallback_routable``: serving and terminating while no endpoint
    of the Service is ready, so that kube-proxy falls back to it; there can be several, and
    None says that it is not known. ``dead_endpoint``: from the end of the pod's last TCP
    flow to the removal of its endpoint; negative where the endpoint went first.

    ``node`` is the name of its node; None: the slices do not say. With externalTrafficPolicy
    Local kube-proxy looks at the endpoints of its own node alone, so then a fallback is one of
    that node, and ``met`` counts the connections that entered there.

    The instants beside them: ``removed_by_family_ns`` for each address family that the
    slices name; an endpoint is gone with the last of them.

    ``load_balancer``: of the load balancer that was put in front of the nodes; None: none was.
    """

    pod_uid: str
    pod: str | None
    advertised: Span
    ready_routable: Span
    fallback_routable: tuple[Span, ...] | None
    dead_endpoint: Span
    deletion_ns: Bounds | None = None
    terminating_ns: Bounds | None = None
    ready_false_ns: Bounds | None = None
    removed_ns: Bounds | None = None
    removed_by_family_ns: Mapping[str, Bounds] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    node: str | None = None
    load_balancer: BalancerWindow | None = None
