"""What this process may use: descriptors, source ports, priority."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.flows.config import AgentConfig
from pytest_drainwatch.flows.errors import ClientLimit

RESERVED_DESCRIPTORS = 32
NICE = -15
REALTIME_PRIORITY = 2  # above the threads that look on in the meantime: priority.py
# A quarter of a core for each core there is: 250 us of CPU time for each send or attempt, with
# the idle loop's wake-ups. That is what the guard is about, and agents take less: 18 % of a core
# at 1000 a second, 4 % at 170 (bench/agent.py; more of one, an exchange, takes some 40 us, and of
# the other, a socket's whole life, some 220 us: bench/prober.py).
# All agents count as if they were in such a stretch now, for those that begin together are.
# Who needs more must not take it from what is measured, which may run on the same cores: its
# delays would look like the workload's own, and no stall of ours would tell.
REALTIME_SENDS_PER_S_AND_CORE = 1000
# Half of each core: a larger share than others leaves them that much at least.
SHARED_SENDS_PER_S_AND_CORE = 2000


def raise_descriptors() -> int:
    """Raise the soft limit to the hard one; returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def tighten_timers() -> None:
    """Let timers fire when they are due, not up to 50 us later, where that is allowed."""
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How this process stands among others: ``rr`` (real time) or ``other``, its nice value, and
    that of its session; None where the kernel does not group tasks by session.
    """

    scheduler: str
    nice: int
    session_nice: int | None


def stand(sends_per_s: float) -> Standing:
    """Take the standing that is right for what all agents on this machine send; returns it.

    A nice value is no promise to run soon: who wakes may wait for milliseconds until
    somebody else's slice is over. A real-time policy is one, for agents that need little.
    Those that need more get a larger share, and those that need too much a fair one.
    """
    per_core = sends_per_s / len(os.sched_getaffinity(0))
    realtime = per_core <= REALTIME_SENDS_PER_S_AND_CORE
    policy, priority = (os.SCHED_RR, REALTIME_PRIORITY) if realtime else (os.SCHED_OTHER, 0)
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(0) != policy:
            os.sched_setscheduler(0, policy, os.sched_param(priority))
    # Both: where tasks are grouped by session the session's value counts, elsewhere the process's.
    nice = NICE if per_core <= SHARED_SENDS_PER_S_AND_CORE else 0
    return Standing(
        scheduler="rr" if os.sched_getscheduler(0) == os.SCHED_RR else "other",
        nice=_process(nice),
        session_nice=_session(nice),
    )


def _process(nice: int) -> int:
    """Give this process that nice value, where it may; returns the one it has.

    Who was started with a smaller share than others keeps it where a fair one is meant.
    """
    now = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        if nice < min(0, now) or now < nice:
            os.setpriority(os.PRIO_PROCESS, 0, nice)
    return os.getpriority(os.PRIO_PROCESS, 0)


def _session(nice: int) -> int | None:
    """Give this process's session that nice value, where it may; returns the one it has.

    Where the kernel groups tasks by session (``sched_autogroup_enabled``) a nice value of a
    process counts among those of its session alone. Nothing is changed unless this process
    leads its session: it may be somebody else's.
    """
    group = Path("/proc/self/autogroup")
    with contextlib.suppress(OSError):
        if os.getsid(0) == os.getpid():
            group.write_text(str(nice))
    try:
        return int(group.read_text().rpartition("nice ")[2])
    except (OSError, ValueError):
        return None


def check(config: AgentConfig, descriptors: int) -> None:
    """Refuse what cannot fit. Raises :class:`ClientLimit`."""
    attempts = config.open_attempts
    needed = config.wanted + attempts + RESERVED_DESCRIPTORS
    if needed > descriptors:
        beside = f" and {attempts} attempts at a time" if attempts else ""
        raise ClientLimit(
            f"{config.wanted} flows{beside} need {needed} descriptors and this process may open "
            f"{descriptors} (RLIMIT_NOFILE)",
            f"at most {max(0, descriptors - attempts - RESERVED_DESCRIPTORS)} flows",
            "ask for fewer flows, try new connections less often, or raise the hard limit "
            "(ulimit -Hn)",
        )
    found = port_range()
    if found is None:
        return
    ports = found[1] - found[0] + 1
    used = {"tcp": config.tcp.flows if config.tcp is not None else 0}
    used["udp"] = sum(end.flows for end in (config.udp, config.udp_one_way) if end is not None)
    for prober in config.probers:
        used[prober.proto] += prober.open_at_once
    used["tcp"] += config.http.open_at_once if config.http is not None else 0
    most = max(used.values())
    if most > ports:
        raise ClientLimit(
            f"{most} connections to one address, attempts to open some among them, need as many "
            f"source ports and this host has {ports}",
            f"at most {ports} per protocol",
            "ask for fewer flows, try new connections less often, or widen "
            "net.ipv4.ip_local_port_range",
        )


def port_range() -> tuple[int, int] | None:
    """The source ports that the kernel picks from, if it says so."""
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except (OSError, ValueError):
        return None
    return int(low), int(high)
