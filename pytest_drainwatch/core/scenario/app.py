"""The workload that a trial terminates: the probe, its hook, and what it does on SIGTERM."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario.values import (
    ScenarioError,
    become,
    check_kind,
    check_within,
)


class Behavior(StrEnum):
    """What the probe does on SIGTERM."""

    DRAIN = "drain"
    EXIT_NOW = "exit-now"
    IGNORE = "ignore"


class Readiness(StrEnum):
    """Whether a draining probe fails its readiness probe."""

    FAIL = "fail"
    KEEP = "keep"


class Accept(StrEnum):
    """Whether a draining probe goes on accepting new TCP connections."""

    CLOSE = "close"
    KEEP = "keep"


class Pid1(StrEnum):
    """Which process is PID 1 of the container, and so the one that gets SIGTERM."""

    PROBE = "probe"
    SHELL = "shell"  # `sh -c "probe; true"`: the shell has no handler, so nobody hears of it


class Controller(StrEnum):
    """What keeps the probe's pods alive."""

    DEPLOYMENT = "deployment"
    STATEFUL_SET = "statefulset"
    DAEMON_SET = "daemonset"


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
    ``ready_after_s`` is how long a new pod is not yet Ready: the readiness probe's
    initialDelaySeconds. ``spread_over_nodes`` keeps the numbers of pods on any two nodes that
    take pods within one of each other (topologySpreadConstraints).
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
    accept_on_drain: Accept = Accept.CLOSE
    controller: Controller = Controller.DEPLOYMENT
    ready_after_s: int = 0
    spread_over_nodes: bool = False

    def __post_init__(self) -> None:
        # "drain" is as good as Behavior.DRAIN, and must mean the very same.
        become(self, "behavior", Behavior)
        become(self, "readiness_on_drain", Readiness)
        become(self, "accept_on_drain", Accept)
        become(self, "pid1", Pid1)
        become(self, "controller", Controller)
        check_kind("pre_stop", self.pre_stop, PreStop, None)
        check_kind("exit_now_reset", self.exit_now_reset, bool)
        check_kind("spread_over_nodes", self.spread_over_nodes, bool)

    def unusual(self) -> dict[str, object]:
        """What a report says of it only where it is asked for."""
        return {"spread_over_nodes": True} if self.spread_over_nodes else {}

    def check(self) -> None:
        """Refuse values that cannot be, alone or together. Raises :class:`ScenarioError`."""
        check_within("grace_period_s", self.grace_period_s, 0, 3600)
        check_within("drain_ns", self.drain_ns, 0, 3600 * NS_PER_S)
        check_within("replicas", self.replicas, 1, 50)
        check_within("ready_after_s", self.ready_after_s, 0, 60)
        # A reply that is a second late counts as none (the flow agent's QUIET_NS).
        check_within("response_delay_ns", self.response_delay_ns, 0, 900 * NS_PER_MS)
        _check_hook(self)
        if self.accept_on_drain is Accept.KEEP and self.behavior is not Behavior.DRAIN:
            raise ScenarioError(
                f"accept_on_drain is 'keep' and behavior {str(self.behavior)!r}: only a draining "
                "app decides about new connections; expected behavior 'drain'"
            )


def _check_hook(app: App) -> None:
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
        check_within("pre_stop.sleep_s", hook.sleep_s, 0, app.grace_period_s)
    if hook.http_ns is not None:
        check_within("pre_stop.http_ns", hook.http_ns, 0, 3600 * NS_PER_S)
    # A text is a sequence of texts as well: "sleep 3" would become seven words.
    words = hook.exec if isinstance(hook.exec, tuple | list) else ()
    if hook.exec is not None and not (words and all(isinstance(w, str) and w for w in words)):
        raise ScenarioError(
            f"pre_stop.exec is {hook.exec!r}, expected a command's words: ('sleep', '3')"
        )
    check_within("pre_stop.exec_lasts_ns", hook.exec_lasts_ns, 0, 7200 * NS_PER_S)
