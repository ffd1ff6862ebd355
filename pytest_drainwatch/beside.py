"""Cluster starts beside a trial: a start never waits for one, so a trial says if it had one."""

from __future__ import annotations

import time

from pytest_drainwatch.cluster.embedded import starts
from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.stage import Stage

LOOK_NS = 1 * NS_PER_S  # a start takes longer than that


class Beside:
    """Records once if a cluster starts on the machine that a trial measures on.

    A cluster that is not embedded is elsewhere, and nothing is looked for.
    """

    def __init__(self, stage: Stage) -> None:
        self._record = stage.recorder
        self._over = stage.cluster.provider != "embedded"
        self._looked_ns = time.monotonic_ns()

    def look(self) -> None:
        """Look, at most once in LOOK_NS."""
        now_ns = time.monotonic_ns()
        if self._over or now_ns - self._looked_ns < LOOK_NS:
            return
        since_ns, self._looked_ns = self._looked_ns, now_ns
        if seen := starts.under_way():
            self._over = True
            self._record(
                Observation(
                    source=Source.ORCHESTRATOR,
                    event=Event.CLUSTER_START_BESIDE,
                    at=Interval(since_ns, now_ns),
                    data={"starts": len(seen)},
                )
            )
