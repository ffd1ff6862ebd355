"""How long pods surely lived, by the requests that they answered on connections led to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_drainwatch.core.http.ending import Ending
from pytest_drainwatch.core.http.pieces import Around
from pytest_drainwatch.core.http.recorded import recorded
from pytest_drainwatch.core.http.whose import Leads
from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.probing.pieces import Surroundings
from pytest_drainwatch.core.transitions import Transition


def answered_until(
    seen: Sequence[Observation], changes: Sequence[Transition], beside: Surroundings
) -> Mapping[str, int]:
    """By pod uid, when the last request was sent that it answered, in whatever way.

    Of connections that were open at t = 0 and whose pod is known.
    """
    told = recorded(seen)
    if told is None:
        return {}
    around = Around(
        t0_ns=beside.t0_ns, targets=beside.targets.keys(), names=beside.names, stalls=beside.stalls
    )
    last_ns: dict[tuple[str, int], int] = {}
    for run in told.runs:
        if run.connection is not None and run.ended is Ending.RESPONSE:
            key = (run.lane, run.connection)
            last_ns[key] = max(run.last_ns, last_ns.get(key, run.last_ns))
    by = told.responders
    leads, found = Leads(seen, changes, around), dict[str, int]()
    for one in told.connections:
        key = (one.lane, one.number)
        if key not in last_ns or not one.opened_ns < beside.t0_ns <= one.at.hi:
            continue
        uid = leads.whose(one, by.get(key, (one.responder,))).uid
        if uid is not None:
            found[uid] = max(last_ns[key], found.get(uid, last_ns[key]))
    return found
