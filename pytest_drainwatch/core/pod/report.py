"""The recording -> who ended each container, how, when, and what of its preStop hook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_drainwatch.core import clock
from pytest_drainwatch.core.blind import Blind
from pytest_drainwatch.core.document import PodEnd
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.interval import NS_PER_S, Interval, bounds
from pytest_drainwatch.core.jsonvalue import integer, integer_or_none
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.pod import ending, kubelet
from pytest_drainwatch.core.pod.container_life import Life, lives, pod_records
from pytest_drainwatch.core.pod.deletion import Deletion
from pytest_drainwatch.core.pod.ending import EndedBy, KillTime
from pytest_drainwatch.core.pod.pre_stop import (
    STOP_SIGNAL,
    PreStopRun,
    config_of,
    containers_of,
)
from pytest_drainwatch.core.start import Start
from pytest_drainwatch.core.transitions import Transition

SIGKILL_CODE, SIGKILL = 137, 9
SIGTERM_CODE, SIGTERM = 143, 15
# The kubelet writes this, with exit code 137, for a container that it could not find.
NOT_FOUND = "ContainerStatusUnknown"
# Ends of a workload of the user's before which its stop signal was sent.
AFTER_SIGNAL = frozenset({EndedBy.EXIT, EndedBy.SIGKILL_AT_GRACE})


def pod_ends(
    seen: Sequence[Observation],
    changes: Sequence[Transition],
    start: Start,
    clocks: Mapping[str, clock.Clock],
    config: Mapping[str, object],
    alive: Mapping[str, int],
) -> tuple[PodEnd, ...]:
    """Each container of the target pods, and any other that ended or was told to.

    ``alive``: by pod uid, when the last HTTP request was sent that it answered.
    """
    if start.control:
        return ()  # nobody was told to end
    blind, containers = Blind.of(seen, start.t0_ns), containers_of(seen)
    judged = (
        _Judge(
            life,
            Deletion.of(life, changes, start, blind),
            start,
            clocks,
            config_of(life.container, config, containers),
        )
        for life in lives(pod_records(seen, alive), changes)
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
        """Other pods count only if something happened to them, and so do other containers of a
        pod of which one was killed.
        """
        all_of_it = self.pod.target and self.life.record.uid not in self.start.killed
        return all_of_it or self.life.ended_ns is not None or self._told

    def report(self) -> PodEnd:
        life, pod, t0_ns = self.life, self.pod, self.start.t0_ns
        ended, expected = self._ended(), self._expected_kill()
        killed = self._code_says(SIGKILL_CODE, SIGKILL)
        when = ending.kill_time(ended, expected) if ended and killed else None
        if ended and killed and expected is None:
            when = self._early_without_grace(ended)
        verdict = ending.ended_by(
            ending.Facts(
                ended=life.ended_ns is not None,
                by_trigger=self._by_trigger,
                oom=life.state.get("reason") == "OOMKilled",
                killed=killed,
                kill_time=when,
                died_of_sigterm=self._code_says(SIGTERM_CODE, SIGTERM) is True,
                sigterm_logged=life.log.has_sigterm,
                before_deletion=pod.at is None,
                logless=self._is_attached,
                hook_over=self._hook.over(ended),
            )
        )
        term = life.log.first(Event.SIGTERM_RECEIVED)
        said: Mapping[str, object] = term.data if term else {}
        stop = self._stop_signal(verdict)
        if stop and ended:  # the verdict says that this came first
            ended = Interval(max(ended.lo, stop.lo), ended.hi)
        # What its image says the API does not tell.
        by_sigterm = stop if self.config.get(STOP_SIGNAL) == "SIGTERM" else None
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
            sigterm_ns=_since(self._sigterm() or by_sigterm, t0_ns),
            stop_signal_ns=_since(stop, t0_ns),
            expected_kill_ns=_since(expected, t0_ns),
            ended_ns=_since(ended, t0_ns),
            pre_stop=self._hook.outcome,
            pre_stop_ns=bounds(self._hook.waited()),
            in_flight_at_sigterm=integer_or_none(said.get("in_flight")),
            oldest_in_flight_ns=integer_or_none(said.get("oldest_in_flight_ns")),
            evidence=tuple(self._evidence(verdict, expected, ended)),
        )

    # --- when ---------------------------------------------------------------------------

    def _at(self, seen: Observation | None) -> Interval | None:
        return None if seen is None else clock.to_harness(seen, self.clocks)

    def _sigterm(self) -> Interval | None:
        return self._at(self.life.log.first(Event.SIGTERM_RECEIVED))

    @property
    def _is_attached(self) -> bool:
        """Whether it is a workload of the user's: no probe runs in it."""
        return isinstance(self.config.get("attached"), Mapping)

    def _stop_signal(self, verdict: EndedBy) -> Interval | None:
        """Of a workload that tells nothing: after the deletion and its hook, before its end.

        None: it was not seen to end, or it may have ended before any signal.
        """
        deletion, grace_s, ended_ns = self.pod.at, self.pod.grace_s, self.life.ended_ns
        if not self._is_attached or verdict not in AFTER_SIGNAL:
            return None
        if deletion is None or grace_s is None or ended_ns is None:
            return None
        lo = deletion.lo + kubelet.sigterm_after(grace_s, self._hook.ran(grace_s).lo)
        return Interval(lo, ended_ns) if lo <= ended_ns else None

    def _ended(self) -> Interval | None:
        """Between the last sign of life and the frame that showed the end.

        None without a sign: a pod's first frame does not say for how long it was so.
        """
        received = self.life.ended_ns
        if received is None:
            return None
        signs = [frame.at.lo for frame in self.life.record.frames[:1] if frame.at.hi < received]
        signs += [at.lo for line in self.life.log.lines if (at := self._at(line)) is not None]
        if self.life.served_ns is not None:
            signs.append(self.life.served_ns)
        if self._by_trigger:
            signs.append(self.start.t0_ns)  # it lived until the trial killed it
        # A sign after the end is evidence against itself and bounds nothing.
        last = max((sign for sign in signs if sign <= received), default=None)
        return None if last is None else Interval(last, received)

    def _expected_kill(self) -> Interval | None:
        """When the kubelet's rule has SIGKILL follow; None if its grace period is not known.

        The lower bound holds for any kubelet: it counts from the deletion, since SIGTERM
        is logged some time after it was sent, and a busy app logs it late. The upper one
        does count from the log, which a kubelet that began late delays too. For a hook of
        unknown length it takes both to have been prompt.
        """
        deletion, grace_s, hook = self.pod.at, self.pod.grace_s, self._hook
        if deletion is None or grace_s is None:
            return None
        ran, term, until = hook.ran(grace_s), hook.term, hook.until_sigterm
        rule = deletion + kubelet.kill_within(grace_s, ran)
        if term is None or until is None:
            return rule
        if until.hi < 0:
            return None  # of another end, which the deletion only met: its start is not known
        # What is known within bounds only is taken to have lasted until SIGTERM.
        shortest = ran.lo if hook.asked is None else min(ran.hi, max(ran.lo, until.lo))
        return Interval(rule.lo, term.hi + kubelet.remaining_after(grace_s, shortest))

    def _early_without_grace(self, ended: Interval) -> KillTime | None:
        """Whatever the grace period was, the kubelet leaves two seconds after SIGTERM.

        SIGTERM may be logged late, so they count from the deletion that it follows.
        """
        until, deletion = self._hook.until_sigterm, self.pod.at
        if until is None or deletion is None or until.hi < 0:
            return None
        return KillTime.EARLY if ended.hi < deletion.lo + kubelet.MINIMUM_S * NS_PER_S else None

    @property
    def _hook(self) -> PreStopRun:
        return PreStopRun(
            config=self.config,
            deletion=self.pod,
            term=self._sigterm(),
            answered=self._at(self.life.log.first(Event.PRESTOP_ANSWERED)),
            events=self.life.events,
        )

    # --- who ----------------------------------------------------------------------------

    @property
    def _told(self) -> bool:
        """Of one that was killed it counts as well if it may have been another run's line."""
        mine, record = self.life.log.lines, self.life.record
        lines = record.lines if self._killed and not mine else mine
        return any(o.event in (Event.SIGTERM_RECEIVED, Event.PRESTOP_CALLED) for o in lines)

    @property
    def _deleted(self) -> bool | None:
        """Whether its pod was deleted by then; None if no later frame says that it was not."""
        if self.pod.at is not None:
            return True
        term, shown = self._sigterm(), self.life.record.frames[-1:]
        if self.life.ended_ns is not None or (term and any(o.at.lo > term.hi for o in shown)):
            return False
        return None

    def _code_says(self, its_code: int, its_number: int) -> bool | None:
        """Whether it died of that signal, by its exit code; None if there is none."""
        code, signal = (integer_or_none(self.life.state.get(k)) for k in ("exit_code", "signal"))
        if code is None or self.life.state.get("reason") == NOT_FOUND:
            return None
        return code == its_code or signal == its_number

    @property
    def _killed(self) -> bool:
        """Whether this run of this container is the one that the trial killed past the API."""
        mine = (self.life.container, self.life.restart)
        ended_ns = self.life.ended_ns
        after = ended_ns is not None and ended_ns >= self.start.t0_ns
        return after and self.start.killed.get(self.life.record.uid) == mine

    @property
    def _by_trigger(self) -> bool:
        """Whether that alone can have ended it: nobody had deleted its pod, or told it to end."""
        return self._killed and self.pod.at is None and not self._told

    def _initiator(self) -> ending.Initiator:
        verb = str(self.start.accepted.data.get("verb", "")) if self.pod.target else None
        if self.start.killed and not self._killed:
            verb = None  # of another run, or another container, the trial asked nothing
        return ending.initiator(
            disruption=self.pod.disruption,
            pod_reason=self.pod.reason,
            deleted=self._deleted,
            verb=verb,
            told=self._told,
            ended=self.life.ended_ns is not None,
            disruption_shown=self.pod.disruption_shown,
        )

    @property
    def _outlived_its_pod(self) -> bool:
        """Whether the pod's object went before its container, as by a forced delete."""
        shown = self.life.record.frames[-1:]
        return any(o.data.get("type") == "DELETED" for o in shown)

    # --- why ----------------------------------------------------------------------------

    def _evidence(
        self, verdict: EndedBy, expected: Interval | None, ended: Interval | None
    ) -> Iterator[str]:
        log, state = self.life.log, self.life.state
        killed = self._code_says(SIGKILL_CODE, SIGKILL)
        if self.life.ended_ns is None:
            yield (
                "its pod's object was gone while it still ran: nobody tells how it ended"
                if self._outlived_its_pod
                else "its end was not seen within the observation window"
            )
        else:
            yield f"exit code {state.get('exit_code')}, reason {state.get('reason')}"
            if self._code_says(SIGTERM_CODE, SIGTERM):
                yield "that exit code is the one of a death by SIGTERM"
            if ended is None:
                yield "it had ended when its pod was first seen: nothing tells when"
            if self._is_attached and self.pod.at and killed is False:
                over = self._hook.over(ended)
                if over is not True:
                    may = "ended" if over is False else "may have ended"
                    yield f"it {may} before its preStop hook was over, and so before any SIGTERM"
        yield {
            True: "SIGTERM is in its log",
            False: "its log is complete and holds no SIGTERM: PID 1 did not pass it on"
            if verdict is EndedBy.SIGNAL_NOT_DELIVERED
            else "its log is complete and holds no SIGTERM",
            None: "it is no probe: nothing tells whether SIGTERM reached it"
            if self._is_attached
            else "its log is not known to be complete, and holds no SIGTERM",
        }[log.has_sigterm]
        if len(self.pod.graces_s) > 1:
            shown = " s, then ".join(map(str, self.pod.graces_s))
            yield f"the grace period was shortened on the way: {shown} s"
        if expected and ended and killed and ended.lo > expected.hi + NS_PER_S:
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
        for event in self.life.events:
            reason, message = str(event.data.get("reason")), str(event.data.get("message"))
            if ending.tells_of_an_end(reason, message):
                count = integer(event.data.get("count"), 1)
                yield f"event {reason} x{count}: {message}"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _since(at: Interval | None, t0_ns: int) -> tuple[int, int] | None:
    return None if at is None else bounds(at.since(t0_ns))
