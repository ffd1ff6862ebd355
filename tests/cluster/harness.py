"""Parts of a trial by hand, for tests that interfere with it."""

from __future__ import annotations

from collections.abc import Callable

from pytest_drainwatch import App, Flows, Scenario, Trial
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trial import Held

QUICK = Scenario(
    app=App(grace_period_s=3, drain_ns=1 * NS_PER_S),
    flows=Flows(tcp=2, udp=2),
    settle_ns=NS_PER_S,
)


class Silent:
    """Progress that nobody watches."""

    def line(self, text: str) -> None: ...

    def phase(self, name: str, expected_ns: int | None = None) -> None: ...

    def status(self, text: str) -> None: ...

    def follow(self, trial: Stage) -> None: ...

    def rest(self) -> None: ...


def never(*, failed: bool) -> bool:
    return False


def measure_stage(stage: Stage, before: Callable[[Held], None] | None = None) -> Trial:
    with conductor.deploy(stage) as probe, conductor.hold(probe) as held:
        if before is not None:
            before(held)
        return conductor.measure(held)
