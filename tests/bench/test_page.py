"""The page of many flows is measured in a real browser, and either verdict can be had."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench import page as bench
from bench.browser import HOW_TO_GET, BrowserError, chromium, find_chromium
from bench.page import BEYOND, NO_BROWSER, WITHIN, verdict

# Where a cluster was asked for, as CI does, a missing browser is an error.
needs_browser = pytest.mark.skipif(
    find_chromium() is None and not os.environ.get("DW_CLUSTER"),
    reason=f"chromium is not installed: {HOW_TO_GET}",
)


@pytest.mark.parametrize(
    ("size_mb", "paint_ms", "code"),
    [(5.0, 1000.0, WITHIN), (5.1, 10.0, BEYOND), (0.1, 1001.0, BEYOND)],
)
def test_either_verdict(size_mb: float, paint_ms: float, code: int) -> None:
    assert verdict(size_mb, paint_ms) == code


@needs_browser
def test_a_small_page_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "GOAL_PAINT_MS", 1e9)
    monkeypatch.setattr(bench, "PANNED", 3)
    assert bench.main(["--flows", "20", "--rounds", "1"]) == WITHIN
    told: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    figures = {line["figure"]: line["value"] for line in told}
    assert list(figures) == [
        "page_making_s", "page_size_mb", "page_first_paint_ms",
        "page_panned_frame_median_ms", "page_panned_frame_longest_ms",
    ]  # fmt: skip
    assert figures["page_first_paint_ms"] > 0


def test_no_browser_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert bench.main(["--flows", "20", "--rounds", "1"]) == NO_BROWSER
    assert "drainwatch setup --for-tests" in capsys.readouterr().err


def test_a_browser_that_does_not_start_is_said_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(BrowserError, match=r"does not start.*--headless --dump-dom"), chromium():
        pytest.fail("it did")
