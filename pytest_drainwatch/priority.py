"""Let threads that measure run as soon as they can, where that is allowed.

Every thread of a process waits for the one that holds the interpreter's lock. So all that
work while a trial measures have the same priority: below the flow agent's, above the rest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

PRIORITY = 1


def run_soon() -> None:
    """Give the calling thread a real-time priority, and its children none.

    They need little and are late by what else runs: side by side trials share one
    session's processor time, and the clusters beside them have their own. Where it may not,
    nothing changes, and a ticker tells how late it was.
    """
    with contextlib.suppress(OSError, AttributeError):  # not root, not Linux
        policy = os.SCHED_RR | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(PRIORITY))


@contextlib.contextmanager
def running_soon() -> Iterator[None]:
    """The same while it holds, for a thread that has other work before and after."""
    before = None
    with contextlib.suppress(OSError, AttributeError):
        before = os.sched_getscheduler(0), os.sched_getparam(0)
    run_soon()
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, *before)
