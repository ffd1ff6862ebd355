"""A report as plain text, part by part; and one line a trial for a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_drainwatch.core.document import (
    Counts,
    FlowReport,
    PodEnd,
    Report,
    TimelineEntry,
    TrialReport,
)
from pytest_drainwatch.core.flow.classify import Role
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import Order
from pytest_drainwatch.core.pod.ending import EndedBy, PreStopOutcome
from pytest_drainwatch.render import http, instrument, probing
from pytest_drainwatch.render.network import network
from pytest_drainwatch.render.surroundings import where
from pytest_drainwatch.render.text import NOT_MEASURED, duration, fitted, table

# What others may take from here.
__all__ = [
    "NOT_MEASURED",
    "RUN_COLUMNS",
    "counts",
    "duration",
    "ends",
    "figures",
    "new_connections",
    "show",
    "simulated",
    "table",
    "timeline",
    "trial_rows",
]

RUN_COLUMNS = (
    "SCENARIO",
    "SIGTERM",
    "TCP",
    "ENDED AT",
    "UDP",
    "ENDED AT",
    "NEW CONNECTIONS",
    "EXIT",
    "REPORT",
)
RUN_WIDTH = 120
# preStop hooks of a workload of the user's whose length nobody knows.
HOOKS = {"exec": "a command", "http_get": "an httpGet", "tcp_socket": "a tcpSocket"}


def show(report: Report) -> str:
    """The whole report for a terminal."""
    trial = report.trial
    head = [
        f"TRIAL {trial.id}",
        *(f"  ! {mark}" for mark in simulated(report)),
        f"  {_asked(trial)}",
        f"  {where(report)}",
        *(f"  ! {flag}" for flag in trial.flags),
        *probing.marks(trial),
    ]
    return "\n".join(
        [
            *head,
            "",
            "SUMMARY",
            *_summary(report),
            "",
            *probing.new_connections(trial.new_connections),
            *http.requests(trial.requests),
            *probing.windows(trial.windows),
            *network(trial),
            "TIMELINE",
            *timeline(trial.timeline),
            "",
            "FLOWS",
            *_flows(trial.flows),
            "",
            trial.clock_note,
            *instrument.lines(trial.sending, trial.stalls),
            *(f"note: {note}" for note in (*report.environment.warnings, *trial.notes)),
            "",
        ]
    )


def simulated(report: Report) -> list[str]:
    """What stands before everything else of a trial that nobody measured."""
    return ["SIMULATED: a model predicted this; nothing of it was measured"] * report.simulated


def timeline(entries: Iterable[TimelineEntry], limit: int | None = None) -> list[str]:
    """Timeline rows; with ``limit`` the flow ends are folded first, then the middle cut."""
    rows = [
        (
            f"{entry.t_ms:+d} ms",
            str(entry.source),
            entry.event,
            " ".join(part for part in (entry.flow_id, entry.detail) if part),
        )
        for entry in (entries if limit is None else _folded(entries))
    ]
    if limit is not None and len(rows) > limit:
        last = limit // 2
        first = limit - 1 - last
        cut = len(rows) - first - last
        rows = [*rows[:first], ("", "", f"… {cut} more", ""), *rows[-last:]]
    return table(rows, right=(0,), width=100)


def trial_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """The table of a run: a row a trial, its lists in several lines where one is too wide."""
    return table(fitted([RUN_COLUMNS, *rows], RUN_WIDTH))


def _asked(trial: TrialReport) -> str:
    """What was tried, of the probe or of a workload of the user's."""
    config, verb = trial.config, trial.trigger.verb
    grace = f"grace {config.get('grace_period_seconds')} s"
    attached = config.get("attached")
    if not isinstance(attached, Mapping):
        drain = f"drain window {config.get('drain_max_seconds')} s"
        return f"{config.get('drain_behavior')} x {verb}, {grace}, {drain}"
    hook = config.get("pre_stop")
    if isinstance(hook, Mapping):
        sleeps = hook.get("sleep_seconds")
        kind = next((words for name, words in HOOKS.items() if name in hook), "of some kind")
        grace += f", preStop {kind if sleeps is None else f'sleep {sleeps} s'}"
    return (
        f"{attached.get('workload')} in {attached.get('namespace')} x {verb}, {grace}; "
        f"{attached.get('protocol')} through Service {attached.get('service')} "
        f"port {attached.get('port')}"
    )


def counts(found: Counts) -> str:
    """Flow fates in words: ``10/10 announced-fin``, or several joined by commas."""
    if found.total == 0:
        return "none"
    named = {name: number for name, number in found.mechanisms.items() if name != "none"}
    unnamed = found.total - sum(named.values())
    survived = min(found.survived_window, unnamed)
    # What neither survived nor has a mechanism: not measured, or ended nobody knows how.
    rest = {"survived": survived, "not explained": unnamed - survived}
    shown = {**named, **{name: number for name, number in rest.items() if number}}
    text = ", ".join(f"{number}/{found.total} {name}" for name, number in shown.items())
    return f"{text} ({found.not_measured} not measured)" if found.not_measured else text


def new_connections(trial: TrialReport) -> str:
    """How many new connections and HTTP requests failed, or the bound where none did."""
    if trial.requests is None:
        return probing.cell(trial.new_connections)
    tried = [probing.cell(trial.new_connections)] if trial.new_connections else []
    return "; ".join([*tried, http.cell(trial.requests)])


