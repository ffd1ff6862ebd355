"""What the agent's own loop does by the plan: how often it looks, and at which priority."""

from __future__ import annotations

import asyncio
from time import monotonic_ns

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.flows import limits
from pytest_drainwatch.flows.config import AgentConfig
from pytest_drainwatch.flows.density import Densities
from pytest_drainwatch.flows.selector import DENSE_QUANTUM_NS, SPARSE_QUANTUM_NS, StampingSelector


class Tempo:
    """Sets both as each stretch begins: what is sent in it says how much is needed."""

    def __init__(
        self,
        config: AgentConfig,
        densities: Densities,
        selector: StampingSelector,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._config, self._densities = config, densities
        self._selector, self._loop = selector, loop
        self._timer: asyncio.TimerHandle | None = None
        densities.first.quantum_ns = selector.quantum_ns  # until a plan comes

    def follow(self) -> None:
        """Go by the plan as it is now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        stretch = self._densities.first.at(monotonic_ns())
        selector = self._selector
        selector.quantum_ns = DENSE_QUANTUM_NS if stretch.dense else SPARSE_QUANTUM_NS
        stretch.quantum_ns = selector.quantum_ns
        limits.stand(self._config.all_sends_per_s(dense=stretch.dense))
        if stretch.next is not None:
            self._timer = self._loop.call_at(stretch.hi_ns / NS_PER_S, self.follow)
