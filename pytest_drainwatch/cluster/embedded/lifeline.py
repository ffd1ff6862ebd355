"""The owner's end of the tie between a cluster and the process it ends with."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest_drainwatch
from pytest_drainwatch.cluster.embedded import machine, reaper
from pytest_drainwatch.cluster.embedded.layout import Layout

_END_TIMEOUT_S = 15.0


class Lifeline:
    """A started reaper, and the pipe that keeps its cluster alive."""

    def __init__(self, layout: Layout, locks: Sequence[int]) -> None:
        """Start the reaper, which starts the node. The reaper holds the *locks* as well."""
        # Both ends are close-on-exec, so that no other child keeps the cluster alive.
        read, self._write = os.pipe()
        self._held = True
        self._detached = False
        package_parent = Path(pytest_drainwatch.__file__).parents[1]
        # -S: the reaper needs no site-packages, and looking them up costs a start-up time.
        try:
            with layout.log("node").open("ab") as output:
                self._process = subprocess.Popen(
                    [
                        *(sys.executable, "-S", "-P", "-m", reaper.__name__),
                        *(str(layout.plan), str(read), str(os.getpid())),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd="/",
                    env={
                        "PYTHONPATH": str(package_parent),
                        "PATH": machine.search_path(),
                    },
                    pass_fds=[read, *locks],
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._write)
            raise
        finally:
            os.close(read)

    @property
    def reaper(self) -> int:
        """The reaper's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def detach(self) -> None:
        """Let the cluster live on after this process."""
        self._detached = True
        self._drop(reaper.DETACH)

    def end(self) -> bool:
        """End the cluster; `False` if the reaper is still at it when patience ends."""
        if self._detached:
            return True
        if self._held:
            self._drop(reaper.END)
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _drop(self, message: bytes) -> None:
        self._held = False
        # Said aloud: a child forked without exec may hold the pipe open after us.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._write, message)
        os.close(self._write)
