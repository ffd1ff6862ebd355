"""What manifests say of one workload, in plain values, each with the line that says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_drainwatch.core.interval import NS_PER_S

# Kubernetes' own defaults (k8s.io/api/core/v1).
DEFAULT_GRACE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in which file something stands; "-" is standard input."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Action(StrEnum):
    """What a hook or a probe does."""

    EXEC = "exec"
    HTTP_GET = "httpGet"
    TCP_SOCKET = "tcpSocket"
    SLEEP = "sleep"
    GRPC = "grpc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A preStop hook."""

    action: Action
    at: Place
    command: tuple[str, ...] = ()
    # The sleep action's own number.
    sleep_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe of a container, with Kubernetes' defaults filled in."""

    action: Action
    at: Place
    path: str = ""
    period_s: int = 10
    timeout_s: int = 1
    failure_threshold: int = 3
    # A grace period of the probe's own (liveness and startup only).
    grace_s: int | None = None

    @property
    def detected_within_s(self) -> int:
        """The longest that a failure stays unseen: periods, and the last try's timeout."""
        return self.period_s * self.failure_threshold + self.timeout_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port that a container declares."""

    number: int
    protocol: str = "TCP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container that runs for as long as the pod does."""

    name: str
    at: Place
    image: str = ""
    # None: the image's own, which no manifest shows.
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    command_at: Place | None = None
    pre_stop: Hook | None = None
    readiness: Probe | None = None
    liveness: Probe | None = None
    startup: Probe | None = None
    stop_signal: str | None = None
    stop_signal_at: Place | None = None
    ports: tuple[Port, ...] = ()
    # An init container that restarts always: it ends after the ordinary ones (FACTS K6).
    native_sidecar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How pods are replaced. None: not said, so Kubernetes' default."""

    kind: str
    at: Place
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None
    min_ready_s: int = 0
    # StatefulSet: only pods from this number on are replaced.
    partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A Service that selects the workload's pods."""

    name: str
    at: Place
    kind: str = "ClusterIP"
    headless: bool = False
    local_traffic: bool = False
    publish_not_ready: bool = False
    protocols: frozenset[str] = frozenset({"TCP"})
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A PodDisruptionBudget."""

    name: str
    at: Place
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """A HorizontalPodAutoscaler of the workload."""

    name: str
    at: Place
    min_replicas: int
    max_replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fronting:
    """An Ingress before one of the workload's Services, or another object with annotations."""

    kind: str
    name: str
    at: Place
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One workload and what in the same manifests concerns it."""

    kind: str
    name: str
    at: Place
    namespace: str = ""
    # None: not said, and then 1 (a Deployment without it), or one a node (DaemonSet).
    replicas: int | None = None
    replicas_at: Place | None = None
    strategy: Strategy | None = None
    # None: not said, and then Kubernetes' 30.
    grace_said_s: int | None = None
    grace_at: Place | None = None
    containers: tuple[Container, ...] = ()
    # Whether pods of it are kept off each other's nodes: a rule that must hold.
    one_a_node: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    services: tuple[Service, ...] = ()
    budgets: tuple[Budget, ...] = ()
    autoscalers: tuple[Autoscaler, ...] = ()
    fronts: tuple[Fronting, ...] = ()

    @property
    def grace_s(self) -> int:
        """The grace period in seconds, said or Kubernetes' default."""
        return DEFAULT_GRACE_S if self.grace_said_s is None else self.grace_said_s

    @property
    def grace_ns(self) -> int:
        """The same in nanoseconds."""
        return self.grace_s * NS_PER_S

    def where(self, container: Container | None = None, at: Place | None = None) -> str:
        """ "file:line Kind/name container", as findings say it."""
        shown = f"{at or (container.at if container else self.at)} {self.kind}/{self.name}"
        return f"{shown} {container.name}" if container else shown
