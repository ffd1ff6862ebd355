"""A balancer throughout a trial: watched, and told to let go of nodes whose time is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from pytest_drainwatch.balancers.config import POOL, Asked, names
from pytest_drainwatch.balancers.process import BalancerFailed, Haproxy
from pytest_drainwatch.balancers.stat import ServerStat, parse
from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.priority import run_soon

LOOK_S = 0.01
JOIN_S = 10.0

Record = Callable[[Observation], None]


class Front:
    """HAProxy in front of the nodes, and a thread that writes down what it does to them.

    Raises :class:`BalancerFailed` unless it starts.

    Args:
        asked: the servers, and the balancer's settings.
        listen: the address at which clients come.
        record: takes observations.
    """

    def __init__(self, asked: Asked, *, listen: str, record: Record) -> None:
        self._asked = asked
        self._record = record
        self._haproxy = Haproxy(asked, listen)
        self._nodes = {name: node for node, name in names(asked.servers).items()}
        self._problem: str | None = None
        self._stats: Mapping[str, ServerStat] = {}
        self._since_ns: dict[str, int] = {}  # from when a node that is down was surely so
        self._stop = threading.Event()
        self._tell(
            Event.BALANCER_STARTED,
            Interval.point(time.monotonic_ns()),
            data={
                "version": self._haproxy.version(),
                "address": self.address,
                "port": self.port,
                "servers": [
                    {"node": each.node, "address": each.address, "port": each.port}
                    for each in asked.servers
                ],
                "check": asked.check,
                **asked.balancer.config(),
            },
        )
        self._thread = threading.Thread(target=self._run, name="dw-balancer", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where clients come."""
        return self._haproxy.address

    @property
    def port(self) -> int:
        """At which port of it."""
        return self._haproxy.port

    @property
    def nodes(self) -> int:
        """How many servers it has."""
        return len(self._asked.servers)

    @property
    def asks(self) -> str:
        """What a health check asks, in words."""
        return self._asked.check

    @property
    def pid(self) -> int:
        """The process id of HAProxy's parent."""
        return self._haproxy.pid

    def servers(self) -> Mapping[str, ServerStat]:
        """Each node's server as it was last seen."""
        return self._stats

    def check(self) -> None:
        """Raise :class:`BalancerFailed` if it has ended, or can no longer be watched."""
        self._haproxy.check()
        if self._problem is not None:
            raise BalancerFailed(self._problem)

    def close(self) -> None:
        """End the watching, and then HAProxy. May be called again."""
        self._stop.set()
        self._thread.join(JOIN_S)
        self._haproxy.close()

    def _run(self) -> None:
        run_soon()
        before_ns = time.monotonic_ns()
        while not self._stop.wait(LOOK_S):
            asked_ns = time.monotonic_ns()
            try:
                stats = parse(self._haproxy.ask(f"show stat {POOL} 4 -1"))
                answered_ns = time.monotonic_ns()
                for name, stat in stats.items():
                    self._see(self._nodes[name], name, stat, Interval(before_ns, answered_ns))
            except (OSError, ValueError, KeyError) as error:
                if not self._stop.is_set():
                    self._problem = (
                        f"HAProxy cannot be watched: {error!r}; expected an answer from its socket "
                        "within seconds. Look at: this machine's load"
                    )
                return
            before_ns = asked_ns

    def _see(self, node: str, name: str, stat: ServerStat, at: Interval) -> None:
        last = self._stats.get(node)
        self._stats = {**self._stats, node: stat}
        if last is None or last.up is not stat.up:
            self._tell(
                Event.BALANCER_SERVER,
                at,
                node,
                data={
                    "up": stat.up,
                    "check": stat.check,
                    "sessions": stat.sessions,
                    "given": stat.given,
                },
            )
        if stat.up:
            self._since_ns.pop(node, None)
        elif last is None or last.up:
            self._since_ns[node] = at.hi
        since_ns = self._since_ns.get(node)
        if since_ns is not None and at.hi >= since_ns + self._asked.balancer.deregistration_ns:
            del self._since_ns[node]
            self._let_go(node, name, stat.sessions)

    def _let_go(self, node: str, name: str, sessions: int) -> None:
        """HAProxy itself has no such delay: it is told when it is over."""
        asked_ns = time.monotonic_ns()
        said = self._haproxy.ask(f"shutdown sessions server {POOL}/{name}").strip()
        if said:
            raise ValueError(f"shutdown sessions server {POOL}/{name}: {said}")
        at = Interval(asked_ns, time.monotonic_ns())
        self._tell(Event.BALANCER_DEREGISTERED, at, node, data={"sessions": sessions})

    def _tell(
        self, event: Event, at: Interval, subject: str = "", *, data: dict[str, object]
    ) -> None:
        self._record(
            Observation(source=Source.BALANCER, event=event, at=at, subject=subject, data=data)
        )
