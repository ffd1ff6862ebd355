"""What a trial is asked to do: frozen values, no defaults hidden elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.signals import TCP_SILENT_NS, UDP_SILENT_COUNT

E = TypeVar("E", bound=StrEnum)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The probe and its Deployment.

    ``grace_period_s`` is terminationGracePeriodSeconds and so whole seconds;
    ``drain_ns`` is the probe's drain window. ``exit_now_reset`` decides whether
    exit-now resets each connection (SO_LINGER 0) or just exits.
    """

    behavior: Behavior = Behavior.DRAIN
    readiness_on_drain: Readiness = Readiness.FAIL
    drain_ns: int = 25 * NS_PER_S
    grace_period_s: int = 30
    exit_now_reset: bool = True
    replicas: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """The connections held: how many, and how often each of them sends (Hz)."""

    tcp: int = 10
    udp: int = 10
    tcp_rate_hz: int = 20
    udp_rate_hz: int = 60


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
        _member("behavior", app.behavior, Behavior)
        _member("readiness_on_drain", app.readiness_on_drain, Readiness)
        _member("trigger", self.trigger, Trigger)
        _within("grace_period_s", app.grace_period_s, 0, 3600)
        _within("drain_ns", app.drain_ns, 0, 3600 * NS_PER_S)
        _within("replicas", app.replicas, 1, 50)
        _within("tcp flows", flows.tcp, 0, 20_000)
        _within("udp flows", flows.udp, 0, 20_000)
        _within("tcp_rate_hz", flows.tcp_rate_hz, 1, 1000)
        _within("udp_rate_hz", flows.udp_rate_hz, 1, 1000)
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
        """How long flows are observed after the trigger, at most: grace + 30 s by default."""
        if self.observe_timeout_ns is not None:
            return self.observe_timeout_ns
        return (self.app.grace_period_s + 30) * NS_PER_S

    @property
    def expected_ns(self) -> int:
        """How long settle and observation will take, about; said before the wait."""
        app = self.app
        end = {
            Behavior.DRAIN: min(app.drain_ns, app.grace_period_s * NS_PER_S),
            Behavior.EXIT_NOW: 0,
            Behavior.IGNORE: app.grace_period_s * NS_PER_S,
        }[app.behavior]
        return self.settle_ns + min(end + 4 * NS_PER_S, self.observe_ns)

    def config(self) -> dict[str, object]:
        """Every value that shapes a trial, under the ancestor's names where it has one."""
        app, flows = self.app, self.flows
        return {
            "tcp_flows": flows.tcp,
            "udp_flows": flows.udp,
            "tcp_rate_hz": flows.tcp_rate_hz,
            "udp_rate_hz": flows.udp_rate_hz,
            "grace_period_seconds": app.grace_period_s,
            "drain_behavior": str(app.behavior),
            "drain_max_seconds": app.drain_ns / NS_PER_S,
            "readiness_on_drain": str(app.readiness_on_drain),
            "exit_now_reset": app.exit_now_reset,
            "replicas": app.replicas,
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
        if app.behavior is Behavior.DRAIN and app.drain_ns >= app.grace_period_s * NS_PER_S:
            return (
                f"drain window ({app.drain_ns / NS_PER_S:g} s) >= grace period "
                f"({app.grace_period_s} s): the kubelet kills the pod before it has drained",
            )
        return ()


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


def _member(field_name: str, value: str, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        accepted = ", ".join(kind)
        raise ScenarioError(f"{field_name} is {value!r}, expected one of: {accepted}") from None


def _within(field_name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ScenarioError(f"{field_name} is {value!r}, expected a whole number {low}..{high}")
