"""What is heavy takes turns on a machine, and starts of clusters keep trials waiting.

A start wants every core for seconds. Side by side starts slow each other down, and the trials
beside them. A start waits for starts, and never for a trial, so nobody waits in a circle.
"""

from __future__ import annotations

import time
from contextlib import suppress

from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded.rows import POLL_S, Row, cores

QUIET_PATIENCE_S = 90.0

# One for each core. Measured on two cores, 8 clusters: 34 s one at a time, since a start waits
# for timers too; 19 s two at a time; 21 s all at once, and then nobody has one sooner.
STARTS = Row(name="starts", what="cluster start(s)", at_once=cores)
# And triggers, whose replacements start as pods do: beside one a SIGTERM came up to 0.2 s late.
# Measured on two cores, on an agent without real-time priority: deployments one at a time made
# stalls of 30 ms, four at once of 110 ms. One at a time each takes 1.7 s, four at once 3.5 s.
DEPLOYMENTS = Row(name="deployments", what="deployment(s)", at_once=lambda: max(1, cores() // 2))


def under_way() -> list[str]:
    """The starts on this machine, waiting ones included, as far as it lets us look.

    A row that cannot be read is somebody else's: nobody of ours is in it.
    """
    with suppress(ClusterError, OSError):
        return STARTS.tickets()
    return []


def wait_quiet(log: Log, *, patience_s: float = QUIET_PATIENCE_S) -> bool:
    """Wait until no cluster starts on this machine; whether that came within *patience_s*.

    One may start the moment after: no start waits for a trial.
    """
    deadline = time.monotonic() + patience_s
    told = False
    while starts := under_way():
        if time.monotonic() > deadline:
            log(
                f"going on beside {len(starts)} cluster start(s) that did not end within"
                f" {patience_s:.0f} s: they may show as stalls of this trial"
            )
            return False
        if not told:
            told = True
            log(f"waiting for {len(starts)} cluster start(s) on this machine to end")
        time.sleep(POLL_S)
    return True
