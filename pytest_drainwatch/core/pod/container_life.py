"""Which containers ran and ended in a recording, and which log lines belong to which.

A container that was restarted is several lives under one name: each has its own end,
its own process and nonce, and its own SIGTERM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_drainwatch.core import transitions
from pytest_drainwatch.core.jsonvalue import integer, objects, text
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.transitions import Transition

# Recordings before the container was named in them followed this one's log.
LOGGED_CONTAINER = "probe"
LAST_WORDS = frozenset({Event.EXITING, Event.FATAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The lines of one process, and whether they are all that it wrote."""

    lines: tuple[Observation, ...] = ()
    complete: bool = False

    def first(self, event: Event) -> Observation | None:
        """The first line of that event."""
        return next((line for line in self.lines if line.event is event), None)

    @property
    def nonce(self) -> str | None:
        """What its process called itself when it answered."""
        return next((n for line in self.lines if (n := text(line.data.get("nonce")))), None)

    @property
    def has_sigterm(self) -> bool | None:
        """None if a line may be missing: a log must also show its beginning to be whole."""
        if self.first(Event.SIGTERM_RECEIVED):
            return True
        return False if self.complete and self.first(Event.PROBE_STARTED) else None


@dataclass(slots=True, kw_only=True)
class PodRecord:
    """All that a recording holds about one pod, each kind in the order of receipt."""

    uid: str
    frames: list[Observation] = field(default_factory=list)
    lines: list[Observation] = field(default_factory=list)
    events: list[Observation] = field(default_factory=list)
    log_ended: Mapping[str, object] = field(default_factory=dict)
    served_ns: dict[str, int] = field(default_factory=dict)  # by nonce: last good request sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One run of one container.

    ``ended_ns`` is the receipt of the frame that showed its end, ``served_ns`` when the
    last request that it answered was sent.
    """

    record: PodRecord
    pod: str
    container: str
    restart: int
    ended_ns: int | None = None
    state: Mapping[str, object] = field(default_factory=dict)
    log: Log = field(default_factory=Log)
    served_ns: int | None = None

    @property
    def events(self) -> list[Observation]:
        """What the cluster's events say of this container, or of its whole pod."""
        return [o for o in self.record.events if o.data.get("container") in (None, self.container)]


def pod_records(
    seen: Iterable[Observation], alive: Mapping[str, int] | None = None
) -> dict[str, PodRecord]:
    """What the recording holds, by pod UID; a recording of many flows is gone through once.

    ``alive``: when the last request over HTTP was sent that a pod answered.
    """
    found: dict[str, PodRecord] = {}

    def of(uid: str) -> PodRecord:
        return found.setdefault(uid, PodRecord(uid=uid))

    for o in seen:
        if o.event is Event.FLOW_ANSWERED:
            uid, _, nonce = str(o.data.get("responder")).partition("/")
            served = of(uid).served_ns
            sent_ns = integer(o.data.get("last_sent_ns"), o.at.lo)
            served[nonce] = max(sent_ns, served.get(nonce, sent_ns))
        elif o.event is Event.POD:
            of(o.subject).frames.append(o)
        elif o.source is Source.PROBE:
            of(o.subject).lines.append(o)
        elif o.event is Event.CLUSTER_EVENT:
            of(o.subject).events.append(o)
        elif o.event is Event.LOG_ENDED:
            of(o.subject).log_ended = o.data
    for uid, sent_ns in (alive or {}).items():
        served = of(uid).served_ns
        served[""] = max(sent_ns, served.get("", sent_ns))
    return found


def lives(records: Mapping[str, PodRecord], changes: Iterable[Transition]) -> tuple[Life, ...]:
    """Every run of every container of the workload's pods, by pod, container and restart."""
    found: dict[tuple[str, str, int], Life] = {}
    for change in changes:
        name, restarts = str(change.fields.get("name", "")), integer(change.fields.get("restarts"))
        if change.event == transitions.CONTAINER_TERMINATED:
            number, state = restarts, change.fields
        elif change.event == transitions.CONTAINER_RESTARTED:
            # A quick restart never shows its end as a state of its own.
            before = change.fields.get("last_state")
            number, state = restarts - 1, before if isinstance(before, dict) else {}
        else:
            continue
        life = Life(
            record=records[change.uid],
            pod=change.name,
            container=name,
            restart=number,
            ended_ns=change.received_ns,
            state=state,
        )
        found.setdefault((change.uid, name, number), life)
    for record in records.values():
        for life in _last_shown(record):
            found.setdefault((record.uid, life.container, life.restart), life)
    restarts_of: dict[tuple[str, str], list[int]] = {}
    for uid, name, number in sorted(found):
        restarts_of.setdefault((uid, name), []).append(number)
    return tuple(
        _with_log(life, restarts_of[uid, name]) for (uid, name, _), life in sorted(found.items())
    )


def _last_shown(record: PodRecord) -> Iterator[Life]:
    """The containers as the pod last showed them: those may run on."""
    for frame in record.frames[-1:]:
        for container in objects(frame.data.get("containers")):
            if container.get("state") in ("running", "terminated"):
                yield Life(
                    record=record,
                    pod=str(frame.data.get("name", "")),
                    container=str(container.get("name", "")),
                    restart=integer(container.get("restarts")),
                )


def _with_log(life: Life, restarts: Sequence[int]) -> Life:
    """With its own lines and answers, where it is certain whose they are."""
    if life.container != life.record.log_ended.get("container", LOGGED_CONTAINER):
        return life if life.record.log_ended else replace(life, served_ns=_served(life, restarts))
    log, served = _log(life, restarts), life.record.served_ns
    only = next(iter(served)) if len(served) == len(restarts) == 1 else None
    return replace(life, log=log, served_ns=served.get(log.nonce or only or ""))


def _served(life: Life, restarts: Sequence[int]) -> int | None:
    """When the only run of a pod's only container was last seen to answer."""
    shown = life.record.frames[-1].data if life.record.frames else {}
    alone = len(objects(shown.get("containers"))) == len(restarts) == 1
    return max(life.record.served_ns.values(), default=None) if alone else None


def _log(life: Life, restarts: Sequence[int]) -> Log:
    ended = life.record.log_ended
    runs: dict[object, list[Observation]] = {}
    nonce: object = None
    for line in life.record.lines:
        nonce = text(line.data.get("nonce")) or nonce
        runs.setdefault(nonce, []).append(line)
    if len(runs) == restarts[-1] + 1 and life.restart >= 0:
        place = life.restart  # from the pod's first process on, be it before anybody watched
    elif len(runs) == len(restarts):
        place = restarts.index(life.restart)
    else:
        return Log()
    lines = list(runs.values())[place]
    said_last = any(line.event in LAST_WORDS for line in lines)
    is_last = life.restart == restarts[-1]
    complete = said_last or (is_last and ended.get("complete") is True)
    return Log(lines=tuple(lines), complete=complete)
