"""The ancestor's files: read whole, or refused with the file and the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.upstream.reader import (
    UpstreamError,
    read_aggregate,
    read_report,
    read_summary,
)
from tests.upstream import example
from tests.upstream.example import Json

LEFT_OUT = object()


def changed(document: Json, where: str, value: object) -> Json:
    """``document`` with one field set, or left out; ``where`` is ``a.b.0.c``."""
    *path, last = (int(part) if part.isdigit() else part for part in where.split("."))
    inner: Any = document
    for part in path:
        inner = inner[part]
    if value is LEFT_OUT:
        del inner[last]
    else:
        inner[last] = value
    return document


def test_a_report_is_read(tmp_path: Path) -> None:
    report = read_report(example.write(tmp_path, example.report()))
    assert report.trial.flows[2].last_data_t_ms == 1910
    assert report.trial.config.flow_timeout_seconds == 10


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("extra", 1, "extra: unknown field"),
        ("trial.flows.1.rtt_ms", 1, "trial.flows[1].rtt_ms: unknown field"),
        ("environment.nodes.0.kernel", "6", "environment.nodes[0].kernel: unknown field"),
        ("trial.flows.1.last_data_t_ms", LEFT_OUT, "trial.flows[1].last_data_t_ms: is missing"),
        ("trial.flows.1.t_terminal_ms", True, "trial.flows[1].t_terminal_ms: is True"),
        ("trial.flows.1.t_terminal_ms", 5043.0, "trial.flows[1].t_terminal_ms: is 5043.0"),
        ("trial.flows.1.t_terminal_ms", "5043", "trial.flows[1].t_terminal_ms: is '5043'"),
        ("trial.config.flow_timeout_seconds", "10", "trial.config.flow_timeout_seconds: is '10'"),
        ("trial.flows.1.last_heartbeat_seq", None, "this field is left out when it is empty"),
        ("trial.flows.1.last_heartbeat_seq", -1, "trial.flows[1].last_heartbeat_seq: is -1"),
        ("trial.flows.1.outcome", "lost", "trial.flows[1].outcome: is 'lost'"),
        ("trial.flows.1.proto", "sctp", "trial.flows[1].proto: is 'sctp'"),
        ("trial.config.trigger", "rollout", "trial.config.trigger: is 'rollout'"),
        ("trial.config.drain_behavior", "nap", "trial.config.drain_behavior: is 'nap'"),
        ("trial.timeline.0.source", "kernel", "trial.timeline[0].source: is 'kernel'"),
        ("trial.timeline.0.event", "pod_ready_true", "trial.timeline[0].event: is 'pod_ready_t"),
        ("trial.summary.tcp.total", None, "trial.summary.tcp.total: is None"),
        ("trial.summary.notes", None, "trial.summary.notes: is None"),
    ],
)
def test_another_document_is_refused(tmp_path: Path, where: str, value: object, said: str) -> None:
    path = example.write(tmp_path, example.report())
    path.write_text(json.dumps(changed(example.report(), where, value)))
    with pytest.raises(UpstreamError) as refusal:
        read_report(path)
    assert str(path) in str(refusal.value)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("trial.flows.1.t_terminal_ms", 5034, "t_terminal_ms of tcp-0002 is 5034"),
        ("trial.flows.1.id", "tcp-0001", "several flows are called tcp-0001"),
        ("trial.flows.1.outcome", "severed", "trial.summary.tcp.drained is 2, but the flows say 1"),
        ("trial.summary.udp.total", 3, "trial.summary.udp.total is 3, but the flows say 2"),
        ("trial.flows.1.last_answered_seq", 7, "last_answered_seq: a TCP flow has none"),
        ("trial.flows.2.last_heartbeat_seq", 7, "last_heartbeat_seq: a UDP flow has none"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(
    tmp_path: Path, where: str, value: object, said: str
) -> None:
    path = example.write(tmp_path, example.report())
    path.write_text(json.dumps(changed(example.report(), where, value)))
    with pytest.raises(UpstreamError, match="edited or damaged") as refusal:
        read_report(path)
    assert said in str(refusal.value)


def test_an_end_of_a_flow_that_is_not_there_is_refused(tmp_path: Path) -> None:
    document = example.report()
    ends = [e for e in document["trial"]["timeline"] if e["event"] == "flow_terminal"]
    ends[0]["flow_id"] = "tcp-0009"
    path = example.write(tmp_path, document)
    with pytest.raises(UpstreamError, match="tcp-0009, which is no flow of this report"):
        read_report(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"report"'])
@pytest.mark.parametrize("read", [read_report, read_summary])
def test_no_document_at_all_is_refused(
    tmp_path: Path, text: str, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(UpstreamError, match=r"of drainwatch v0\.1: the document: "):
        read(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError, match=r"missing\.json: cannot read it: No such file"):
        read_aggregate(tmp_path / "missing.json")


@example.needs_published
def test_every_published_document_is_read() -> None:
    reports = [p for p in example.PUBLISHED.rglob("*.json") if p.name == "report.json"]
    singles = list((example.PUBLISHED / "2026-08-31-kind-v1.34.0").glob("*.json"))
    assert [len(reports), len(singles)] == [26, 3]
    for path in [*reports, *singles]:
        assert len(read_report(path).trial.flows) == 20
    summaries = sorted(example.PUBLISHED.rglob("summary.json"))
    assert [len(read_summary(path).trials) for path in summaries] == [5] * 5
    assert [arm.arm for arm in read_aggregate(example.MATRIX / "aggregate.json")] == list("ABCDE")


@example.needs_published
def test_a_published_aggregate_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    arms = json.loads((example.MATRIX / "aggregate.json").read_text())
    arms[2]["stats"][4]["mean"] = 30_000
    path = tmp_path / "aggregate.json"
    path.write_text(json.dumps(arms))
    with pytest.raises(UpstreamError, match=r"\[2\]\.stats\[4\]\.mean: unknown field"):
        read_aggregate(path)


@example.needs_published
def test_an_older_aggregate_has_no_build(tmp_path: Path) -> None:
    arms = json.loads((example.MATRIX / "aggregate.json").read_text())
    for arm in arms:
        del arm["build"]
    path = tmp_path / "aggregate.json"
    path.write_text(json.dumps(arms))
    assert {arm.build for arm in read_aggregate(path)} == {None}
