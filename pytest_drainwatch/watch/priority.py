"""Let a thread that stamps what it sees run as soon as it can, where that is allowed."""

from __future__ import annotations

import contextlib
import os

PRIORITY = 1


def run_soon() -> None:
    """Give the calling thread a real-time priority, and its children none.

    The watches need little and are late by what else runs: side by side trials share one
    session's processor time, and the clusters beside them have their own. Where it may not,
    nothing changes, and a ticker tells how late it was.
    """
    with contextlib.suppress(OSError, AttributeError):  # not root, not Linux
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(PRIORITY))
