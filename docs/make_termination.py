"""Draws docs/termination.svg, a pod's end, from a report in results/sample/: ``make docs``.

What is known within bounds is drawn as wide as it is uncertain: pale where it may be so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from pytest_drainwatch import report
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S, Bounds
from pytest_drainwatch.core.windows.document import Span

TARGET = Path(__file__).with_name("termination.svg")
SAMPLE = Path(__file__).resolve().parents[1] / "results" / "sample" / "kubernetes-1.37"
REPORT = SAMPLE / "B-drain-delete" / "r00" / "report.json"

# What the sample's scenario asks for, and where its panels are.
DRAIN_S = 25
WIDTH, LEFT, RIGHT, TOP = 1000, 190, 20, 62
# Most of a drain nothing happens: two panels, each from, to (ns), and its share of the width.
PANELS = (
    (-100 * NS_PER_MS, 1_400 * NS_PER_MS, 0.72),
    (DRAIN_S * NS_PER_S - 50 * NS_PER_MS, DRAIN_S * NS_PER_S + 400 * NS_PER_MS, 1.0),
)
GAP = 24
ROW, THIN = 22, 4
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 11px; fill: #59636e; }
  .ground { fill: #ffffff; }
  .line { stroke: #8c959f; stroke-width: 1; }
  .signal { stroke: #1f2328; stroke-width: 1.5; stroke-dasharray: 5 3; }
  .calm { fill: #0072b2; }
  .other { fill: #009e73; }
  .hurt { fill: #d55e00; }
  .may { opacity: 0.35; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .small { fill: #9198a1; } .ground { fill: #0d1117; }
    .signal { stroke: #f0f6fc; } .calm { fill: #56b4e9; } .hurt { fill: #ff8c42; }
  }
"""


