"""What this process may use: descriptors, source ports, priority."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from pytest_drainwatch.flows.config import AgentConfig
from pytest_drainwatch.flows.errors import ClientLimit

RESERVED_DESCRIPTORS = 32
NICE = -15


def raise_descriptors() -> int:
    """Raise the soft limit to the hard one; returns it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_priority() -> int:
    """Be scheduled before others, where that is allowed; returns the nice value."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with contextlib.suppress(OSError):  # timers otherwise fire up to 50 us late
        Path("/proc/self/timerslack_ns").write_text("1000")
    return os.getpriority(os.PRIO_PROCESS, 0)


def check(config: AgentConfig, descriptors: int) -> None:
    """Refuse what cannot fit. Raises :class:`ClientLimit`."""
    needed = config.wanted + RESERVED_DESCRIPTORS
    if needed > descriptors:
        raise ClientLimit(
            f"{config.wanted} flows need {needed} descriptors and this process may open "
            f"{descriptors} (RLIMIT_NOFILE)",
            f"at most {descriptors - RESERVED_DESCRIPTORS} flows",
            "ask for fewer flows or raise the hard limit (ulimit -Hn)",
        )
    ports = source_ports()
    most = max(end.flows for end in (config.tcp, config.udp) if end is not None)
    if ports is not None and most > ports:
        raise ClientLimit(
            f"{most} flows to one address need as many source ports and this host has {ports}",
            f"at most {ports} flows per protocol",
            "ask for fewer flows or widen net.ipv4.ip_local_port_range",
        )


def source_ports() -> int | None:
    """How many source ports the kernel picks from, if it says so."""
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except (OSError, ValueError):
        return None
    return int(high) - int(low) + 1
