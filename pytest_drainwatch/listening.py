"""Hooks that need to know whose they are: those of the process that shows the run.

Without xdist that is the only one; with xdist it is the controller, which runs no test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_drainwatch import planned, session
from pytest_drainwatch.told import TOLD, Told

if TYPE_CHECKING:
    from pytest_drainwatch.board import Board


class Listener:
    """Keeps what reports tell, and shows what workers say meanwhile."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._told = config.stash[TOLD] = Told()
        self._board: Board | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        if self._board is not None:
            self._board.hide()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._told.note(report)
        if self._board is not None:
            self._board.hide()
            node = getattr(report, "node", None)
            if node is not None and report.when == "teardown":
                self._board.over(node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker is about to be started: what it has to know of this run."""
        node.workerinput.update(session.told_to_workers(self._config))
        if self._board is None:
            from pytest_drainwatch.board import Board

            self._board = Board(self._config)
        if self._board.name is not None:
            node.workerinput["dw_relay"] = self._board.name
            node.workerinput["dw_isatty"] = self._board.live

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """The first worker knows what will be measured: say it, as a run without xdist does."""
        if planned.PLAN in self._config.stash:
            return
        plan = self._config.stash[planned.PLAN] = planned.published(self._config)
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None and self._config.get_verbosity() >= 0:
            terminal.ensure_newline()
            for line in plan.words:
                terminal.write_line(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if self._board is not None:
            self._board.hide()
            self._board.over(node.gateway.id)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if self._board is not None:
            self._board.close()
