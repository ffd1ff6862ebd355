"""The recording -> who ended each container, how, when, and what of its preStop hook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import clock
from pytest_drainwatch.core.document import PodEnd, bounds
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none
from pytest_drainwatch.core.moments import Start
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.pod import ending, kubelet
from pytest_drainwatch.core.pod.container_life import Life, lives, pod_records
from pytest_drainwatch.core.pod.deletion import Deletion
from pytest_drainwatch.core.pod.ending import EndedBy, KillTime, PreStopOutcome
from pytest_drainwatch.core.transitions import Transition

SIGKILL_CODE, SIGKILL = 137, 9
# The kubelet writes this, with exit code 137, for a container that it could not find.
NOT_FOUND = "ContainerStatusUnknown"
NOT_SAID = object()
NO_TIME = Interval.point(0)


def pod_ends(
    seen: Sequence[Observation],
    changes: Sequence[Transition],
    start: Start,
    clocks: Mapping[str, clock.Clock],
    config: Mapping[str, object],
) -> tuple[PodEnd, ...]:
    """Each container of the target pods, and any other that ended or was told to."""
    # What a watch showed only after a gap over t = 0 may have happened before it.
    blind = [o.at for o in seen if o.event is Event.WATCH_GAP and o.at.lo < start.t0_ns <= o.at.hi]
    judged = (
        _Judge(life, Deletion.of(life, changes, start, blind), start, clocks, config)
        for life in lives(pod_records(seen), changes)
    )
    ends = [judge.report() for judge in judged if judge.matters]
    return tuple(sorted(ends, key=lambda e: (e.role is not Role.TARGET, e.pod, e.container)))


@dataclass(frozen=True, slots=True)
class _Judge:
    life: Life
    pod: Deletion
    start: Start
    clocks: Mapping[str, clock.Clock]
    config: Mapping[str, object]

    @property
    def matters(self) -> bool:
        """Other pods count only if something happened to them."""
        return self.pod.target or self.life.ended_ns is not None or self._told

    def report(self) -> PodEnd:
        life, pod, t0_ns = self.life, self.pod, self.start.t0_ns
        ended, expected = self._ended(), self._expected_kill()
        killed = self._killed()
        when = ending.kill_time(ended, expected) if ended and killed else None
        if ended and killed and expected is None:
            when = self._early_without_grace(ended)
        verdict = ending.ended_by(
            ending.Facts(
                ended=ended is not None,
                oom=life.state.get("reason") == "OOMKilled",
                killed=killed,
                kill_time=when,
                sigterm_logged=life.log.has_sigterm,
                before_deletion=pod.at is None,
            )
        )
        outcome = self._pre_stop()
        term = life.log.first(Event.SIGTERM_RECEIVED)
        said: Mapping[str, object] = term.data if term else {}
        return PodEnd(
            pod=life.pod,
            pod_uid=life.record.uid,
            container=life.container,
            restart=life.restart,
            role=Role.TARGET if pod.target else Role.BYSTANDER,
            ended_by=verdict,
            initiator=self._initiator(),
            exit_code=integer_or_none(life.state.get("exit_code")),
            reason=_text(life.state.get("reason")),
            deletion_grace_period_s=pod.graces_s[-1] if pod.graces_s else None,
            deletion_ns=_since(pod.at, t0_ns),
            sigterm_ns=_since(self._sigterm(), t0_ns),
            expected_kill_ns=_since(expected, t0_ns),
            ended_ns=_since(ended, t0_ns),
            pre_stop=outcome,
            pre_stop_ns=bounds(self._pre_stop_ran(outcome)),
            in_flight_at_sigterm=integer_or_none(said.get("in_flight")),
            oldest_in_flight_ns=integer_or_none(said.get("oldest_in_flight_ns")),
            evidence=tuple(self._evidence(verdict, expected, ended)),
        )

    # --- when ---------------------------------------------------------------------------

    def _at(self, seen: Observation | None) -> Interval | None:
        return None if seen is None else clock.to_harness(seen, self.clocks)

    def _sigterm(self) -> Interval | None:
        return self._at(self.life.log.first(Event.SIGTERM_RECEIVED))

    def _ended(self) -> Interval | None:
        """Between the last sign of life and the frame that showed the end."""
        received = self.life.ended_ns
        if received is None:
            return None
        signs = [min([received, *(frame.at.lo for frame in self.life.record.frames[:1])])]
        signs += [at.lo for line in self.life.log.lines if (at := self._at(line)) is not None]
        if self.life.served_ns is not None:
            signs.append(self.life.served_ns)
        # A sign after the end is evidence against itself and bounds nothing.
        return Interval(max(sign for sign in signs if sign <= received), received)

    def _expected_kill(self) -> Interval | None:
        """When the kubelet's rule has SIGKILL follow; None if its grace period is not known.

        The lower bound holds for any kubelet. The upper one takes it to have begun when
        the deletion was seen: one that begins late kills as much later.
        """
        deletion, grace_s = self.pod.at, self._grace_s
        if deletion is None or grace_s is None:
            return None
        hook, term = self._hook_length(grace_s), self._sigterm()
        if term is None:
            return deletion + kubelet.kill_within(grace_s, hook)
        until = term - deletion
        longest = max(0, until.hi)
        shortest = min(longest, hook.lo)
        if self._hook is not None and hook.lo < hook.hi:
            shortest = min(longest, hook.hi, max(hook.lo, until.lo))
        return term + kubelet.remaining_within(grace_s, Interval(shortest, longest))

    def _early_without_grace(self, ended: Interval) -> KillTime | None:
        """Whatever the grace period was, the kubelet leaves two seconds after SIGTERM."""
        term = self._sigterm()
        if term is None:
            return None
        return KillTime.EARLY if ended.hi < term.lo + kubelet.MINIMUM_S * NS_PER_S else None

    @property
    def _grace_s(self) -> int | None:
        """What the API server set, never what the spec asked for (case C35)."""
        return self.pod.graces_s[0] if len(self.pod.graces_s) == 1 else None

    # --- the hook -----------------------------------------------------------------------

    @property
    def _hook(self) -> Mapping[str, object] | None:
        hook = self.config.get("pre_stop")
        return hook if isinstance(hook, Mapping) else None

    @property
    def _hookless(self) -> bool:
        """Whether the recording says so; an older one may not."""
        return self.config.get("pre_stop", NOT_SAID) is None

    @property
    def _sleep_ns(self) -> int | None:
        seconds = integer_or_none((self._hook or {}).get("sleep_seconds"))
        return None if seconds is None else seconds * NS_PER_S

    def _hook_length(self, grace_s: int) -> Interval:
        if self._hookless:
            return NO_TIME
        longest = max(grace_s, 1) * NS_PER_S
        if self._sleep_ns is not None:
            return Interval.point(min(self._sleep_ns, longest))
        return Interval(0, longest)

    def _pre_stop(self) -> PreStopOutcome | None:
        if self._hook is None:
            return PreStopOutcome.NONE if self._hookless else None
        term, grace_s = self._sigterm(), self._grace_s
        answered = self._at(self.life.log.first(Event.PRESTOP_ANSWERED))
        return ending.pre_stop_outcome(
            ending.Hook(
                grace_ns=None if grace_s is None else max(grace_s, 1) * NS_PER_S,
                lasts_ns=self._sleep_ns,
                until_sigterm=self._until_sigterm,
                failed=self._hook_failed,
                answered=bool(answered and term and answered.hi <= term.hi),
            )
        )

    @property
    def _until_sigterm(self) -> Interval | None:
        term, deletion = self._sigterm(), self.pod.at
        return None if term is None or deletion is None else term - deletion

    @property
    def _hook_failed(self) -> bool | None:
        """None unless the kubelet's own events of this pod were read."""
        told = {str(o.data.get("reason")) for o in self._events}
        if "FailedPreStopHook" in told:
            return True
        return False if "Killing" in told else None

    def _pre_stop_ran(self, outcome: PreStopOutcome | None) -> Interval | None:
        """From the hook's beginning to SIGTERM, which waits for it."""
        until, grace_s = self._until_sigterm, self._grace_s
        if until is None or grace_s is None or outcome in (None, PreStopOutcome.NONE):
            return None
        longest = max(0, until.hi)
        least = 0
        called, term = self._at(self.life.log.first(Event.PRESTOP_CALLED)), self._sigterm()
        if outcome is PreStopOutcome.CUT_OFF:
            least = max(grace_s, 1) * NS_PER_S
        elif outcome is PreStopOutcome.COMPLETED and self._sleep_ns is not None:
            least = self._sleep_ns
        elif called and term:
            least = term.lo - called.hi
        return Interval(max(0, min(least, longest)), longest)

    # --- who ----------------------------------------------------------------------------

    @property
    def _told(self) -> bool:
        log = self.life.log
        return bool(log.first(Event.SIGTERM_RECEIVED) or log.first(Event.PRESTOP_CALLED))

    @property
    def _events(self) -> list[Observation]:
        return [
            o
            for o in self.life.record.events
            if o.data.get("container") in (None, self.life.container)
        ]

    @property
    def _deleted(self) -> bool | None:
        """Whether its pod was deleted by then; None if no later frame says that it was not."""
        if self.pod.at is not None:
            return True
        term, shown = self._sigterm(), self.life.record.frames[-1:]
        if self.life.ended_ns is not None or (term and any(o.at.lo > term.hi for o in shown)):
            return False
        return None

    def _killed(self) -> bool | None:
        code, signal = (integer_or_none(self.life.state.get(k)) for k in ("exit_code", "signal"))
        if code is None or self.life.state.get("reason") == NOT_FOUND:
            return None
        return code == SIGKILL_CODE or signal == SIGKILL

    def _initiator(self) -> ending.Initiator:
        verb = str(self.start.accepted.data.get("verb", "")) if self.pod.target else None
        return ending.initiator(
            disruption=self.pod.disruption,
            pod_reason=self.pod.reason,
            deleted=self._deleted,
            verb=verb,
            told=self._told,
            ended=self.life.ended_ns is not None,
        )

    # --- why ----------------------------------------------------------------------------

    def _evidence(
        self, verdict: EndedBy, expected: Interval | None, ended: Interval | None
    ) -> Iterator[str]:
        log, state = self.life.log, self.life.state
        if ended is None:
            yield "its end was not seen within the observation window"
        else:
            yield f"exit code {state.get('exit_code')}, reason {state.get('reason')}"
        yield {
            True: "SIGTERM is in its log",
            False: "its log is complete and holds no SIGTERM: PID 1 did not pass it on"
            if verdict is EndedBy.SIGNAL_NOT_DELIVERED
            else "its log is complete and holds no SIGTERM",
            None: "its log is not known to be complete, and holds no SIGTERM",
        }[log.has_sigterm]
        if len(self.pod.graces_s) > 1:
            shown = " s, then ".join(map(str, self.pod.graces_s))
            yield f"the grace period was shortened on the way: {shown} s"
        if expected and ended and self._killed() and ended.lo > expected.hi + NS_PER_S:
            late_s = (ended.lo - expected.hi) / NS_PER_S
            yield f"killed {late_s:.1f} s later than the kubelet's rule has it; its version matters"
        for name, value in (
            ("pod status", self.pod.reason),
            ("DisruptionTarget", self.pod.disruption),
        ):
            if value:
                yield f"{name}: {value}" + (
                    f" ({self.pod.message})" if name == "pod status" and self.pod.message else ""
                )
        for event in self._events:
            reason, message = str(event.data.get("reason")), str(event.data.get("message"))
            if ending.tells_of_an_end(reason, message):
                count = integer(event.data.get("count"), 1)
                yield f"event {reason} x{count}: {message}"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _since(at: Interval | None, t0_ns: int) -> tuple[int, int] | None:
    return None if at is None else bounds(at.since(t0_ns))
