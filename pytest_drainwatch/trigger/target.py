"""What a trigger acts on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_drainwatch.core.scenario import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod by identity. ``node`` is the one that it is bound to; None: not known."""

    name: str
    uid: str
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The controller that keeps pods alive."""

    kind: Controller
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What kills one container of a pod from its node, found before the trigger.

    ``restarts`` is the container's restart count of before. ``send`` makes one system call,
    and raises what its cluster raises if the container is gone.
    """

    container: str
    restarts: int
    send: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The pods of a trial, and what keeps them alive.

    ``pod`` is the one that the flows lead to. ``chosen`` are those that a delete, an
    eviction or a kill ends, ``pod`` the first of them. ``controller`` is None for bare pods.
    ``ours``: this trial made the workload; what is not ours gets its scale back.
    ``own_namespace``: it made the namespace as well, and may delete it. ``kills``: by pod
    uid, for ``container-kill`` alone. ``spare``: the labels of bare pods that an evacuation
    leaves alone, the client's.
    """

    namespace: str
    pod: Pod
    chosen: tuple[Pod, ...]
    pods: tuple[Pod, ...]
    controller: Owner | None
    ours: bool = True
    own_namespace: bool = True
    kills: Mapping[str, Kill] = field(default_factory=dict)
    spare: Mapping[str, str] = field(default_factory=dict)

    @property
    def node(self) -> str | None:
        """The node of the pod that the flows lead to: it is the one that is evacuated."""
        return self.pod.node

    @property
    def beside(self) -> tuple[Pod, ...]:
        """The workload's pods on that node, ``pod`` the first of them."""
        on_it = (pod for pod in self.pods if pod != self.pod and pod.node == self.node)
        return (self.pod, *on_it)