def ends(flows: Iterable[FlowReport], proto: Proto) -> str:
    """When the target's flows of a transport ended, from the first to the last, from t = 0."""
    targets = [flow for flow in flows if flow.proto is proto and flow.role is Role.TARGET]
    found = [flow.terminal_ns for flow in targets if flow.terminal_ns is not None]
    if not found:
        return "-"
    return duration((min(lo for lo, _ in found), max(hi for _, hi in found)))


def figures(trial: TrialReport) -> list[tuple[str, str]]:
    """The headline durations, each with its name."""
    trigger, summary = trial.trigger, trial.summary
    return [
        ("trigger -> accepted", duration(trigger.accepted_ns)),
        ("trigger -> effective", duration(trigger.effective_ns)),
        ("trigger -> sigterm", duration(summary.trigger_to_sigterm_ns)),
        ("sigterm -> endpoint ready:false", duration(summary.sigterm_to_ready_false_ns)),
        ("sigterm -> last flow terminal", duration(summary.sigterm_to_last_flow_terminal_ns)),
        ("trigger -> container terminated", duration(summary.trigger_to_container_terminated_ns)),
        ("trigger -> endpoint removed", duration(summary.trigger_to_endpoint_removed_ns)),
        ("last tcp end -> endpoint removed", duration(summary.dead_endpoint_window_ns)),
    ]


def _summary(report: Report) -> list[str]:
    summary = report.trial.summary
    groups = [("tcp", summary.tcp), ("udp", summary.udp)]
    groups += [
        (f"{name} (bystanders)", found)
        for name, found in (("tcp", summary.bystander_tcp), ("udp", summary.bystander_udp))
        if found.total
    ]
    rows = [
        ("PROTO", "TOTAL", "DRAINED", "SEVERED", "READ_TIMEOUT", "SURVIVED", "NOT_MEASURED", "BY"),
        *(
            (
                name,
                str(found.total),
                str(found.drained),
                str(found.severed),
                str(found.read_timeout),
                str(found.survived_window),
                str(found.not_measured),
                ", ".join(f"{number} {by}" for by, number in found.mechanisms.items()),
            )
            for name, found in groups
        ),
    ]
    orders = [
        (f"{_words(o.first)} before {_words(o.second)}", _ANSWERS[o.order]) for o in summary.orders
    ]
    exits = [
        (
            "container exit",
            f"{gone.pod} exitCode={gone.exit_code} reason={gone.reason}",
        )
        for gone in report.trial.container_exits
    ]
    ends = [("ended", _pod_end(end)) for end in report.trial.pod_ends]
    return [*table(rows), "", *table([*figures(report.trial), *orders, *exits, *ends])]


def _pod_end(end: PodEnd) -> str:
    """Who ended a container, by what, when, and what of its hook: one line."""
    name = f"{end.pod}/{end.container}" + (f" (run {end.restart + 1})" if end.restart else "")
    parts = [f"{name}: {end.ended_by} by {end.initiator}", f"at {duration(end.ended_ns)}"]
    if end.ended_by in (EndedBy.SIGKILL_AT_GRACE, EndedBy.SIGNAL_NOT_DELIVERED, *_DOUBTFUL):
        parts.append(f"kill expected {duration(end.expected_kill_ns)}")
    if end.deletion_grace_period_s is not None:
        parts.append(f"grace {end.deletion_grace_period_s} s")
    if end.pre_stop is None:
        parts.append("preStop unknown")
    elif end.pre_stop is not PreStopOutcome.NONE:
        parts.append(f"preStop {end.pre_stop} after {duration(end.pre_stop_ns)}")
    if end.in_flight_at_sigterm:
        age_ns = end.oldest_in_flight_ns
        age = "" if age_ns is None else f", the oldest for {duration((age_ns, age_ns))}"
        parts.append(f"{end.in_flight_at_sigterm} in flight at SIGTERM{age}")
    return ", ".join(parts)


_DOUBTFUL = (EndedBy.KILLED_EARLY, EndedBy.UNKNOWN)


_ANSWERS = {Order.BEFORE: "yes", Order.AFTER: "no", Order.INDETERMINATE: "indeterminate"}


def _words(name: str) -> str:
    return name.replace("_", " ")


def _flows(flows: Sequence[FlowReport]) -> list[str]:
    rows = [("ID", "ROLE", "OUTCOME", "MECHANISM", "END", "LAST SEQ", "ANSWERED", "DETAIL")]
    rows += [
        (
            flow.id,
            str(flow.role or "-"),
            str(flow.outcome),
            str(flow.mechanism),
            "-" if flow.terminal_ns is None else duration(flow.terminal_ns),
            str(_first(flow.last_heartbeat_seq, flow.last_answered_seq, "-")),
            str(_first(flow.answered, "-")),
            flow.detail or "",
        )
        for flow in flows
    ]
    return table(rows, width=160)


def _first(*values: object) -> object:
    return next(value for value in values if value is not None)


def _folded(entries: Iterable[TimelineEntry]) -> Iterable[TimelineEntry]:
    """Equal flow ends next to each other become one entry, the first, with a count."""
    pending: list[TimelineEntry] = []

    def flush() -> Iterable[TimelineEntry]:
        if len(pending) > 1:
            last = pending[-1].t_ms
            text = f"{len(pending)} flows by {last:+d} ms: {pending[0].detail}"
            yield replace(pending[0], flow_id=None, detail=text)
        else:
            yield from pending
        pending.clear()

    for entry in entries:
        fate = (entry.detail or "").partition(":")[0]
        if entry.event == "flow_terminal":
            if pending and (pending[0].detail or "").partition(":")[0] != fate:
                yield from flush()
            pending.append(entry)
            continue
        yield from flush()
        yield entry
    yield from flush()
