"""What the simulator's page shows before anybody touches it, as data: inputs, presets, fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.command import FLAGS
from pytest_drainwatch.core.simulation.document import inputs_as_json
from pytest_drainwatch.core.simulation.inputs import (
    LONGEST_GRACE_S,
    LONGEST_NS,
    MOST_NODES,
    MOST_REQUESTS,
    MOST_RETRIES,
    SHORTEST_NS,
    Inputs,
)
from pytest_drainwatch.core.simulation.presets import PRESETS
from pytest_drainwatch.core.simulation.run import simulate
from pytest_drainwatch.core.simulation.says import says

TITLE = "The end of a pod, simulated"
MARKED = "A model predicts this; nothing of it was measured."
LEAD = (
    "One pod is deleted while clients go on sending. Change an input and see which requests fail, "
    "and why: the kubelet ends the pod and, beside it, whatever routes to it learns of that later."
)


class Field(TypedDict):
    """One input on the page.

    ``least``, ``most``, ``slider_most``, ``step`` and ``usual`` are in the input's own unit
    (nanoseconds of a duration). ``optional``: there may be none, which is null. ``rare``: few
    people change it, so that it is folded away.
    """

    name: str
    label: str
    about: str
    kind: Literal["duration", "whole", "choice", "tick"]
    unit: NotRequired[str]
    spoken: NotRequired[str]
    least: NotRequired[int]
    most: NotRequired[int]
    slider_most: NotRequired[int]
    step: NotRequired[int]
    usual: NotRequired[int]
    optional: NotRequired[bool]
    choices: NotRequired[list[tuple[str, str]]]
    rare: NotRequired[bool]


class Preset(TypedDict):
    """Inputs with a name, and what is to be seen with them."""

    label: str
    about: str
    inputs: dict[str, Any]


class SimulationPage(TypedDict):
    """All that the page's script reads; ``says`` is what a reader without scripts gets."""

    title: str
    made_by: str
    marked: str
    lead: str
    inputs: dict[str, Any]
    usual: dict[str, Any]
    presets: list[Preset]
    fields: list[Field]
    flags: Mapping[str, str]
    most_requests: int
    limits: list[str]
    says: list[str]


def _duration(
    name: str,
    label: str,
    slider_s: int,
    about: str,
    *,
    least: int = 0,
    default: int | None = None,
    rare: bool = False,
) -> Field:
    """``default`` is that of an input that may be none: what it is first, once there is one."""
    return {
        "name": name,
        "label": label,
        "about": about,
        "kind": "duration",
        "unit": "s",
        "spoken": "seconds",
        "least": least,
        "most": LONGEST_NS,
        "slider_most": slider_s * NS_PER_S,
        "step": NS_PER_S,
        "usual": getattr(USUAL, name) if default is None else default,
        "optional": default is not None,
        "rare": rare,
    }


def _whole(
    name: str, label: str, within: tuple[int, int], slider: int, about: str, unit: str = ""
) -> Field:
    least, most = within
    return {
        "name": name,
        "label": label,
        "about": about,
        "kind": "whole",
        "unit": unit,
        "spoken": "seconds" if unit else "",
        "least": least,
        "most": most,
        "slider_most": slider,
        "step": 1,
        "usual": getattr(USUAL, name),
    }


def _tick(name: str, label: str, about: str) -> Field:
    return {"name": name, "label": label, "about": about, "kind": "tick"}


USUAL = Inputs()
FIELDS: tuple[Field, ...] = (
    _duration("pre_stop_ns", "preStop hook", 60, "How long the hook takes; 0: there is none."),
    _whole(
        "grace_period_s",
        "Grace period",
        (0, LONGEST_GRACE_S),
        120,
        "terminationGracePeriodSeconds: from the deletion to SIGKILL, the hook included.",
        unit="s",
    ),
    {
        "name": "behavior",
        "label": "On SIGTERM the app",
        "about": "What the app does when it is told to end.",
        "kind": "choice",
        "choices": [
            (Behavior.DRAIN, "drains"),
            (Behavior.EXIT_NOW, "exits at once"),
            (Behavior.IGNORE, "ignores it"),
        ],
    },
    _duration("drain_ns", "Drain", 60, "How long the app lets work finish before it cuts it."),
    _tick(
        "close_idle",
        "Drain closes idle keep-alive connections",
        "If not, a client goes on using its old connection until the process ends.",
    ),
    _duration(
        "propagation_ns",
        "Slowest node stops after",
        30,
        "From the deletion until the last kube-proxy sends no new connection here.",
    ),
    _whole("nodes", "Nodes", (1, MOST_NODES), 10, "kube-proxies, one after the other."),
    _duration(
        "load_balancer_ns",
        "Load balancer stops after",
        60,
        "Deregistration delay of an external load balancer; not ticked: there is none.",
        default=30 * NS_PER_S,
    ),
    _duration(
        "longest_ns",
        "Longest request",
        60,
        "Requests take 1, 10, 25 and 100 percent of it, in turn.",
        least=SHORTEST_NS,
    ),
    _tick("keepalive", "A pooled keep-alive client", "It opened its connection earlier."),
    _whole(
        "client_retries",
        "Retries of a client",
        (0, MOST_RETRIES),
        MOST_RETRIES,
        "After a refusal or a reset, each a second later. What was cut off is not tried again.",
    ),
    _duration(
        "slow_ns", "Slow is above", 60, "An answer that took longer counts as slow.", rare=True
    ),
    _duration("kubelet_ns", "Kubelet begins after", 10, "From the deletion.", rare=True),
    _duration("handler_ns", "App acts on SIGTERM after", 10, "From SIGTERM.", rare=True),
    _duration(
        "kill_ns", "Gone after SIGKILL in", 10, "From SIGKILL to the process's end.", rare=True
    ),
)
LIMITS = (
    "Propagation in a cluster is a distribution that grows with its size and the API server's "
    "load; here every node has one fixed time.",
    "Readiness probes, sidecars and their order, and further replicas are left out: whoever finds "
    "another pod is answered there.",
    "Each source opens one connection a second. There is no capacity: nobody waits for anybody.",
    "A client that retries does so after a second, and never after it was cut off mid-flight.",
    "A client that notices the end of an idle connection opens another one and loses nothing; "
    "the pooled client here does not notice.",
    "Servers handle keep-alive in many ways; here a busy connection is closed after its answer, "
    "and an idle one at once or not at all. HTTP/2, gRPC and WebSocket are not modelled.",
    "Use it to reason about order and budgets, then measure your own: drainwatch attach, or a "
    "trial as a test.",
)


def simulation_data(inputs: Inputs, made_by: str) -> SimulationPage:
    """The page with these inputs set."""
    return {
        "title": TITLE,
        "made_by": made_by,
        "marked": MARKED,
        "lead": LEAD,
        "inputs": inputs_as_json(inputs),
        "usual": inputs_as_json(USUAL),
        "presets": [
            {"label": one.label, "about": one.about, "inputs": inputs_as_json(one.inputs)}
            for one in PRESETS
        ],
        "fields": list(FIELDS),
        "flags": FLAGS,
        "most_requests": MOST_REQUESTS,
        "limits": list(LIMITS),
        "says": list(says(simulate(inputs))),
    }
