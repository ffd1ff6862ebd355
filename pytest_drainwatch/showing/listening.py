"""Hooks that need to know whose they are: those of the process that shows the run.

Without xdist that is the only one; with xdist it is the controller, which runs no test.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import session
from pytest_drainwatch.showing.stash import SCREEN

if TYPE_CHECKING:
    from pytest_drainwatch.planning.planned import Plan
    from pytest_drainwatch.showing.board import Board

REPORTS = pytest.StashKey[list[pytest.TestReport]]()
# Of a run that sets out to measure.
PLAN: pytest.StashKey[Plan] = pytest.StashKey()


class Listener:
    """Keeps what tests report, and shows what workers say meanwhile."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports = config.stash[REPORTS] = []
        self._board: Board | None = None
        self._told: dict[str, object] | None = None
        self._signals = ExitStack()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._hide()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)
        self._hide()
        if self._board is not None:
            node = getattr(report, "node", None)
            if node is not None and report.when == "teardown":
                self._board.over(node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker is about to be started: what it has to know of this run."""
        if self._told is None:  # once: whether there is a Docker may take a second to learn
            self._told = session.told_to_workers(self._config)
        node.workerinput.update(self._told)
        if self._board is None:
            from pytest_drainwatch.showing.board import Board

            self._board = Board(self._config)
        if self._board.name is not None:
            node.workerinput["dw_relay"] = self._board.name
            node.workerinput["dw_isatty"] = self._board.live

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """The first worker knows what will be measured: say it, as a run without xdist does.

        From now on a SIGTERM ends the run as Ctrl-C does; a run without trials keeps its own.
        """
        from pytest_drainwatch import interrupts
        from pytest_drainwatch.planning import planned

        if PLAN in self._config.stash:
            return
        plan = planned.published(self._config)
        if not plan.trials:
            return
        self._config.stash[PLAN] = plan
        self._signals.enter_context(interrupts.raised())
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None and self._config.get_verbosity() >= 0:
            terminal.ensure_newline()
            if terminal.isatty():  # xdist's "ready: 2/2 workers", which it rewrites itself
                terminal.rewrite("", erase=True)
                terminal.write("\r")
            for line in (*session.whereabouts(self._config), *plan.words):
                terminal.write_line(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if self._board is not None:
            self._board.hide()
            self._board.over(node.gateway.id)

    def _hide(self) -> None:
        """Somebody else writes next: nothing that moves is left, nothing said kept back."""
        if self._board is not None:
            self._board.hide()
        elif SCREEN in self._config.stash:
            self._config.stash[SCREEN].hide()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if self._board is not None:
            from pytest_drainwatch.planning import planned

            self._board.close()
            planned.clear_up(self._config)
            self._signals.close()


def measured(config: pytest.Config) -> bool:
    """Whether this process shows a run that set out to measure, or in which a test did."""
    reports = config.stash.get(REPORTS, None)
    if reports is None:
        return False
    if PLAN in config.stash:
        return True
    names = [str(name) for report in reports for name, _ in report.user_properties]
    if not names:
        return False
    from pytest_drainwatch.telling.told import ours

    return any(map(ours, names))
