"""A tab that is watched: whatever it says, throws, asks for or is refused becomes a line."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
PATIENCE_MS = 10_000
_LISTEN = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`violates ${event.violatedDirective}: ${event.blockedURI}`);
});
"""


class Watched:
    """A tab without a network; ``context`` goes to the browser: has_touch, viewport, …

    ``troubles`` are what pages did that they must not, since :meth:`open`; all of them are
    known once :meth:`settle` was called.
    """

    def __init__(self, browser: Browser, **context: Any) -> None:
        self.troubles: list[str] = []
        self._file: Path | None = None
        self._context = browser.new_context(**{"viewport": WIDE, **context})
        self._context.set_default_timeout(PATIENCE_MS)
        self._context.set_offline(True)
        self._context.add_init_script(_LISTEN)
        self.tab = self._context.new_page()
        say = self.troubles.append
        self.tab.on("console", lambda said: say(f"console {said.type}: {said.text}"))
        self.tab.on("pageerror", lambda error: say(f"thrown: {error}"))
        self.tab.on("request", self._asked)

    def open(self, file: Path, route: str = "") -> None:
        """Shows a file, as if nothing had been shown before."""
        self.troubles.clear()
        self._file = file
        self.tab.mouse.move(0, 0)
        self.tab.goto(file.as_uri() + route)

    def settle(self) -> None:
        """Waits for what the page says of itself."""
        self.troubles += self.tab.evaluate("window.violations")

    def _asked(self, request: Any) -> None:
        if self._file is None or request.url.partition("#")[0] != self._file.as_uri():
            self.troubles.append(f"asked for {request.url}")

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._context.close()
