"""What a trial is asked to do: frozen values, no defaults hidden elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from pytest_drainwatch.core.flow.signals import TCP_SILENT_NS, UDP_SILENT_COUNT
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.pod.kubelet import kill_after, sigterm_after

E = TypeVar("E", bound=StrEnum)

TCP_SPARSE_RATE_HZ = 5
UDP_SPARSE_RATE_HZ = 10


class ScenarioError(ValueError):
    """A scenario that cannot mean anything; the text names the field and what it accepts."""


class Behavior(StrEnum):
    """What the probe does on SIGTERM."""

    DRAIN = "drain"
    EXIT_NOW = "exit-now"
    IGNORE = "ignore"


class Readiness(StrEnum):
    """Whether a draining probe fails its readiness probe."""

    FAIL = "fail"
    KEEP = "keep"


class Trigger(StrEnum):
    """How the pod is terminated."""

    DELETE = "delete"
    EVICT = "evict"
    SCALE = "scale"


class Pid1(StrEnum):
    """Which process is PID 1 of the container, and so the one that gets SIGTERM."""

    PROBE = "probe"
    SHELL = "shell"  # `sh -c "probe; true"`: the shell has no handler, so nobody hears of it


@dataclass(frozen=True, slots=True, kw_only=True)
class PreStop:
    """The hook that the kubelet runs before it sends SIGTERM: exactly one action.

    ``sleep_s`` is the `sleep` action, which the API server refuses beyond the grace
    period. ``http_ns`` is an httpGet of the probe, which answers that much later.
    ``exec`` is a command in the container; how long it takes is its own affair, so
    ``exec_lasts_ns`` is what one expects of it and serves planning only.
    """

    sleep_s: int | None = None
    http_ns: int | None = None
    exec: tuple[str, ...] | None = None
    exec_lasts_ns: int = 0

    @property
    def lasts_ns(self) -> int:
        """How long the hook takes if nothing cuts it off."""
        if self.sleep_s is not None:
            return self.sleep_s * NS_PER_S
        return self.exec_lasts_ns if self.http_ns is None else self.http_ns

    def config(self) -> dict[str, object]:
        """As it stands in a report."""
        if self.sleep_s is not None:
            return {"sleep_seconds": self.sleep_s}
        if self.http_ns is not None:
            return {"http_get_seconds": self.http_ns / NS_PER_S}
        return {"exec": list(self.exec or ())}


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The probe and its Deployment.

    ``grace_period_s`` is terminationGracePeriodSeconds and so whole seconds;
    ``drain_ns`` is the probe's drain window. ``exit_now_reset`` decides whether
    exit-now resets each connection (SO_LINGER 0) or just exits. ``response_delay_ns``
    is how much later each TCP request is answered: what is in flight at SIGTERM.
    """

    behavior: Behavior = Behavior.DRAIN
    readiness_on_drain: Readiness = Readiness.FAIL
    drain_ns: int = 25 * NS_PER_S
    grace_period_s: int = 30
    exit_now_reset: bool = True
    replicas: int = 1
    pre_stop: PreStop | None = None
    pid1: Pid1 = Pid1.PROBE
    response_delay_ns: int = 0

    def __post_init__(self) -> None:
        # "drain" is as good as Behavior.DRAIN, and must mean the very same.
        _become(self, "behavior", Behavior)
        _become(self, "readiness_on_drain", Readiness)
        _become(self, "pid1", Pid1)
        _is("pre_stop", self.pre_stop, PreStop, None)
        _is("exit_now_reset", self.exit_now_reset, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """The connections held: how many, and how often each of them sends (Hz).

    The rates are those around the times that are known beforehand (core.plan); elsewhere
    flows send at the sparse ones, which by default are lower where the rates allow it.
    """

    tcp: int = 10
    udp: int = 10
    tcp_rate_hz: int = 20
    udp_rate_hz: int = 60
    tcp_sparse_rate_hz: int | None = None
    udp_sparse_rate_hz: int | None = None
    udp_one_way: int = 0  # further UDP flows that expect no answer; pods say what they received

    @property
    def sparse_rates_hz(self) -> tuple[int, int]:
        """The rates of TCP and UDP in sparse stretches."""
        tcp, udp = self.tcp_sparse_rate_hz, self.udp_sparse_rate_hz
        return (
            min(TCP_SPARSE_RATE_HZ, self.tcp_rate_hz) if tcp is None else tcp,
            min(UDP_SPARSE_RATE_HZ, self.udp_rate_hz) if udp is None else udp,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One trial's question. Raises :class:`ScenarioError` when it cannot be asked."""

    app: App = field(default_factory=App)
    flows: Flows = field(default_factory=Flows)
    trigger: Trigger = Trigger.DELETE
    settle_ns: int = 10 * NS_PER_S
    observe_timeout_ns: int | None = None
    name: str = ""

    def __post_init__(self) -> None:
        app, flows = self.app, self.flows
        _is("app", app, App)
        _is("flows", flows, Flows)
        _become(self, "trigger", Trigger)
        _within("grace_period_s", app.grace_period_s, 0, 3600)
        _within("drain_ns", app.drain_ns, 0, 3600 * NS_PER_S)
        _within("replicas", app.replicas, 1, 50)
        # A reply that is a second late counts as none (the flow agent's QUIET_NS).
        _within("response_delay_ns", app.response_delay_ns, 0, 900 * NS_PER_MS)
        _hook(app)
        _within("tcp flows", flows.tcp, 0, 20_000)
        _within("udp flows", flows.udp, 0, 20_000)
        _within("one-way udp flows", flows.udp_one_way, 0, 1024)  # what a probe tells apart
        _within("tcp_rate_hz", flows.tcp_rate_hz, 1, 1000)
        _within("udp_rate_hz", flows.udp_rate_hz, 1, 1000)
        sparse_tcp_hz, sparse_udp_hz = flows.sparse_rates_hz
        _within("tcp_sparse_rate_hz", sparse_tcp_hz, 1, flows.tcp_rate_hz)
        _within("udp_sparse_rate_hz", sparse_udp_hz, 1, flows.udp_rate_hz)
        _within("settle_ns", self.settle_ns, 0, 3600 * NS_PER_S)
        if self.observe_timeout_ns is not None:
            _within("observe_timeout_ns", self.observe_timeout_ns, NS_PER_S, 7200 * NS_PER_S)
        if flows.tcp + flows.udp == 0:
            raise ScenarioError("a trial needs at least one flow; tcp flows and udp flows are 0")

    @property
    def id(self) -> str:
        """The scenario's name in test ids and results: words joined with ``-``."""
        return self.name or f"{self.app.behavior}-{self.trigger}"

    @property
    def observe_ns(self) -> int:
        """How long flows are observed after the trigger, at most: 30 s beyond the latest
        instant at which the kubelet kills, by default.
        """
        if self.observe_timeout_ns is not None:
            return self.observe_timeout_ns
        return self._killed_ns + 30 * NS_PER_S

    @property
    def expected_ns(self) -> int:
        """How long settle and observation will take, about; said before the wait."""
        app = self.app
        term = sigterm_after(app.grace_period_s, self._hook_ns)
        ends = {Behavior.DRAIN: term + app.drain_ns, Behavior.EXIT_NOW: term}
        end = min(ends.get(app.behavior, self._killed_ns), self._killed_ns)
        if app.pid1 is Pid1.SHELL:
            end = self._killed_ns
        return self.settle_ns + min(end + 4 * NS_PER_S, self.observe_ns)

    @property
    def _hook_ns(self) -> int:
        return self.app.pre_stop.lasts_ns if self.app.pre_stop else 0

    @property
    def _killed_ns(self) -> int:
        return kill_after(self.app.grace_period_s, self._hook_ns)

    def config(self) -> dict[str, object]:
        """Every value that shapes a trial, under the ancestor's names where it has one."""
        app, flows = self.app, self.flows
        return {
            "tcp_flows": flows.tcp,
            "udp_flows": flows.udp,
            "udp_one_way_flows": flows.udp_one_way,
            "tcp_rate_hz": flows.tcp_rate_hz,
            "udp_rate_hz": flows.udp_rate_hz,
            "tcp_sparse_rate_hz": flows.sparse_rates_hz[0],
            "udp_sparse_rate_hz": flows.sparse_rates_hz[1],
            "grace_period_seconds": app.grace_period_s,
            "drain_behavior": str(app.behavior),
            "drain_max_seconds": app.drain_ns / NS_PER_S,
            "readiness_on_drain": str(app.readiness_on_drain),
            "exit_now_reset": app.exit_now_reset,
            "replicas": app.replicas,
            "pre_stop": app.pre_stop.config() if app.pre_stop else None,
            "pid1": str(app.pid1),
            "response_delay_ms": app.response_delay_ns / NS_PER_MS,
            "trigger": str(self.trigger),
            "workload": "deploy",
            "settle_seconds": self.settle_ns / NS_PER_S,
            "observe_timeout_seconds": self.observe_ns / NS_PER_S,
            "flow_timeout_seconds": TCP_SILENT_NS / NS_PER_S,
            "udp_silence_datagrams": UDP_SILENT_COUNT,
        }

    @property
    def flags(self) -> tuple[str, ...]:
        """What is unusual enough to be said in header and report."""
        app = self.app
        found = []
        left_ns = self._killed_ns - sigterm_after(app.grace_period_s, self._hook_ns)
        if app.pre_stop and app.pre_stop.lasts_ns >= app.grace_period_s * NS_PER_S:
            found.append(
                f"preStop ({app.pre_stop.lasts_ns / NS_PER_S:g} s) >= grace period "
                f"({app.grace_period_s} s): SIGTERM comes at the end of the grace period and the "
                f"app gets {left_ns / NS_PER_S:g} s"
            )
        if app.behavior is Behavior.DRAIN and app.drain_ns >= left_ns:
            given = f"grace period ({app.grace_period_s} s)"
            if app.pre_stop:
                given = f"what {given} and preStop leave after SIGTERM ({left_ns / NS_PER_S:g} s)"
            found.append(
                f"drain window ({app.drain_ns / NS_PER_S:g} s) >= {given}: "
                "the kubelet kills the pod before it has drained"
            )
        if app.pid1 is Pid1.SHELL:
            found.append("a shell is PID 1: it does not pass SIGTERM on to the probe")
        return tuple(found)


def matrix(
    *,
    behavior: Iterable[str] = tuple(Behavior),
    trigger: Iterable[str] = tuple(Trigger),
    base: Scenario | None = None,
) -> list[Scenario]:
    """Every combination of the axes over ``base``, in the order given.

    Meant for ``@pytest.mark.parametrize("scenario", matrix(...))``; the ids come
    from :attr:`Scenario.id`.
    """
    base = base or Scenario()
    return list(_combine(base, tuple(behavior), tuple(trigger)))


def _combine(
    base: Scenario, behaviors: tuple[str, ...], triggers: tuple[str, ...]
) -> Iterator[Scenario]:
    for behavior, trigger in itertools.product(behaviors, triggers):
        app = replace(base.app, behavior=_member("behavior", behavior, Behavior))
        yield replace(base, app=app, trigger=_member("trigger", trigger, Trigger))


def _hook(app: App) -> None:
    hook = app.pre_stop
    if hook is None:
        return
    given = [
        name for name in ("sleep_s", "http_ns", "exec") if getattr(hook, name) not in (None, ())
    ]
    if len(given) != 1:
        raise ScenarioError(
            f"pre_stop has {', '.join(given) or 'no action'}, expected exactly one of: "
            "sleep_s, http_ns, exec"
        )
    if hook.sleep_s is not None:
        # The API server's own rule, said before a namespace is made for it.
        _within("pre_stop.sleep_s", hook.sleep_s, 0, app.grace_period_s)
    if hook.http_ns is not None:
        _within("pre_stop.http_ns", hook.http_ns, 0, 3600 * NS_PER_S)
    # A text is a sequence of texts as well: "sleep 3" would become seven words.
    words = hook.exec if isinstance(hook.exec, tuple | list) else ()
    if hook.exec is not None and not (words and all(isinstance(w, str) and w for w in words)):
        raise ScenarioError(
            f"pre_stop.exec is {hook.exec!r}, expected a command's words: ('sleep', '3')"
        )
    _within("pre_stop.exec_lasts_ns", hook.exec_lasts_ns, 0, 7200 * NS_PER_S)


def _member(field_name: str, value: str, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        accepted = ", ".join(kind)
        raise ScenarioError(f"{field_name} is {value!r}, expected one of: {accepted}") from None


def _become(asked: App | Scenario, field_name: str, kind: type[StrEnum]) -> None:
    object.__setattr__(asked, field_name, _member(field_name, getattr(asked, field_name), kind))


def _is(field_name: str, value: object, *kinds: type | None) -> None:
    if not any(value is None if kind is None else isinstance(value, kind) for kind in kinds):
        names = " or ".join("None" if kind is None else kind.__name__ for kind in kinds)
        raise ScenarioError(f"{field_name} is {value!r}, expected {names}")


def _within(field_name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ScenarioError(f"{field_name} is {value!r}, expected a whole number {low}..{high}")
