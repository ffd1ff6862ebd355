"""The command line that simulates given inputs: what differs from the defaults, and no more."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.simulation.inputs import Inputs

COMMAND = "drainwatch simulate"
# By the input's name, in the order in which they are written. A flag that is a switch is written
# where the input is not what it is by default.
FLAGS = {
    "pre_stop_ns": "--pre-stop",
    "grace_period_s": "--grace",
    "behavior": "--on-sigterm",
    "drain_ns": "--drain",
    "close_idle": "--keep-idle-open",
    "nodes": "--nodes",
    "propagation_ns": "--propagation",
    "load_balancer_ns": "--load-balancer",
    "longest_ns": "--longest",
    "keepalive": "--no-keepalive",
    "client_retries": "--retries",
    "slow_ns": "--slow",
    "kubelet_ns": "--kubelet-delay",
    "handler_ns": "--handler-delay",
    "kill_ns": "--kill-delay",
}


def command(inputs: Inputs) -> str:
    """To be typed into a shell as it is."""
    return " ".join([COMMAND, *_differing(inputs)])


def _differing(inputs: Inputs) -> Iterator[str]:
    usual = Inputs()
    for name, flag in FLAGS.items():
        value = getattr(inputs, name)
        if value == getattr(usual, name):
            continue
        if isinstance(value, bool):
            yield flag
        elif name.endswith("_ns"):
            yield f"{flag} {exact(value)}s"
        else:
            yield f"{flag} {value}"


def exact(ns: int) -> str:
    """A duration in seconds without a digit lost: ``2.5``, ``0.000000001``."""
    whole, rest = divmod(ns, NS_PER_S)
    return f"{whole}.{rest:09}".rstrip("0").rstrip(".")
