"""What holds for a whole run: where its results are, and by what it was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.planning import planned
from pytest_drainwatch.results import has_report
from pytest_drainwatch.session import RUN, shown
from pytest_drainwatch.showing.listening import REPORTS
from pytest_drainwatch.telling.attempts import Told
from pytest_drainwatch.telling.told import PAGE, PROPERTY

# What each trial tells, and trials of one run may differ in.
_MEASURED_BY = ("kubernetes", "cluster", "build")


def of_run(config: pytest.Config) -> dict[str, str]:
    """Paths as one types them where pytest was called; of several values all, in their order.

    The page and the summary are written last of all, where there is something to write of.
    """
    folder = config.stash[RUN].folder
    if not anything(folder):
        return {}
    pages = {"page": str(shown(config, folder / PAGE))} if has_report(folder) else {}
    trials = Told.of(config.stash[REPORTS]).trials
    found = {
        name: ", ".join(dict.fromkeys(each.told(name) for each in trials if each.told(name)))
        for name in _MEASURED_BY
    }
    return {
        "run": str(shown(config, folder)),
        "summary": str(shown(config, folder / "summary.json")),
        **pages,
        **{name: value for name, value in found.items() if value},
    }


def anything(folder: Path) -> bool:
    """Whether there is more in a run's folder than a plan."""
    try:
        return any(path.name != planned.FILE for path in folder.iterdir())
    except OSError:
        return False


def tell_junit(config: pytest.Config) -> list[str]:
    """Properties of the test suite, which pytest's own fixture cannot set in a worker of xdist."""
    plugins = config.pluginmanager.get_plugins()
    xml: Any = next((each for each in plugins if hasattr(each, "add_global_property")), None)
    if xml is not None:
        for name, value in of_run(config).items():
            xml.add_global_property(f"{PROPERTY}{name}", value)
    return []
