"""The agent's own part of the recording: observation lines, appended."""

from __future__ import annotations

import asyncio
import os
from collections import deque

from pytest_drainwatch.core.observation import Observation
from pytest_drainwatch.core.recording import dump_observation

LINES_PER_TURN = 8


class Recorder:
    """Writes observations soon, but never in the way of a socket that waits.

    Ten thousand flows may end at once; turning them into text right then would
    delay the stamps of the last ones. So lines are written in turns of the loop.
    """

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self.error: OSError | None = None
        self._loop = loop
        self._waiting: deque[Observation] = deque()
        self._scheduled = False
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o644)

    def write(self, seen: Observation) -> None:
        """Append an observation in the next turn of the loop."""
        self._waiting.append(seen)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def close(self) -> None:
        """Write the rest."""
        while self._waiting:
            self._flush()
        os.close(self._fd)

    def _turn(self) -> None:
        self._flush()
        self._scheduled = bool(self._waiting)
        if self._scheduled:
            self._loop.call_soon(self._turn)

    def _flush(self) -> None:
        count = min(LINES_PER_TURN, len(self._waiting))
        lines = [dump_observation(self._waiting.popleft()) for _ in range(count)]
        data = "".join(line + "\n" for line in lines).encode()
        try:
            while data and self.error is None:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self.error = error  # the agent reports it; a recording with a hole is void
