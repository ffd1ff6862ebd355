"""When there is nothing to judge: a broken harness yields no report.

A recording that lacks its end, its flows or its termination looks like a trial in
which nothing bad happened. Each of these is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_drainwatch.core import transitions
from pytest_drainwatch.core.document import FlowReport
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.moments import CannotDerive, Start
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.transitions import Transition

ENDS = frozenset({Event.ALL_FLOWS_TERMINAL, Event.OBSERVATION_WINDOW_CLOSED})


def refuse_unfinished(seen: Sequence[Observation]) -> None:
    """Refuse a trial that is void, interrupted, or lacks the marks of its end."""
    for observation in seen:
        if observation.event in (Event.VOID, Event.INTERRUPTED):
            why = observation.data.get("reason") or observation.data.get("signal")
            raise CannotDerive(
                f"the trial is {observation.event} in phase {observation.data.get('phase')}: "
                f"{why}; a broken harness yields no report"
            )
    events = {observation.event for observation in seen}
    if Event.TRIGGER_ACCEPTED not in events:
        return  # start_of() says so
    if not events & ENDS:
        raise CannotDerive(
            "the recording does not say that its observation ended; expected "
            f"{' or '.join(sorted(ENDS))}: its writer was killed"
        )
    if Event.AGENT_SUMMARY not in events:
        raise CannotDerive(
            "the flow agent's summary is missing; expected it as the agent's last line: "
            "the agent died, or its part of the recording was lost"
        )


def refuse_unmeasured(
    start: Start,
    changes: Iterable[Transition],
    flows: Sequence[FlowReport],
    config: Mapping[str, object],
) -> None:
    """Refuse a trial without its flows, with broken ones, or whose trigger had no effect.

    A control terminates nothing, so of it no effect is expected.
    """
    for proto in Proto:
        wanted = config.get(f"{proto}_flows")
        held = sum(
            flow.proto is proto and flow.role is Role.TARGET and not flow.one_way for flow in flows
        )
        if isinstance(wanted, int) and held < wanted:
            raise CannotDerive(
                f"{held} {proto} flows were held on the target, expected {wanted}: "
                "the others were lost with the recording or never answered"
            )
    early = [f.id for f in flows if f.terminal_ns is not None and f.terminal_ns[1] < 0]
    if early:
        raise CannotDerive(
            f"{len(early)} flow(s) ended before the trigger ({', '.join(early[:5])}); "
            "expected every flow alive when it was sent: the harness was disturbed"
        )
    if start.control:
        return
    ended = {transitions.POD_DELETION_TIMESTAMP_SET, transitions.POD_OBJECT_DELETED}
    if not any(change.uid in start.targets and change.event in ended for change in changes):
        raise CannotDerive(
            "blocked: the API accepted the trigger and did not carry it out; no target pod was "
            "deleted within the observation window. Look at: admission webhooks, dry-run evictions"
        )
