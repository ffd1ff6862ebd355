"""Looks into the node's network at the moments that matter, beside the trial.

A thread of its own follows the watch: what it sees there tells when
to look. It is no part of the measurement: whatever goes wrong is recorded as a look's
``problem`` and never ends a trial.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from pytest_drainwatch.cluster.network import Answer, NodeNetwork
from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.jsonvalue import objects
from pytest_drainwatch.core.mechanism import conntrack, rules
from pytest_drainwatch.core.mechanism.occasion import AFTER_EXIT_S, Occasion
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.priority import run_soon

POLL_S = 0.1
# How long a trial waits for a look when its programs hang. The flows' plan waits for the
# trigger, so that waits less.
PATIENCE_S = 8.0
TRIGGER_PATIENCE_S = 1.0
CANNOT_LOOK = (
    "the nodes of this cluster cannot be looked into: only those of an embedded or a kind one can"
)

Fields = Mapping[str, object]


class Sight(Protocol):
    """What the watch sees."""

    def pods(self) -> Mapping[str, Fields]: ...

    def slices(self) -> Mapping[str, Fields]: ...

    def wait_changed(self, timeout_s: float) -> None: ...


class Evidence:
    """Looks at each :class:`Occasion` once. Use as a context manager.

    Args:
        look: asks the node about the connections that these addresses opened.
        sight: what the watch sees.
        record: takes observations.
        service: the Service's namespace/name.
        sources: where the flows connect from.
        ports: transport and port that they connect to.
        blind: why a look would tell nothing of the flows; None: it would.
    """

    def __init__(
        self,
        look: Callable[[Collection[str]], NodeNetwork | None],
        sight: Sight,
        record: Callable[[Observation], None],
        *,
        service: str,
        sources: Collection[str],
        ports: Collection[tuple[str, int]],
        blind: str | None = None,
    ) -> None:
        self._ask = look
        self._sight = sight
        self._record = record
        self._service = service
        self._sources = tuple(sources)
        self._ports = frozenset(ports)
        self._cannot = blind or CANNOT_LOOK
        self._blind = blind is not None
        self._before: frozenset[str] = frozenset()
        self._exit_ns: int | None = None
        self._looked: set[Occasion] = set()
        self._asked = threading.Event()
        self._triggered = threading.Event()
        self._observed = threading.Event()
        self._over = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dw-mechanism", daemon=True)

    def __enter__(self) -> Evidence:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Begin to follow the watch."""
        self._thread.start()

    def before_trigger(self) -> None:
        """Look now; to be called just before the trigger is sent. Returns when that is done."""
        self._asked.set()
        self._triggered.wait(TRIGGER_PATIENCE_S)

    def observed(self) -> None:
        """Look a last time, if the trial was too short for the look after the exit.

        To be called while the flows are still open.
        """
        self._observed.set()
        self._over.wait(PATIENCE_S)

    def close(self) -> None:
        """End the thread without another look. May be called again."""
        self._stop.set()
        for waiting in (self._asked, self._observed):
            waiting.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        run_soon()
        try:
            self._asked.wait()
            if self._stop.is_set():
                return
            self._before = frozenset(self._sight.pods())
            possible = self._look(Occasion.TRIGGER)
            self._triggered.set()
            while possible and not self._stop.is_set():
                for occasion in self._due():
                    self._look(occasion)
                if self._looked & {Occasion.AFTER_EXIT, Occasion.END}:
                    return
                self._sight.wait_changed(POLL_S)
        except Exception as error:
            problem = f"looking ended early: {error!r}"
            self._tell(Event.CONNTRACK, None, {"occasion": Occasion.END, "problem": problem})
        finally:
            self._triggered.set()
            self._over.set()

    def _due(self) -> Iterator[Occasion]:
        """The occasions that have come and were not looked at yet."""
        pods = self._sight.pods()
        leaving = {uid for uid in self._before if _leaves(pods.get(uid))}
        if leaving & self._unready():
            yield Occasion.READY_FALSE
        if self._exit_ns is None and any(_ended(pods.get(uid)) for uid in leaving):
            self._exit_ns = time.monotonic_ns()
        if self._exit_ns is not None:
            yield Occasion.EXIT
            if time.monotonic_ns() - self._exit_ns >= AFTER_EXIT_S * NS_PER_S:
                yield Occasion.AFTER_EXIT
                return  # which is as good as a look at the end
        if self._observed.is_set():
            yield Occasion.END

    def _unready(self) -> set[str]:
        """Who is listed and not ready; one that is listed no more was perhaps never unready."""
        return {
            str(endpoint.get("uid"))
            for item in self._sight.slices().values()
            for endpoint in objects(item.get("endpoints"))
            if endpoint.get("ready") is False
        }

    def _look(self, occasion: Occasion) -> bool:
        """Look and record what came back; False: this cluster cannot be looked into."""
        if occasion in self._looked or self._stop.is_set():
            return True
        self._looked.add(occasion)
        try:
            seen, problem = None if self._blind else self._ask(self._sources), self._cannot
        except Exception as error:
            seen, problem = None, f"the node could not be asked: {error!r}"
        if seen is None:
            self._tell(Event.CONNTRACK, None, {"occasion": occasion, "problem": problem})
            return problem != self._cannot
        self._tell(Event.CONNTRACK, seen.conntrack, self._entries(occasion, seen.conntrack))
        self._tell(Event.PROXY_RULES, seen.rules, self._rules(occasion, seen))
        return True

    def _entries(self, occasion: Occasion, answer: Answer) -> dict[str, object]:
        told: dict[str, object] = {"occasion": occasion, "problem": answer.problem}
        if answer.problem is None:
            entries, left_out = conntrack.entries_of(answer.text, self._sources, self._ports)
            told |= {"entries": [entry.fields() for entry in entries], "left_out": left_out}
        return told

    def _rules(self, occasion: Occasion, seen: NodeNetwork) -> dict[str, object]:
        told: dict[str, object] = {
            "occasion": occasion,
            "mode": seen.mode,
            "problem": seen.rules.problem,
        }
        if seen.rules.problem is None and seen.mode is not None and rules.known(seen.mode):
            lines, left_out = rules.lines_about(seen.mode, seen.rules.text, self._service)
            told |= {"rules": lines, "left_out": left_out}
        return told

    def _tell(self, event: Event, answer: Answer | None, data: dict[str, object]) -> None:
        now = time.monotonic_ns()
        at = Interval(answer.asked_ns, answer.answered_ns) if answer else Interval.point(now)
        with suppress(OSError):  # the recorder remembers it, and the conductor asks
            self._record(Observation(source=Source.NODE, event=event, at=at, data=data))


def _leaves(pod: Fields | None) -> bool:
    """Whether a pod that was there before is told to end, or has."""
    return pod is None or bool(pod.get("deletion_timestamp"))


def _ended(pod: Fields | None) -> bool:
    containers = objects(pod.get("containers")) if pod is not None else []
    return pod is None or (
        bool(containers) and all(each.get("state") == "terminated" for each in containers)
    )
