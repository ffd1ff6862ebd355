"""What a report says of HTTP requests: values, with the field names of report.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_drainwatch.core.flow.classify import Outcome, Role
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.http.fate import Fate
from pytest_drainwatch.core.http.whose import KnownBy
from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.probing.document import Rate


class How(StrEnum):
    """How a connection ended, beside its outcome."""

    CONNECTION_CLOSE = "connection-close"  # the last response said so
    FIN_IDLE = "fin-idle"  # a FIN while no request was outstanding, read before any write
    FIN_OUTSTANDING = "fin-outstanding"
    RST_IDLE = "rst-idle"
    RST_OUTSTANDING = "rst-outstanding"
    TIMEOUT = "timeout"  # we gave a request on it up, or the kernel the connection
    CLIENT = "client"  # we closed it, though it could have served on
    CLIENT_STALL = "client-stall"
    UNHEARD = "unheard"  # open to the end, and nobody answered on it since, or not any more
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Requests since t = 0 that one responder answered as expected; ``by`` is its identity
    header as given. ``first_ns`` and ``last_ns`` hold the first and the last of them.
    """

    by: str
    pod_uid: str | None
    role: Role | None
    requests: int
    first_ns: Bounds
    last_ns: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class OldConnections:
    """Pooled connections that were open at t = 0, of one role (None: not known whose).

    ``served_after`` requests were sent on them after t = 0 and answered as expected, the last one
    within ``last_served_ns``. ``gone_ns`` is when the last of them had ended; None: some had not
    when the client stopped, or a stall hides when. ``outcomes`` counts the connections.
    """

    role: Role | None
    connections: int
    served_after: int
    last_served_ns: Bounds | None
    gone_ns: Bounds | None
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEnd:
    """A pooled connection that was open at t = 0, and what became of it.

    ``by`` is its identity header before the trigger, as given; ``known_by`` is what tells to which
    pod it led. ``responders`` is how many different ones answered on it: several are behind a
    proxy. ``served_after``: requests sent on it after t = 0 that were answered as expected.
    """

    lane: str
    connection: int
    role: Role | None
    pod_uid: str | None
    known_by: KnownBy | None
    by: str | None
    opened_ns: int
    outcome: Outcome
    how: How
    ended_ns: Bounds | None
    served_after: int
    responders: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotServed:
    """Requests of one lane in a row that were not served as they were asked, since t = 0."""

    lane: str
    fate: Fate
    count: int
    at_ns: Bounds  # holds all of them, from the begin of the first to the end of the last
    retry_safe: bool | None
    status: int | None = None
    errno: str | None = None
    by: str | None = None  # who had answered on its connection before, or answered now


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRequests:
    """From the first failed request since t = 0 to the last one, in ns since t = 0.

    A request failed somewhere between its begin and its end: ``first_ns`` holds that of the
    first, ``last_ns`` that of the last one. ``begun_ns`` are the begins of the two.
    ``served_before_ns`` holds the last request that was begun before and served,
    ``recovered_ns`` the first one that was begun after and served; None: there was none.
    """

    begun_ns: Bounds
    first_ns: Bounds
    last_ns: Bounds
    lasts_ns: Bounds
    requests: int
    failures: int
    served_before_ns: Bounds | None
    recovered_ns: Bounds | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRequests:
    """The requests of all lanes of one kind.

    ``planned`` slots are those of the whole trial: ``requests`` were made of them, and the
    ``missed_slots`` others were not, because the client was late (None: the recording does not
    tell). ``attempts`` are those requests under way at t = 0 or later that were served or
    failed; ``fates`` names what became of all since then, ``fates_before`` of those before.
    ``failure_rate`` holds whatever became of those that are ``not_judged`` or ``lost``.
    Failures of which a client may repeat the request unasked are ``retry_safe``.
    ``redialled``: their pooled connection had been closed before a byte was written.
    """

    kind: LaneKind
    lanes: int
    planned: int | None
    missed_slots: int | None
    requests: int
    attempts: int
    served: int
    failed: int
    failure_rate: Rate | None
    fates: Mapping[str, int]
    not_judged: int = 0
    retry_safe: int = 0
    not_retry_safe: int = 0
    redialled: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    attempts_before: int = 0
    failed_before: int = 0
    fates_before: Mapping[str, int] = field(default_factory=dict)
    failing: FailingRequests | None = None
    answered_by: tuple[Answered, ...] = ()
    slowest_ns: int | None = None  # of those served since t = 0, at most
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """HTTP requests of a trial. ``lost`` ones were made and are not in the recording.

    ``not_served`` are the first of those that were not; so many stretches more were left out.
    ``late_*`` is how long after their slots requests were begun.
    """

    method: str
    expect_status: int
    timeout_ns: int | None
    kinds: tuple[KindRequests, ...]
    old_connections: tuple[OldConnections, ...] = ()
    connections: tuple[ConnectionEnd, ...] = ()
    connections_left_out: int = 0
    not_served: tuple[NotServed, ...] = ()
    not_served_left_out: int = 0
    lost: int | None = None
    late_p99_ns: int | None = None
    late_max_ns: int | None = None
    notes: tuple[str, ...] = ()
