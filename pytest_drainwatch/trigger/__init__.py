"""Ways to terminate pods, and the times of asking and of acceptance.

A call that the API accepted is sent exactly once. A refusal (429 by a disruption
budget) is recorded as blocked and asked again no sooner than the server says, and
never sooner than after a second. Of several calls only the first may be asked again:
once a pod was told to end, t = 0 has passed, and the others must follow at once.

    with Armed(api, verb, target, record) as armed:  # at the end: what it changed is put back
        accepted = armed.fire(timeout_s=...)
        ...  # observe
"""

from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.trigger.armed import Accepted, Armed
from pytest_drainwatch.trigger.asking import TriggerFailed
from pytest_drainwatch.trigger.evacuation import neighbours
from pytest_drainwatch.trigger.obstacle import Obstacle
from pytest_drainwatch.trigger.obstacle import find as find_obstacle
from pytest_drainwatch.trigger.target import Kill, Owner, Pod, Target

# Those that ask for evictions, which disruption budgets may refuse.
EVICTING = frozenset({Trigger.EVICT, Trigger.EVACUATE_NODE})

__all__ = [
    "EVICTING",
    "Accepted",
    "Armed",
    "Kill",
    "Obstacle",
    "Owner",
    "Pod",
    "Target",
    "TriggerFailed",
    "find_obstacle",
    "neighbours",
]
