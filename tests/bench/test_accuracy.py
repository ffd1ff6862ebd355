"""The figures and the exit code of ``bench.accuracy``, from verdicts made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import accuracy
from bench.tcpdump import CaptureError
from bench.truth import Claim, Evidence, Verdict
from pytest_drainwatch.core.flow.classify import Mechanism
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.interval import NS_PER_MS, Interval


def verdict(number: int, width_ms: int, fault: str | None = None) -> Verdict:
    """The truth is 1 ms after the interval's beginning."""
    claim = Claim(
        flow=f"tcp-{number:04d}",
        proto=Proto.TCP,
        mechanism=Mechanism.RST,
        client=("198.18.0.1", 40000 + number),
        end=Interval(0, width_ms * NS_PER_MS),
    )
    evidence = Evidence("RST", Interval(NS_PER_MS, NS_PER_MS + 300))
    return Verdict(claim=claim, evidence=(evidence,), fault=fault)


def by_name(verdicts: list[Verdict]) -> dict[str, tuple[object, object]]:
    found = [*accuracy.figures(verdicts)]
    return {str(f["figure"]): (f["value"], f["goal"]) for f in found}


def test_figures_are_order_statistics() -> None:
    figures = by_name([verdict(n, n) for n in range(1, 201)])
    assert figures["tcp_ends"] == (200, None)
    assert figures["tcp_end_coverage"] == (1.0, "== 1")
    assert figures["tcp_end_width_p50_ms"] == (100.0, None)
    assert figures["tcp_end_width_p99_ms"] == (198.0, "<= 2")
    assert figures["tcp_end_width_max_ms"] == (200.0, None)
    assert figures["tcp_end_error_max_ms"] == (199.0, None)
    assert figures["tcp_end_slack_min_ms"] == (1.0, None)
    assert figures["capture_clock_doubt_max_us"] == (0.3, None)
    assert not any(name.startswith("udp") for name in figures)


def test_one_flow_in_two_hundred_is_not_lost_in_rounding() -> None:
    figures = by_name([verdict(n, 2, "not covered" if n == 7 else None) for n in range(200)])
    assert figures["tcp_end_coverage"] == (0.995, "== 1")


@pytest.mark.parametrize(("fault", "code"), [(None, 0), ("not covered: RST outside", 1)])
def test_exit_code(
    fault: str | None,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = [SimpleNamespace(verdicts=(verdict(1, 2), verdict(2, 2, fault)))]
    monkeypatch.setattr(accuracy, "_run", lambda scenarios, folder: iter(seen))
    assert accuracy.main(["--keep", str(tmp_path)]) == code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(line.keys() == {"figure", "value", "unit", "goal"} for line in lines)


def test_a_capture_with_holes_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> list[object]:
        raise CaptureError("the capture has holes")

    monkeypatch.setattr(accuracy, "_run", run)
    assert accuracy.main(["--keep", str(tmp_path)]) == 3
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "could not measure: the capture has holes\n")


def test_nothing_measured_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "_run", lambda scenarios, folder: iter([]))
    assert accuracy.main(["--trials", "0", "--keep", str(tmp_path)]) == 3
