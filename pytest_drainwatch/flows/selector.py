"""A selector that knows since when a socket may have been ready.

The truth about a pushed event (FIN, RST, ICMP error, a bye line) lies in
``[lo, hi]``. ``hi`` is easy: a stamp right after the ``recv`` that showed it. For
``lo`` we need the latest instant at which the socket *certainly* had nothing to
tell, and the return of ``epoll_wait`` is not it: the kernel collects ready sockets
some time before the call returns, and what happens in between is reported next
time. Hence every poll here is a non-blocking one, stamped *before* the call:

    before[k]   <= collection of poll k

A socket that poll ``k`` reports was not ready at ``before[k - 1]``: had it been, poll
``k - 1`` would have reported it, and its handler reads to EAGAIN (a flow keeps the
stamp from before that EAGAIN, which is later still and wins). Both stamps are true
lower bounds of the moment at which the *socket* got ready. A packet passes the
interface earlier than that, by the way through the kernel's softirq, firewall and
TCP; ``DELIVERY_NS`` allows for it.

Waiting is done on the epoll descriptor itself (``select`` has microseconds, ``epoll``
milliseconds) and never longer than a quantum, which bounds the width of every interval
while the loop is idle. A wake-up costs some 50 us of a core, so the quantum follows the
plan: short where something is to happen, longer elsewhere. It also makes the loop its own
watchdog: two polls further apart than ``STALL_NS`` are a stall, whatever the cause. A wait
that ended with nothing ready was meant and missed nothing, so its time makes no stall; of one
that something ended nobody knows when that came. A stall reaches from poll to poll.
"""

from __future__ import annotations

import select
import selectors
from collections.abc import Callable, Mapping
from time import monotonic_ns
from typing import Any

DENSE_QUANTUM_NS = 1_000_000
SPARSE_QUANTUM_NS = 10_000_000
STALL_NS = 20_000_000
DELIVERY_NS = 200_000

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class StampingSelector(selectors.BaseSelector):
    """An epoll selector for asyncio; see the module for what it promises."""

    def __init__(self) -> None:
        self.on_stall: Callable[[int, int], None] | None = None
        now_ns = monotonic_ns()
        self.quiet_ns = now_ns  # whoever the current batch reports was not ready then
        self.quantum_ns = DENSE_QUANTUM_NS
        self._polled_ns = now_ns
        self._epoll = select.epoll()
        self._keys: dict[int, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for ready sockets, at most ``timeout`` seconds."""
        deadline_ns = None if timeout is None else monotonic_ns() + int(timeout * 1e9)
        epoll, waiting = self._epoll, [self._epoll.fileno()]
        most, due_ns = len(self._keys) + 1, self._polled_ns
        while True:
            before_ns = monotonic_ns()
            ready = epoll.poll(0, most)
            self.quiet_ns, self._polled_ns = self._polled_ns, before_ns
            if before_ns - due_ns > STALL_NS and self.on_stall is not None:
                self.on_stall(self.quiet_ns, before_ns)
            if ready:
                return self._translate(ready)
            wait_ns = self.quantum_ns
            if deadline_ns is not None:
                left_ns = deadline_ns - before_ns
                if left_ns <= 0:
                    return []
                wait_ns = min(wait_ns, left_ns)
            woken = select.select(waiting, (), (), wait_ns / 1e9)[0]
            due_ns = before_ns if woken else before_ns + wait_ns

    def _translate(self, ready: list[tuple[int, int]]) -> list[tuple[selectors.SelectorKey, int]]:
        found = []
        for fd, flags in ready:
            key = self._keys.get(fd)
            if key is not None:
                # Errors and hang-ups wake whichever side is waited for.
                events = (_WRITE if flags & ~select.EPOLLIN else 0) | (
                    _READ if flags & ~select.EPOLLOUT else 0
                )
                found.append((key, events & key.events))
        return found

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = _fd(fileobj)
        if fd in self._keys:
            raise KeyError(f"descriptor {fd} is registered already")
        self._epoll.register(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = _fd(fileobj)
        if events != self._keys[fd].events:
            self._epoll.modify(fd, _mask(events))
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.pop(_fd(fileobj))
        self._epoll.unregister(key.fd)
        return key

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[_fd(fileobj)]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def close(self) -> None:
        self._epoll.close()
        self._keys.clear()


def _fd(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _mask(events: int) -> int:
    return (select.EPOLLIN if events & _READ else 0) | (select.EPOLLOUT if events & _WRITE else 0)
