"""A trial that could not be measured, in pytest's own words for it: short, and without our code.

Its text says what was expected and what to look at; how our code came there helps nobody.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pytest_drainwatch

WIDTH = 90  # of the line of code that is shown
HOUSE = Path(pytest_drainwatch.__file__).parent
# By the names of their modules, so that nothing is loaded for a test that is not ours.
SAID_IN_FULL = {
    "pytest_drainwatch.preflight.check": "TrialVoid",
    "pytest_drainwatch.cluster": "ClusterError",
}


def shorten(
    item: pytest.Item, report: pytest.TestReport, excinfo: pytest.ExceptionInfo[BaseException]
) -> None:
    """Show what such an error says, and where the user's own code met it; no more.

    ``--full-trace`` shows all of it.
    """
    if not _says_all(excinfo.value) or item.config.getoption("fulltrace", default=False):
        return
    from pytest_drainwatch.explain import void_text

    brief = excinfo.getrepr(style="value", chain=False)
    text = void_text(f"{type(excinfo.value).__name__}: {excinfo.value}")
    lines = [f"E   {line}".rstrip() for line in text.splitlines()]
    where = _theirs(item, excinfo)
    brief.reprtraceback.reprentries[-1].lines = [*where, *lines]
    report.longrepr = brief


def _says_all(error: BaseException) -> bool:
    return any(
        (module := sys.modules.get(name)) is not None and isinstance(error, getattr(module, kind))
        for name, kind in SAID_IN_FULL.items()
    )


def _theirs(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> list[str]:
    """The last line of the user's code on the way: none if a fixture of ours met it."""
    for entry in reversed(excinfo.traceback.filter(excinfo)):
        path = Path(entry.path)
        if path.is_relative_to(item.config.rootpath) and not path.is_relative_to(HOUSE):
            where = f"{path.relative_to(item.config.rootpath)}:{entry.lineno + 1}"
            line = str(entry.statement).strip().partition("\n")[0]
            return [f">   {line[:WIDTH]}", "", where]
    return []
