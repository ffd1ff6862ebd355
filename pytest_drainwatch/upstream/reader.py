"""Reading the ancestor's files: exactly what it writes, or an error with file and field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.upstream.digest import Arm, UpstreamSummary
from pytest_drainwatch.upstream.document import COUNTED, Happening, UpstreamReport


class UpstreamError(ValueError):
    """Not a document of drainwatch v0.1; names the file, the field, and what was expected."""


def read_report(path: Path) -> UpstreamReport:
    """A report.json that does not contradict itself. Raises :class:`UpstreamError`."""
    report: UpstreamReport = _read(path, UpstreamReport, "report.json")
    problem = next(_contradictions(report), None)
    if problem is not None:
        raise UpstreamError(
            f"{path}: {problem}; expected a report as drainwatch v0.1 wrote it: "
            "was this one edited or damaged?"
        )
    return report


def read_summary(path: Path) -> UpstreamSummary:
    """A summary.json. Raises :class:`UpstreamError`."""
    summary: UpstreamSummary = _read(path, UpstreamSummary, "summary.json")
    return summary


def read_aggregate(path: Path) -> tuple[Arm, ...]:
    """An aggregate.json: one entry an arm. Raises :class:`UpstreamError`."""
    arms: tuple[Arm, ...] = _read(path, tuple[Arm, ...], "aggregate.json")
    return arms


def _read(path: Path, kind: Any, name: str) -> Any:
    from pydantic import ValidationError

    try:
        text = path.read_bytes()
    except OSError as error:
        raise UpstreamError(f"{path}: cannot read it: {error.strerror or error}") from error
    try:
        return _adapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        more = error.error_count() - 1
        raise UpstreamError(
            f"{path}: not a {name} of drainwatch v0.1: {_where(first['loc'])}: {_why(first)}"
            + (f" (and {more} more)" if more else "")
        ) from error


def _where(parts: tuple[int | str, ...]) -> str:
    """``trial.flows[3].outcome``"""
    words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return words.lstrip(".") or "the document"


def _why(error: Any) -> str:
    if error["type"] == "unexpected_keyword_argument":
        return "unknown field, which v0.1 does not write"
    if error["type"] == "missing":
        return "is missing"
    if error["type"] == "json_invalid":
        return str(error["msg"])
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    found = repr(error["input"])
    short = found if len(found) <= 60 else f"{found[:59]}…"
    return f"is {short}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _contradictions(report: UpstreamReport) -> Iterator[str]:
    """What a report says twice must be the same twice."""
    trial = report.trial
    flows = {flow.id: flow for flow in trial.flows}
    if len(flows) < len(trial.flows):
        twice = [name for name, n in Counter(f.id for f in trial.flows).items() if n > 1]
        yield f"trial.flows: several flows are called {twice[0]}"
    for number, flow in enumerate(trial.flows):
        if flow.proto is Proto.TCP and flow.last_answered_seq is not None:
            yield f"trial.flows[{number}].last_answered_seq: a TCP flow has none"
        if flow.proto is Proto.UDP and flow.last_heartbeat_seq is not None:
            yield f"trial.flows[{number}].last_heartbeat_seq: a UDP flow has none"
    for number, entry in enumerate(trial.timeline or ()):
        if entry.event is not Happening.FLOW_TERMINAL or entry.source != "client":
            continue
        seen = flows.get(entry.flow_id or "")
        if seen is None:
            yield f"trial.timeline[{number}]: ends {entry.flow_id}, which is no flow of this report"
        elif seen.t_terminal_ms not in (None, entry.t_ms):
            yield (
                f"trial.timeline[{number}].t_ms is {entry.t_ms}, but t_terminal_ms of "
                f"{seen.id} is {seen.t_terminal_ms}"
            )
    for proto, said in ((Proto.TCP, trial.summary.tcp), (Proto.UDP, trial.summary.udp)):
        fates = Counter(flow.outcome for flow in trial.flows if flow.proto is proto)
        counted = {name: fates[outcome] for name, outcome in COUNTED.items()}
        counted["total"] = fates.total()
        for name, number in counted.items():
            if getattr(said, name) != number:
                yield (
                    f"trial.summary.{proto}.{name} is {getattr(said, name)}, "
                    f"but the flows say {number}"
                )


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
