"""A trigger, from what it sets up to what it puts back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType

from pytest_drainwatch import cordon
from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.scenario import Controller, Trigger
from pytest_drainwatch.trigger import evacuation
from pytest_drainwatch.trigger.asking import TOO_MANY, Record, Refused, TriggerFailed, ask, insist
from pytest_drainwatch.trigger.calls import Call, calls_of, ended_by, evict, scale
from pytest_drainwatch.trigger.target import Owner, Target
from pytest_drainwatch.trigger.undoing import Undo, undo

# kubectl drain asks again so soon.
AGAIN_S = 5.0
# A call that is under way when the trial ends is waited for: it takes no longer than that.
STOP_TIMEOUT_S = sum(REQUEST_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The trigger as it was carried out, and the pods that it ends.

    ``at`` reaches from the first call's send, which is t = 0, to the last one's return.
    """

    at: Interval
    attempts: int
    targets: tuple[str, ...]


class Armed:
    """A trigger that is about to be fired, once. Use as a context manager: at its end the node
    that it cordoned takes pods again, and a workload that is not ours has its scale back.

    ``tell`` takes what could not be put back, where another failure is already on its way.
    ``owner`` names this process on a node that it cordons, for a run after it was killed.
    """

    def __init__(
        self,
        api: Api,
        verb: Trigger,
        target: Target,
        record: Record,
        tell: Callable[[str], None] = lambda _: None,
        *,
        owner: str = "",
    ) -> None:
        self._api, self._verb, self._target = api, verb, target
        self._record, self._tell, self._owner = record, tell, owner
        self._undo: list[Undo] = []
        self._again: list[Call] = []  # evictions of ours that were refused
        self._others: list[Call] = []  # evictions of the node's other pods
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Armed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is None:
            self.put_back()
            return
        for text in undo(self._undo, self._go_on_no_more):
            self._tell(text)

    @property
    def changed(self) -> bool:
        """Whether there is something to put back."""
        return bool(self._undo)

    def put_back(self) -> None:
        """Undo what was changed beside the pods, now and once; an evacuation goes on no more.

        Raises :class:`TriggerFailed` with what could not be put back, and the commands for it.
        """
        if failed := undo(self._undo, self._go_on_no_more):
            raise TriggerFailed("; ".join(failed))

    def fire(self, *, timeout_s: float, sleep: Callable[[float], None] = time.sleep) -> Accepted:
        """Ask until it is accepted, and record how it went. A control asks nothing.

        Raises :class:`TriggerFailed` if it is refused for good or until ``timeout_s``, or if
        one of several calls is refused after another was accepted. An evacuation goes on
        with those that a disruption budget refused, as `kubectl drain` does.
        """
        self._set_up()
        calls = calls_of(self._api, self._verb, self._target)
        attempts, made = 1, list[Interval]()
        for call in calls:
            if not made:
                attempts, accepted = insist(call, self._verb, self._record, timeout_s, sleep)
                made.append(accepted)
                continue
            went = ask(call, self._verb, 1, self._record)
            if isinstance(went, Interval):
                made.append(went)
            elif self._verb is Trigger.EVACUATE_NODE and went.status == TOO_MANY:
                self._again.append(call)
            else:
                raise self._half_done(call, went, len(made), len(calls)) from went.error
        self._go_on()
        return self._accepted(attempts, made)

    # --- before ---------------------------------------------------------------------------

    def _set_up(self) -> None:
        """What must be done or known before the first call. May fail as the API client does."""
        node, owner = self._target.node, self._target.controller
        if self._verb is Trigger.EVACUATE_NODE and node is not None:
            self._cordon(node)
            self._others = [
                Call(
                    what=f"pod {each.namespace}/{each.pod.name}",
                    send=partial(evict, self._api, each.namespace, each.pod),
                )
                for each in evacuation.others(
                    evacuation.tenants(self._api, self._target), self._target
                )
            ]
        if self._verb is Trigger.SCALE and not self._target.ours and owner is not None:
            namespace = self._target.namespace
            before = _replicas(self._api, namespace, owner)
            back = Undo(
                left=f"{owner} stays scaled to 0",
                command=f"kubectl -n {namespace} scale {owner.kind}/{owner.name} "
                f"--replicas={before}",
                send=partial(scale, self._api, namespace, owner, before),
            )
            self._undo.append(back)
            # No later run knows the number: the object itself does not hold it meanwhile.
            self._tell(
                f"scales {owner} in namespace {namespace} from {before} to 0, and back when the "
                f"trial ends. If this process is killed, type: {back.command}"
            )

    def _cordon(self, node: str) -> None:
        already = cordon.is_cordoned(self._api, node)
        if not already:
            # First: interrupted or unanswered, the call may have been carried out all the same.
            self._undo.append(
                Undo(
                    left=f"node {node} stays cordoned",
                    command=f"kubectl uncordon {node}",
                    send=partial(cordon.uncordon, self._api, node),
                )
            )
        sent = time.monotonic_ns()
        if not already:
            cordon.cordon(self._api, node, self._owner)
        self._note(Event.NODE_CORDONED, sent, node=node, already=already)

    # --- the calls ------------------------------------------------------------------------

    def _half_done(self, call: Call, went: Refused, made: int, wanted: int) -> TriggerFailed:
        return TriggerFailed(
            f"{self._verb} of {call.what} was refused with {went.why}, after {made} of "
            f"{wanted} pods had been told to end; expected all to end at once. Look at: "
            f"kubectl -n {self._target.namespace} get events,poddisruptionbudgets"
        )

    def _accepted(self, attempts: int, made: Sequence[Interval]) -> Accepted:
        at = Interval(made[0].lo, made[-1].hi) if made else Interval.point(time.monotonic_ns())
        ended = ended_by(self._verb, self._target)
        uids = tuple(pod.uid for pod in ended)
        data: dict[str, object] = {
            "verb": str(self._verb),
            "attempt": attempts,
            "targets": list(uids),
            "pods": [pod.name for pod in ended],
            "calls": [[each.lo, each.hi] for each in made],
        }
        if self._verb is Trigger.CONTAINER_KILL:
            kills = self._target.kills
            data["containers"] = {
                uid: [kills[uid].container, kills[uid].restarts] for uid in uids if uid in kills
            }
        self._record(
            Observation(source=Source.ORCHESTRATOR, event=Event.TRIGGER_ACCEPTED, at=at, data=data)
        )
        return Accepted(at=at, attempts=attempts, targets=uids)

    # --- after ----------------------------------------------------------------------------

    def _go_on(self) -> None:
        if self._again or self._others:
            self._thread = threading.Thread(target=self._evict_the_rest, name="evacuate")
            self._thread.start()

    def _go_on_no_more(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)

    def _evict_the_rest(self) -> None:
        """The other pods of the node, and those of ours that were refused, until all are told."""
        again, others, attempt, since_ns = self._again, self._others, 1, time.monotonic_ns()
        while not self._stop.is_set():
            # What becomes of the others is no part of the trial: only their number is recorded.
            others = self._left(others, attempt, lambda _: None)
            attempt += 1
            if not again and not others:
                break
            if self._stop.wait(AGAIN_S):
                break
            again = self._left(again, attempt, self._record)
        told = len(self._others) - len(others)
        self._note(Event.NODE_EVACUATED, since_ns, others=told, left=len(others) + len(again))

    def _left(self, calls: Sequence[Call], attempt: int, record: Record) -> list[Call]:
        """Ask for each; returns those to ask for again. None is asked for once it must stop."""
        return [c for c in calls if self._stop.is_set() or not self._told(c, attempt, record)]

    def _told(self, call: Call, attempt: int, record: Record) -> bool:
        """Whether there is nothing more to ask: it was accepted, or refused for good."""
        sent, problem = time.monotonic_ns(), None
        try:
            went = ask(call, self._verb, attempt, record)
        except Exception as error:  # a broken connection: the watch tells whether the API is dead
            problem = explain(error)
        else:
            if isinstance(went, Refused):
                return went.status != TOO_MANY
        at = Interval(sent, time.monotonic_ns())
        data = {"what": call.what, "problem": problem}
        record(
            Observation(source=Source.ORCHESTRATOR, event=Event.TRIGGER_CONTINUED, at=at, data=data)
        )
        return problem is None

    def _note(self, event: Event, since_ns: int, **data: object) -> None:
        at = Interval(since_ns, time.monotonic_ns())
        self._record(Observation(source=Source.ORCHESTRATOR, event=event, at=at, data=data))


def _replicas(api: Api, namespace: str, owner: Owner) -> int:
    read = {
        Controller.DEPLOYMENT: api.apps.read_namespaced_deployment_scale,
        Controller.STATEFUL_SET: api.apps.read_namespaced_stateful_set_scale,
    }[owner.kind]
    response = read(owner.name, namespace, _preload_content=False, _request_timeout=REQUEST_TIMEOUT)
    return int(json.loads(response.data)["spec"].get("replicas") or 0)
