"""What a trigger acts on."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.scenario import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod by identity."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The pods of a trial, and what keeps them alive.

    ``pod`` is the one that the flows lead to. ``chosen`` are those that a delete or an
    eviction ends, ``pod`` the first of them. ``workload`` is their controller's name.
    """

    namespace: str
    pod: Pod
    chosen: tuple[Pod, ...]
    pods: tuple[Pod, ...]
    controller: Controller
    workload: str
