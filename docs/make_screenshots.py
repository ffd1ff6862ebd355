"""Writes docs/screenshots/*.png: our pages as a browser shows them: ``make screenshots``.

The pictures are the same wherever the browser and its fonts are.
"""

from __future__ import annotations

import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.browser import chromium
from pytest_drainwatch.core.simulation.presets import PRESETS
from pytest_drainwatch.pages.assemble import assemble
from pytest_drainwatch.pages.gather import Asked, page_of
from pytest_drainwatch.pages.simulation import simulation_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = Path(__file__).parent
TARGET = HERE / "screenshots"
SAMPLE = HERE.parent / "results" / "sample" / "kubernetes-1.37"
MOST_BYTES = 200_000  # of one picture: it is read in a browser, over a telephone
DRAIN, EXIT_NOW = "B-drain-delete/r00", "A-exit-now-delete/r00"
_DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
DESK, TALL, PHONE = (1280, 900), (1280, 1480), (390, 800)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture: where the page is opened, in which theme, in how big a window.

    ``preset``: of the simulator's page with these inputs; None: of the sample run's.
    """

    name: str
    route: str = ""
    preset: str | None = None
    theme: Literal["light", "dark"] = "light"
    size: tuple[int, int] = DESK


SHOTS = (
    Shot(name="run-light", route="#/", size=TALL),
    Shot(name="run-dark", route="#/", theme="dark", size=TALL),
    Shot(name="drain-light", route=f"#/trial/{DRAIN}", size=TALL),
    Shot(name="drain-dark", route=f"#/trial/{DRAIN}", theme="dark", size=TALL),
    Shot(name="exit-now-light", route=f"#/trial/{EXIT_NOW}", size=TALL),
    Shot(name="exit-now-dark", route=f"#/trial/{EXIT_NOW}", theme="dark", size=TALL),
    Shot(name="run-phone", route="#/", size=PHONE),
    Shot(name="drain-phone", route=f"#/trial/{DRAIN}", size=PHONE),
    Shot(name="simulation-light", preset="load-balancer", size=TALL),
    Shot(name="simulation-dark", preset="load-balancer", theme="dark", size=TALL),
    Shot(name="simulation-phone", preset="grace-20", size=PHONE),
)


def main() -> None:
    """Write all of them."""
    TARGET.mkdir(exist_ok=True)
    pages: dict[str | None, str] = {None: assemble(page_of([SAMPLE], Asked()))}
    pages |= {preset.name: simulation_page(preset.inputs) for preset in PRESETS}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        file = Path(folder, "page.html")
        for shot in SHOTS:
            file.write_text(pages[shot.preset], encoding="utf-8")
            picture = taken(browser, file, shot)
            if len(picture) > MOST_BYTES:
                raise SystemExit(
                    f"{shot.name}.png has {len(picture):,} bytes; expected {MOST_BYTES:,} at most."
                    " Show less of the page in it"
                )
            (TARGET / f"{shot.name}.png").write_bytes(picture)
            print(f"docs/screenshots/{shot.name}.png")


def taken(browser: Browser, file: Path, shot: Shot) -> bytes:
    """The picture as PNG."""
    width, height = shot.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=shot.theme,
        reduced_motion="reduce",
        locale="en-US",
        offline=True,
    )
    try:
        tab = context.new_page()
        tab.goto(file.as_uri() + shot.route)
        tab.locator("main h1").wait_for()
        # Canvases are drawn in a frame of their own.
        tab.evaluate(_DRAWN)
        return _small(tab.screenshot(animations="disabled", caret="hide"))
    finally:
        context.close()


def _small(png: bytes) -> bytes:
    """The same in 256 colours; nothing in a page has more that matter."""
    from PIL import Image

    small = io.BytesIO()
    colours = Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours.save(small, "PNG", optimize=True)
    return small.getvalue()


if __name__ == "__main__":
    main()
