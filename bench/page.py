"""How big is the page of a trial with 10,000 flows, and how soon does a browser show it?

    python -m bench.page [--flows 10000] [--rounds 3]

The recording is that of bench/derive.py. Prints one JSON line per figure: the size of the page,
the processor time of making it out of the report, the time from the start of navigation to the
first paint with content (the least of all rounds, each in a fresh tab of a headless Chromium),
and the frames while the picture is panned by the keyboard.
Exit code: 0 within the goals, 1 not, 2 there is no browser.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.arguments import positive
from bench.browser import BrowserError, chromium
from bench.derive import generated
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.pages.assemble import assemble
from pytest_drainwatch.render.page.data import FORMAT, Page
from pytest_drainwatch.render.page.trial import trial

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WITHIN, BEYOND, NO_BROWSER = 0, 1, 2
GOAL_MB, GOAL_PAINT_MS = 5.0, 1000.0
PANNED = 60  # frames
_PAINT = """
new Promise((resolve) => new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime);
}).observe({ type: "paint", buffered: true }))
"""
_PAN = """
(frames) => new Promise((resolve) => {
  const lasted = [];
  let before = performance.now();
  const key = () => document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  const frame = (now) => {
    lasted.push(now - before);
    before = now;
    if (lasted.length > frames) return resolve(lasted.slice(1));
    key();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})
"""


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.page", description="size and first paint of a page of many flows"
    )
    parser.add_argument("--flows", type=positive, default=10_000, help="half TCP (%(default)s)")
    parser.add_argument("--rounds", type=positive, default=3, help="(%(default)s)")
    arguments = parser.parse_args(argv)
    text, making_s = made(arguments.flows)
    size_mb = len(text.encode()) / 1e6
    _print("page_making_s", making_s, "s")
    _print("page_size_mb", size_mb, "MB", f"<= {GOAL_MB:g}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(text, encoding="utf-8")
        try:
            with chromium() as browser:
                rounds = [_round(browser, file) for _ in range(arguments.rounds)]
        except BrowserError as error:
            print(error, file=sys.stderr)
            return NO_BROWSER
    paint_ms = min(painted for painted, _ in rounds)
    frames = [each for _, panned in rounds for each in panned]
    _print("page_first_paint_ms", paint_ms, "ms", f"<= {GOAL_PAINT_MS:g}")
    _print("page_panned_frame_median_ms", statistics.median(frames), "ms")
    _print("page_panned_frame_longest_ms", max(frames), "ms")
    return verdict(size_mb, paint_ms)


def verdict(size_mb: float, paint_ms: float) -> int:
    """The exit code."""
    return WITHIN if size_mb <= GOAL_MB and paint_ms <= GOAL_PAINT_MS else BEYOND


def made(flows: int) -> tuple[str, float]:
    """The page of a trial with so many flows, and the seconds of processor time it took."""
    report = derive(generated(flows))
    begun = time.process_time()
    text = assemble(
        Page(format=FORMAT, title="many", made_by="bench", run=None, trials=[trial(report)])
    )
    return text, time.process_time() - begun


def _round(browser: Browser, file: Path) -> tuple[float, list[float]]:
    """First paint, and the frames of panning, in milliseconds."""
    context = browser.new_context(offline=True)
    try:
        tab = context.new_page()
        tab.goto(file.as_uri())
        painted: float = tab.evaluate(_PAINT)
        panned: list[float] = tab.evaluate(_PAN, PANNED)
        return painted, panned
    finally:
        context.close()


def _print(name: str, value: float, unit: str, goal: str | None = None) -> None:
    figure: dict[str, Any] = {"figure": name, "value": round(value, 3), "unit": unit, "goal": goal}
    print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    sys.exit(main())
