"""The columns of flows.csv: a row a flow."""

from __future__ import annotations

from collections.abc import Callable

from pytest_drainwatch.core.interval import Bounds
from pytest_drainwatch.core.repeats.columns import Column, FlowRow, TrialRow
from pytest_drainwatch.core.repeats.trial_columns import TRIAL_ID


def _flow(name: str) -> Callable[[FlowRow], object]:
    return lambda row: getattr(row.flow, name)


def _bound(name: str, side: int) -> Callable[[FlowRow], object]:
    def value(row: FlowRow) -> object:
        at: Bounds | None = getattr(row.flow, name, None)
        if at is None and row.flow.continuity is not None:
            at = getattr(row.flow.continuity, name, None)
        return at and at[side]

    return value


def _continuity(name: str) -> Callable[[FlowRow], object]:
    return lambda row: row.flow.continuity and getattr(row.flow.continuity, name)


def _ended_by(row: FlowRow) -> object:
    """How the pod that answered first ended; None where it ran several times, or goes on."""
    if not row.flow.responders:
        return None
    uid = row.flow.responders[0].partition("/")[0]
    ends = [end.ended_by for end in row.trial.report.trial.pod_ends if end.pod_uid == uid]
    return ends[0] if len(ends) == 1 else None


def _of_trial(column: Column[TrialRow]) -> Column[FlowRow]:
    return Column(
        name=column.name, meaning=column.meaning, value=lambda row: column.value(row.trial)
    )


FLOW_COLUMNS: tuple[Column[FlowRow], ...] = (
    *(_of_trial(column) for column in TRIAL_ID),
    Column(
        name="simulated",
        meaning="whether a model predicted it; then nothing of it was measured",
        value=lambda row: row.trial.report.simulated,
    ),
    *(
        Column(name=name, meaning=meaning, value=_flow(name))
        for name, meaning in {
            "id": "the flow's name: the order in which it was dialled, unique in its trial",
            "proto": "`tcp` or `udp`",
            "role": "`target` or `bystander`; empty: nobody answered, so it is not known whose",
            "one_way": "whether nobody is to answer it",
            "outcome": "how it ended",
            "mechanism": "by what",
        }.items()
    ),
    Column(
        name="pod_ended_by",
        meaning="how the container that answered it first ended; empty: it did not, or ran again",
        value=_ended_by,
    ),
    Column(
        name="connected_t_ms",
        meaning="when it was established, from t = 0",
        value=_flow("connected_t_ms"),
    ),
    Column(
        name="t_terminal_ms",
        meaning="when it ended, as reports show it: the upper bound; empty: it did not, or that "
        "was not measured (see `outcome`)",
        value=_flow("t_terminal_ms"),
    ),
    Column(name="terminal_lo_ns", meaning="its lower bound", value=_bound("terminal_ns", 0)),
    Column(name="terminal_hi_ns", meaning="its upper bound", value=_bound("terminal_ns", 1)),
    *(
        Column(name=name, meaning=meaning, value=_flow(name))
        for name, meaning in {
            "last_data_t_ms": "when it last got data",
            "last_heartbeat_seq": "the last request sent",
            "last_answered_seq": "the last one answered",
            "answered": "requests answered",
            "unanswered": "requests not answered",
        }.items()
    ),
    Column(
        name="responders",
        meaning="how many processes answered it",
        value=lambda row: len(row.flow.responders),
    ),
    *(
        Column(name=name, meaning=f"{meaning}; of UDP flows only", value=_continuity(name))
        for name, meaning in {
            "sent": "datagrams sent",
            "lost": "those that nobody answered",
            "late": "those answered after they had been counted as lost",
            "reordered": "those answered after a later one",
            "duplicated": "further replies to the same request",
            "recovered_by": "who answered after the outage",
        }.items()
    ),
    Column(
        name="gap_lo_ns",
        meaning="its downtime, at least; of UDP flows only",
        value=_bound("gap_ns", 0),
    ),
    Column(name="gap_hi_ns", meaning="its downtime, at most", value=_bound("gap_ns", 1)),
    Column(name="detail", meaning="what else is known, in words", value=_flow("detail")),
)