class Picture:
    """The lines of an SVG, from top to bottom."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.y = TOP

    def label(self, text: str, note: str = "") -> None:
        """The name of the row that comes next, on its left."""
        self.lines.append(f'<text x="8" y="{self.y + 13}">{escape(text)}</text>')
        if note:
            small = f'<text class="small" x="8" y="{self.y + 28}">{escape(note)}</text>'
            self.lines.append(small)

    def text(self, at_ns: int, text: str, dy: int = 13) -> None:
        """A note right of an instant."""
        x = place(at_ns)
        if x is not None:
            words = f'<text class="small" x="{x + 4:.1f}" y="{self.y + dy}">{escape(text)}</text>'
            self.lines.append(words)

    def bar(self, begins: Bounds, ends: Bounds, kind: str, height: int = 14) -> None:
        """A stretch of time: full where it is certain, pale where it may be."""
        for lo, hi, may in (
            (begins[0], min(begins[1], ends[1]), " may"),
            (begins[1], ends[0], ""),
            (max(ends[0], begins[0]), ends[1], " may"),
        ):
            for left, right in within(lo, hi):
                self.lines.append(
                    f'<rect class="{kind}{may}" x="{left:.1f}" y="{self.y + 2}" '
                    f'width="{max(right - left, 0.7):.1f}" height="{height}"/>'
                )

    def next(self, by: int = ROW) -> None:
        """Go down."""
        self.y += by


def edges() -> Iterator[tuple[int, int, float, float]]:
    """Each panel: its times, and from where to where it lies."""
    inner = WIDTH - LEFT - RIGHT - GAP
    (from_a, to_a, share), (from_b, to_b, _) = PANELS
    split = LEFT + inner * share
    yield from_a, to_a, LEFT, split
    yield from_b, to_b, split + GAP, WIDTH - RIGHT


def place(at_ns: int) -> float | None:
    """Where an instant lies; None: in no panel."""
    for begins, ends, left, right in edges():
        if begins <= at_ns <= ends:
            return left + (at_ns - begins) / (ends - begins) * (right - left)
    return None


def within(lo: int, hi: int) -> Iterator[tuple[float, float]]:
    """The parts of a stretch of time that are in a panel."""
    for begins, ends, left, right in edges():
        scale = (right - left) / (ends - begins)
        a, b = max(lo, begins), min(hi, ends)
        if a < b:
            yield left + (a - begins) * scale, left + (b - begins) * scale


def draw(trial: TrialReport) -> str:
    """The picture of a trial of one target pod."""
    (window,), (end,) = trial.windows, trial.pod_ends
    (tried,) = trial.new_connections
    sigterm, ended = end.sigterm_ns, end.ended_ns
    assert sigterm is not None
    assert ended is not None
    assert trial.config["drain_max_seconds"] == DRAIN_S
    forever = (PANELS[1][1], PANELS[1][1])
    picture = Picture()

    picture.label("container")
    picture.bar((PANELS[0][0],) * 2, ended, "calm")
    picture.next()
    for name, span in (
        ("advertised", window.advertised),
        ("ready-routable", window.ready_routable),
        *(("fallback-routable", each) for each in window.fallback_routable or ()),
        ("dead endpoint", window.dead_endpoint),
    ):
        picture.label(name)
        _span(picture, span)
        picture.next()
    picture.next(8)

    picture.label("new connections", f"{tried.failed} of {tried.attempts} failed")
    for run in tried.runs:
        kind = "calm" if run.result == "answered" else "hurt"
        picture.bar((run.at_ns[0],) * 2, (run.at_ns[1],) * 2, kind)
        if kind == "hurt":
            picture.text(run.at_ns[0], f"{run.count} {run.result}", dy=29)
    picture.next(ROW + 16)

    picture.label("10 TCP flows", "each closed cleanly")
    for flow in trial.flows:
        if flow.proto == "tcp" and flow.terminal_ns is not None:
            picture.bar((PANELS[0][0],) * 2, flow.terminal_ns, "calm", THIN - 1)
            picture.next(THIN)
    picture.next(14)
    picture.label("10 UDP flows", "led to another pod")
    for flow in trial.flows:
        if flow.proto == "udp" and flow.terminal_ns is not None:
            picture.bar((PANELS[0][0],) * 2, flow.terminal_ns, "calm", THIN - 1)
            picture.bar(flow.terminal_ns, forever, "other", THIN - 1)
            picture.next(THIN)
    picture.next(12)

    return _document(picture, trial, sigterm[1])


def _span(picture: Picture, span: Span) -> None:
    if span.opens_ns is None or span.closes_ns is None:
        picture.text(0, span.note or "not seen")
        return
    picture.bar(span.opens_ns, span.closes_ns, "calm")


def _document(picture: Picture, trial: TrialReport, sigterm_ns: int) -> str:
    bottom = picture.y + 26
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 8}" role="img">',
        f"<title>{escape(trial.id)}: a pod that drains for {DRAIN_S} s is deleted</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{bottom + 8}"/>',
    ]
    for begins, ends, left, right in edges():
        y = picture.y + 4
        lines.append(f'<line class="line" x1="{left:.1f}" y1="{y}" x2="{right:.1f}" y2="{y}"/>')
        step = 200 * NS_PER_MS
        for at_ns in range(-(-begins // step) * step, ends + 1, step):
            x = place(at_ns)
            lines.append(f'<line class="line" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 5}"/>')
            lines.append(
                f'<text class="small" x="{x:.1f}" y="{y + 18}" text-anchor="middle">'
                f"{at_ns / NS_PER_S:.1f} s</text>"
            )
    for at_ns, words, y in ((0, "pod deleted, t = 0", 22), (sigterm_ns, "SIGTERM", 40)):
        x = place(at_ns)
        lines.append(
            f'<line class="signal" x1="{x:.1f}" y1="{y - 10}" x2="{x:.1f}" y2="{picture.y + 4}"/>'
        )
        lines.append(f'<text x="{x + 5 if x else 0:.1f}" y="{y}">{words}</text>')
    end = place(sigterm_ns + DRAIN_S * NS_PER_S)
    lines.append(
        f'<line class="signal" x1="{end:.1f}" y1="30" x2="{end:.1f}" y2="{picture.y + 4}"/>'
    )
    lines.append(f'<text x="{end + 5 if end else 0:.1f}" y="40">SIGTERM + {DRAIN_S} s</text>')
    return "\n".join([*lines, *picture.lines, "</svg>\n"])


def page() -> str:
    """The picture of the sample."""
    return draw(report.loads(REPORT.read_text(encoding="utf-8")).trial)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
