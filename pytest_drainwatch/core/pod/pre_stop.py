"""What a recording shows of one container's preStop hook: how it fared, and for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Interval
from pytest_drainwatch.core.jsonvalue import integer_or_none, number, objects
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.pod import ending, kubelet
from pytest_drainwatch.core.pod.deletion import Deletion
from pytest_drainwatch.core.pod.ending import PreStopOutcome

HOOK, STOP_SIGNAL = "pre_stop", "stop_signal"
NOT_SAID = object()
NO_TIME = Interval.point(0)


def containers_of(seen: Iterable[Observation]) -> Mapping[str, Mapping[str, object]] | None:
    """The containers of the pods of a workload of the user's by name: each has its own hook.

    None: the scenario's is that of the only container.
    """
    found = next((o for o in seen if o.event is Event.WORKLOAD_FOUND), None)
    pod = found.data.get("pod") if found is not None else None
    if not isinstance(pod, Mapping):
        return None
    return {str(each.get("name")): each for each in objects(pod.get("containers"))}


def config_of(
    container: str,
    config: Mapping[str, object],
    containers: Mapping[str, Mapping[str, object]] | None,
) -> Mapping[str, object]:
    """The configuration with the hook and stop signal of that container; of one that the workload
    does not name, which somebody put beside it, the hook is not known.
    """
    if containers is None:
        return config
    mine = containers.get(container)
    own = {} if mine is None else {name: mine.get(name) for name in (HOOK, STOP_SIGNAL)}
    return {**{name: value for name, value in config.items() if name != HOOK}, **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreStopRun:
    """The hook of one run of a container; ``config`` is what the scenario asked for.

    ``term`` and ``answered`` are when the probe logged SIGTERM and its answer to an
    httpGet hook, ``events`` what the kubelet said of the container.
    """

    config: Mapping[str, object]
    deletion: Deletion
    term: Interval | None
    answered: Interval | None
    events: Iterable[Observation]

    @property
    def asked(self) -> Mapping[str, object] | None:
        """The hook as it stands in the scenario."""
        hook = self.config.get(HOOK)
        return hook if isinstance(hook, Mapping) else None

    @property
    def without(self) -> bool:
        """Whether the recording says that there is no hook; an older one may not say."""
        return self.config.get(HOOK, NOT_SAID) is None

    @property
    def until_sigterm(self) -> Interval | None:
        """From the deletion to SIGTERM in the log: both the kubelet and the app may be late."""
        if self.term is None or self.deletion.at is None:
            return None
        return self.term - self.deletion.at

    @property
    def outcome(self) -> PreStopOutcome | None:
        """What became of it; None where that cannot be told."""
        if self.asked is None:
            return PreStopOutcome.NONE if self.without else None
        grace_s, until = self.deletion.grace_s, self.until_sigterm
        return ending.pre_stop_outcome(
            ending.Hook(
                grace_ns=None if grace_s is None else max(grace_s, 1) * NS_PER_S,
                lasts_ns=self._lasts_ns,
                sleeps=self._sleep_ns is not None,
                until_sigterm_ns=None if until is None else until.hi,
                failed=self._failed,
                answered=self._answered_in_time,
            )
        )

    def ran(self, grace_s: int) -> Interval:
        """How long it held SIGTERM back, as far as that is certain."""
        if self.without:
            return NO_TIME
        most = longest = max(grace_s, 1) * NS_PER_S
        least, outcome = 0, self.outcome
        if outcome is PreStopOutcome.CUT_OFF:
            least = longest
        elif outcome is PreStopOutcome.COMPLETED:
            least = self._lasts_ns or 0
        elif outcome is None and self._sleep_ns is not None:
            least = self._sleep_ns
        if self._sleep_ns is not None:
            most = min(most, self._sleep_ns)
        if self.until_sigterm is not None:
            most = min(most, max(0, self.until_sigterm.hi))
        # One that had less time than it takes went wrong somehow, no matter how soon.
        return Interval(least if least <= most else 0, most)

    def over(self, ended: Interval | None) -> bool | None:
        """Whether SIGTERM was due when the container ended; None: that may be, or not.

        A sleep ends no container. Another hook may: `nginx -s quit` does.
        """
        if self.without:
            return True
        deletion, grace_s = self.deletion.at, self.deletion.grace_s
        if deletion is None or grace_s is None or ended is None:
            return None
        ran = self.ran(grace_s)
        if self._sleep_ns is not None:
            return ended.hi >= deletion.lo + kubelet.sigterm_after(grace_s, ran.lo)
        cut_off = ended.lo >= deletion.hi + kubelet.sigterm_after(grace_s, ran.hi)
        return True if cut_off else None

    def waited(self) -> Interval | None:
        """From its beginning to SIGTERM in the log."""
        until, grace_s = self.until_sigterm, self.deletion.grace_s
        if until is None or until.hi < 0 or grace_s is None or self.asked is None:
            return None
        return Interval(self.ran(grace_s).lo, until.hi)

    @property
    def _sleep_ns(self) -> int | None:
        seconds = integer_or_none((self.asked or {}).get("sleep_seconds"))
        return None if seconds is None else seconds * NS_PER_S

    @property
    def _lasts_ns(self) -> int | None:
        """How long it takes at least if nothing goes wrong; a command's nobody knows."""
        asked_s = number((self.asked or {}).get("http_get_seconds"))
        if asked_s is not None and 0 <= asked_s < NS_PER_S:
            return int(asked_s * 1000) * NS_PER_MS  # the probe is asked in milliseconds
        return self._sleep_ns

    @property
    def _answered_in_time(self) -> bool:
        """Before SIGTERM, and when no kubelet can have given up waiting yet."""
        answered, term, deletion = self.answered, self.term, self.deletion
        if answered is None or term is None or answered.hi > term.hi:
            return False
        if deletion.at is None or not deletion.graces_s:
            return True
        return answered.hi < deletion.at.lo + max(min(deletion.graces_s), 1) * NS_PER_S

    @property
    def _failed(self) -> bool | None:
        """None unless the kubelet's own events of this pod were read."""
        told = {str(o.data.get("reason")) for o in self.events}
        if "FailedPreStopHook" in told:
            return True
        return False if "Killing" in told else None
