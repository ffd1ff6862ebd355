"""The process outside that starts the nodes and outlives whoever asked for them.

It holds the reading end of a pipe whose other end only the owner has: when the owner
ends, by whatever signal, the pipe reports end of file and the reaper clears up. It also
holds the locks of the cluster's state and slot, so a free lock means: nothing lives.

Usage: python -m pytest_drainwatch.cluster.embedded.reaper PLAN LIFELINE OWNER
where LIFELINE is a descriptor and OWNER a process id; inherited descriptors hold the locks.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.cluster.embedded import cgroups, links, mounts
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.node import Node
from pytest_drainwatch.cluster.embedded.plan import NodePlan, Plan, read_plan

# What the owner may say through the lifeline; its end of file means END as well.
DETACH, END = b"d", b"e"


@dataclass(frozen=True, slots=True)
class _Running:
    """A node that was started: its PID 1, and the socket that leads to it."""

    layout: Layout
    pid: int
    inside: socket.socket


def main(argv: Sequence[str]) -> int:
    """Keep the nodes until their owner, one of them or a SIGTERM ends them."""
    plan = read_plan(Path(argv[0]))
    told = _Wakeups()
    owner = _Owner(int(argv[1]), int(argv[2]))
    nodes: list[_Running] = []
    try:
        for each in plan.nodes:
            _start(each, owner, nodes)
        _join(plan, nodes)
        while not told.to_stop:
            ready, _, _ = select.select([told.descriptor, *owner.descriptors], [], [])
            if owner.has_ended(ready):
                break
            told.drain()
            if ended := [node for node in nodes if os.waitpid(node.pid, os.WNOHANG)[0]]:
                _note_end(ended[0].layout)
                break
    finally:
        left = clear(plan, [node.pid for node in nodes])
        if left:
            print(f"these cgroups would not go: {', '.join(map(str, left))}", flush=True)
    return 0


def clear(plan: Plan, nodes: Sequence[int] = (), *, link: bool = True) -> list[Path]:
    """Remove all that would outlive the nodes; safe to repeat.

    The state folder goes last: as long as it is there, a sweep finds the rest.

    Args:
        nodes: process ids of their PID 1, children of this process.
        link: a link of its name is its own. It ends with the nodes, and its name with the slot.

    Returns:
        cgroup folders that would not go; then the state folder stays too.
    """
    for node in nodes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(node, signal.SIGKILL)
    for node in nodes:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(node, 0)
    if link:
        links.remove(plan.link)
    left = cgroups.remove(plan.cgroup, cgroups.hierarchies())
    if not left:
        Layout(state=Path(plan.state), logs=Path(plan.logs)).remove_state()
    return left


def ask_to_stop(pid: int) -> None:
    """SIGTERM to a reaper, if *pid* still is one."""
    with contextlib.suppress(OSError):
        if __name__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            os.kill(pid, signal.SIGTERM)


class _Wakeups:
    """Signals as something `select` can wait for."""

    def __init__(self) -> None:
        self.to_stop = False
        self.descriptor, write = os.pipe()
        for descriptor in (self.descriptor, write):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(write)
        _plain_signals()
        # A Ctrl-C is the owner's to answer. Handlers that do nothing, and never SIG_IGN:
        # that would be inherited down to the pods, which then could not be terminated.
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, self._stop)

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 4096)

    def _stop(self, *_: object) -> None:
        self.to_stop = True


def _plain_signals() -> None:
    """Forget which signals the owner ignored or blocked: nohup and `&` ignore some."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals():
        # Python's own two are restored whenever it starts a program.
        if number not in (signal.SIGPIPE, signal.SIGXFSZ):
            with contextlib.suppress(OSError, ValueError):
                if signal.getsignal(number) is signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)


class _Owner:
    """The process that the cluster ends with, until it lets go.

    The pipe alone would be kept open by a child that the owner forks without exec; the
    process alone would miss an owner that closes its cluster and lives on.
    """

    def __init__(self, lifeline: int, pid: int) -> None:
        self._lifeline = lifeline
        self.descriptors = [lifeline]
        with contextlib.suppress(ProcessLookupError):
            self.descriptors.append(os.pidfd_open(pid))

    def has_ended(self, ready: Sequence[int]) -> bool:
        if self._lifeline in ready and os.read(self._lifeline, 1) == DETACH:
            self.close()
            return False
        return any(descriptor in ready for descriptor in self.descriptors)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []


def _start(plan: NodePlan, owner: _Owner, nodes: list[_Running]) -> None:
    """Start a node and append it to those that run."""
    layout = Layout(state=Path(plan.state), logs=Path(plan.logs))
    nodes.append(_Running(layout, *_fork_node(plan, layout, owner, nodes)))
    layout.node_pid.write_text(str(nodes[-1].pid))


def _join(plan: Plan, nodes: Sequence[_Running]) -> None:
    """Wait until each has a network namespace, and link them; a dead one is noticed later."""
    if all(node.inside.recv(1) == b"n" for node in nodes):
        # What holds the nodes' bridge is never closed: it ends with this process.
        links.join(plan.link, plan.sources, [node.pid for node in nodes])
        for node in nodes:
            with contextlib.suppress(BrokenPipeError):
                node.inside.sendall(b"l")


def _fork_node(
    plan: NodePlan, layout: Layout, owner: _Owner, others: Sequence[_Running]
) -> tuple[int, socket.socket]:
    outside, inside = socket.socketpair()
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    mounts.unshare(mounts.CLONE_NEWPID)  # for children only: the next fork is a PID 1
    node = os.fork()
    if node:
        mounts.setns(own, mounts.CLONE_NEWPID)  # and later children are ordinary again
        os.close(own)
        inside.close()
        return node, outside
    code = 1
    try:
        mounts.die_with_parent(signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        os.close(own)
        outside.close()
        for other in others:
            other.inside.close()
        owner.close()
        _write_to(layout.log("node"))
        code = Node(plan, inside).run()
    except BaseException as error:
        print(f"the node's PID 1 failed: {type(error).__name__}: {error}", flush=True)
    os._exit(code)


def _write_to(log: Path) -> None:
    """Have what this process prints in a file of its own: several nodes tell the same things."""
    with log.open("ab") as file:
        for printed in (1, 2):
            os.dup2(file.fileno(), printed)


def _note_end(layout: Layout) -> None:
    """Say that the node ended unasked, unless its PID 1 has said more already."""
    with contextlib.suppress(OSError):
        if not layout.ended.exists():
            layout.ended.write_text(json.dumps({"component": "node", "code": None}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
