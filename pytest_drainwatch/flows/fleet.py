"""The flows of one protocol: dials them, and on until the target has enough."""

from __future__ import annotations

import asyncio
import heapq
import socket
from collections.abc import Iterator
from time import monotonic_ns

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.flows.config import Endpoint
from pytest_drainwatch.flows.dial import DialFailed, dial
from pytest_drainwatch.flows.errors import AgentError
from pytest_drainwatch.flows.flow import Flow, Host
from pytest_drainwatch.flows.oneway import OneWayFlow
from pytest_drainwatch.flows.plain import Exchange, keep_alive
from pytest_drainwatch.flows.protocol import Adapter, LineDatagram, LineStream, NoteDatagram
from pytest_drainwatch.flows.schedule import Cadence
from pytest_drainwatch.flows.tcp import TcpFlow
from pytest_drainwatch.flows.udp import UdpFlow

DIALLERS = 64
UNANSWERED_NS = 3 * NS_PER_S  # so long a candidate may wait for its first reply


class Fleet:
    """All flows of a protocol.

    Without a target every dialled flow is kept. With one, a flow is a candidate until
    its first reply: the target's are kept, up to ``max_extra`` of other pods as
    bystanders, and what is over is closed without a trace.
    """

    def __init__(
        self,
        host: Host,
        endpoint: Endpoint,
        *,
        proto: str,
        cadence: Cadence,
        source: str | None,
        target: str | None,
        max_extra: int,
        one_way: bool = False,
        plain: Exchange | None = None,
    ) -> None:
        self.proto = proto
        self.endpoint = endpoint
        self.flows: dict[int, Flow] = {}  # by number, candidates included
        self.on_target = 0
        self._host = host
        self._cadence = cadence
        self._source = source
        self._target = None if one_way else target  # nobody answers, so nobody is chosen
        self._one_way = one_way
        self._plain = plain
        self._room = max_extra
        self._next_number = 1
        self._free: list[int] = []
        self._news = asyncio.Event()

    async def fill(self, deadline_ns: int) -> None:
        """Dial until there are as many flows as asked for. Raises :class:`AgentError`."""
        wanted = self.endpoint.flows
        await self._dial_many(wanted, deadline_ns)
        while self._target is not None and self.on_target < wanted:
            self._drop_hopeless()
            waiting = sum(1 for flow in self.flows.values() if flow.responder_uid is None)
            missing = wanted - self.on_target - waiting
            if monotonic_ns() >= deadline_ns:
                raise self._too_few(waiting)
            if missing > 0:
                await self._dial_many(missing, deadline_ns)
            self._news.clear()
            try:
                async with asyncio.timeout(0.1):
                    await self._news.wait()
            except TimeoutError:
                continue

    def answered_first(self, flow: Flow) -> None:
        """Decide about a candidate."""
        if self._target is None:
            return
        self._news.set()
        if flow.responder_uid == self._target:
            self.on_target += 1
            flow.keep()
        elif self._room > 0:
            self._room -= 1
            flow.keep()
        else:
            self._discard(flow)

    def finish(self, at_ns: int) -> None:
        """Write where every flow stands, and close them."""
        for _, flow in sorted(self.flows.items()):
            flow.keep()
            flow.finish(at_ns)

    def _drop_hopeless(self) -> None:
        """A candidate that ended or was never answered gives its place to a new one."""
        now_ns = monotonic_ns()
        for flow in list(self.flows.values()):
            if flow.responder_uid is None and (
                flow.ended or now_ns - flow.connected_ns > UNANSWERED_NS
            ):
                self._discard(flow)

    def _discard(self, flow: Flow) -> None:
        flow.discard()
        number = abs(flow.index)
        del self.flows[number]
        heapq.heappush(self._free, number)

    async def _dial_many(self, count: int, deadline_ns: int) -> None:
        numbers = iter([self._number() for _ in range(count)])
        async with asyncio.TaskGroup() as group:
            for _ in range(min(DIALLERS, count)):
                group.create_task(self._dial_each(numbers, deadline_ns))

    async def _dial_each(self, numbers: Iterator[int], deadline_ns: int) -> None:
        for number in numbers:
            await self._dial_one(number, deadline_ns)
            await asyncio.sleep(0)  # a local peer accepts at once, and thousands are a stall

    async def _dial_one(self, number: int, deadline_ns: int) -> None:
        remote = (self.endpoint.address, self.endpoint.port)
        stream = self.proto == "tcp"
        kind = socket.SOCK_STREAM if stream else socket.SOCK_DGRAM
        loop = asyncio.get_running_loop()
        flow_id = f"{self.proto}{'-oneway' if self._one_way else ''}-{number:04d}"
        try:
            dialled = await dial(loop, kind, remote, self._source, deadline_ns)
        except DialFailed as failed:
            self._host.record_connect_failed(flow_id, self.proto, _text(remote), failed)
            raise AgentError(
                f"{flow_id} could not connect to {_text(remote)}: {failed}",
                f"an accepted connection within {(failed.at.width) / NS_PER_S:.1f} s",
                "look at the Service, its endpoints and kube-proxy",
            ) from failed
        adapter: Adapter = LineStream() if stream else LineDatagram()
        kind_of_flow: type[Flow] = TcpFlow if stream else UdpFlow
        about: dict[str, object] = {}
        if self._one_way:
            # The flows of every agent have the same ids, and a path may lead the datagrams of
            # one trial to the pod of another.
            name = f"{flow_id}.{self._host.tag}"
            adapter, kind_of_flow = NoteDatagram(name), OneWayFlow
            about = {"one_way": True, "note": name}
        elif self._plain is not None:
            adapter = self._plain.adapter(stream=stream)
            about = {"anonymous": True, **({} if self._plain.send else {"held": True})}
        # Two-way flows count up and one-way ones down: however many there are, no two of
        # the same rate have one index and are in step, and together they are spread evenly.
        index = -number if self._one_way else number
        flow = kind_of_flow(
            self._host, flow_id, index, dialled.sock, adapter, dialled.at, self._cadence
        )
        self.flows[number] = flow
        if self._plain is not None and self._plain.send is None:
            flow.hold()
            keep_alive(dialled.sock)
        if self._target is None:
            flow.keep()
        flow.ledger.event(
            Event.FLOW_CONNECTED,
            dialled.at.lo,
            dialled.at.hi,
            proto=self.proto,
            local=_text(dialled.sock.getsockname()),
            remote=_text(remote),
            attempts=dialled.attempts,
            **({"failed": dialled.failed} if dialled.failed else {}),
            **about,
        )
        self._host.watch(flow)
        # No poll before this one knew the socket: only a read tells that it is quiet.
        flow.on_readable()
        if flow.sending:
            self._host.start_sending(flow)

    def _number(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._next_number += 1
        return self._next_number - 1

    def _too_few(self, waiting: int) -> AgentError:
        others = sum(1 for f in self.flows.values() if f.responder_uid not in (None, self._target))
        return AgentError(
            f"{self.on_target} of {self.endpoint.flows} {self.proto.upper()} flows are answered "
            f"by the target {self._target} ({others} by others, {waiting} by nobody)",
            f"{self.endpoint.flows} flows on the target",
            "look at the pod's endpoint, its readiness and its log",
        )


def _text(address: tuple[str | int, ...]) -> str:
    host, port = address[0], address[1]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
