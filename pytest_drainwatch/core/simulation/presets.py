"""Inputs worth looking at, each with what it shows."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.inputs import Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A name to type, a label to click, what is to be seen, and the inputs."""

    name: str
    label: str
    about: str
    inputs: Inputs


PRESETS = (
    Preset(
        name="defaults",
        label="Defaults",
        about="preStop outlasts the slowest route, and the grace period the drain: nothing fails.",
        inputs=Inputs(),
    ),
    Preset(
        name="no-pre-stop",
        label="preStop 0",
        about="The listener closes while every route is still open: new connections are refused.",
        inputs=Inputs(pre_stop_ns=0),
    ),
    Preset(
        name="pre-stop-5",
        label="preStop 5 s",
        about="Only the slower sources still send when the listener closes.",
        inputs=Inputs(pre_stop_ns=5 * NS_PER_S),
    ),
    Preset(
        name="pre-stop-8",
        label="preStop 8 s",
        about="The slowest route ends just before SIGTERM: no refusals, and nothing to spare.",
        inputs=Inputs(pre_stop_ns=8 * NS_PER_S),
    ),
    Preset(
        name="grace-20",
        label="Grace 20 s",
        about="SIGKILL cuts the drain: the longest requests fail mid-flight.",
        inputs=Inputs(grace_period_s=20),
    ),
    Preset(
        name="exit-now",
        label="Exit immediately",
        about="In-flight work is cut at SIGTERM, however generous the grace period is.",
        inputs=Inputs(behavior=Behavior.EXIT_NOW),
    ),
    Preset(
        name="ignore",
        label="Ignore SIGTERM",
        about="The process runs until SIGKILL, and takes a client's connection with it.",
        inputs=Inputs(behavior=Behavior.IGNORE),
    ),
    Preset(
        name="keep-idle-open",
        label="Keep-alive stays open",
        about="Idle connections are not closed: the pooled client is reset once.",
        inputs=Inputs(close_idle=False),
    ),
    Preset(
        name="load-balancer",
        label="Load balancer: puzzle",
        about="It sends for 30 s. Which preStop and which grace period bring failures to zero?",
        inputs=Inputs(load_balancer_ns=30 * NS_PER_S),
    ),
    Preset(
        name="load-balancer-solved",
        label="Load balancer: solved",
        about="preStop outlasts the load balancer, and the grace period holds the drain as well.",
        inputs=Inputs(load_balancer_ns=30 * NS_PER_S, pre_stop_ns=30 * NS_PER_S, grace_period_s=60),
    ),
)
