"""A headless Chromium as a context, cut off from any network: for pages, their tests and pictures.

The distribution's own browser, found on PATH; none is ever downloaded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_drainwatch.cluster.embedded.machine import TEST_PROGRAMS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOW_TO_GET = "drainwatch setup --for-tests"
# The same picture on every machine: no scale of a screen, no fonts' hinting of a desktop.
_ALIKE = ("--force-device-scale-factor=1", "--font-render-hinting=none")
_QUIET = ("--disable-background-networking", "--no-first-run", "--disable-dev-shm-usage")


class BrowserError(Exception):
    """No browser, or none that starts; the message says what to do."""


def find_chromium() -> str | None:
    """Where Chromium is, if it is."""
    names = TEST_PROGRAMS["chromium"]
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser until the end of the block.

    While it is open this thread has a running event loop: ``asyncio.run`` is refused there.

    Raises:
        BrowserError: it is not installed, or does not start.
    """
    program = find_chromium()
    if program is None:
        raise BrowserError(f"no chromium on PATH; expected one. Next: {HOW_TO_GET}")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise BrowserError(
            "the Python package playwright is missing; expected it beside the tests."
            " Next: pip install --group test"
        ) from None
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=program,
                # root has no sandbox of its own to give away, and Chromium refuses to start
                chromium_sandbox=os.geteuid() != 0,
                args=[*_ALIKE, *_QUIET],
            )
        except Error as error:
            raise BrowserError(
                f"{program} does not start: {error.message.splitlines()[0]}. Expected it to. Try: "
                f"{program} --headless --dump-dom about:blank"
            ) from error
        try:
            yield browser
        finally:
            browser.close()
