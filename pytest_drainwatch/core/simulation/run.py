"""A simulated run: the pod's life, the routes to it, and every request with its fate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.life import Life, life, shutdown
from pytest_drainwatch.core.simulation.requests import Outcome, Request, idle_ns, requests
from pytest_drainwatch.core.simulation.routes import Route, routes, sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What the model gives for these inputs; the same inputs give the same."""

    inputs: Inputs
    life: Life
    routes: tuple[Route, ...]
    requests: tuple[Request, ...]

    @property
    def totals(self) -> Mapping[Outcome, int]:
        """How many requests had each outcome; together they are all requests."""
        counted = dict.fromkeys(Outcome, 0)
        for request in self.requests:
            counted[request.outcome] += 1
        return counted

    @property
    def failed(self) -> tuple[Request, ...]:
        """The requests that got no answer."""
        return tuple(request for request in self.requests if request.failed)


def simulate(inputs: Inputs) -> Simulated:
    """Everything that happens, from the deletion to the last request."""
    fixed = shutdown(inputs)
    ways = routes(inputs)
    asked = [(route, one) for route in ways for one in sent(route, inputs.longest_ns)]
    lived = life(inputs, fixed, idle_ns(inputs, fixed, [one for _, one in asked]))
    return Simulated(
        inputs=inputs,
        life=lived,
        routes=ways,
        requests=requests(inputs, fixed, lived, asked),
    )
