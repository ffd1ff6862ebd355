"""tcpdump as a context: captures from before the block until after it, or says why not."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

SNAP_LENGTH = 320  # headers and the longest reply of the probe
BUFFER_KIB = 16384
START_S = 10.0
# The kernel hands over a block of its ring when it is full, or after a second.
RING_DELAY_S = 1.3


class CaptureError(RuntimeError):
    """There is no complete capture; the text says what to look at."""


def find_tcpdump() -> str | None:
    """Where tcpdump is, if it is."""
    return shutil.which("tcpdump") or shutil.which("tcpdump", path="/usr/sbin:/sbin")


def interface_towards(address: str) -> str:
    """The interface by which packets to ``address`` leave. Raises :class:`CaptureError`."""
    done = subprocess.run(
        ["ip", "-json", "route", "get", address], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CaptureError(f"no route to {address}: {done.stderr.strip()}")
    return str(json.loads(done.stdout)[0]["dev"])


class Tcpdump:
    """Writes what passes ``interface`` and ``expression`` to ``file``.

    ``prefix`` runs it elsewhere, say in another network namespace. Entering returns once
    it captures. Leaving waits until the ring is read out and raises
    :class:`CaptureError` if the kernel dropped anything: a hole is no truth.
    """

    def __init__(
        self, interface: str, expression: str, file: Path, *, prefix: Sequence[str] = ()
    ) -> None:
        self.file = file
        self._expression = expression
        self._prefix = prefix
        self._interface = interface
        self._said: list[str] = []
        self._listening = threading.Event()

    def __enter__(self) -> Tcpdump:
        program = find_tcpdump()
        if program is None:
            raise CaptureError("tcpdump is not installed; expected it. Next: apt-get install it")
        self._process = subprocess.Popen(
            [
                *self._prefix,
                *_lifeline(),
                program,
                *("-i", self._interface, "-w", str(self.file), "-n"),
                *("-Z", "root"),  # else it gives up the right to write the file
                *("-j", "host", "--time-stamp-precision=nano"),
                *("-s", str(SNAP_LENGTH), "-B", str(BUFFER_KIB)),
                *self._expression.split(),
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self._reader = threading.Thread(target=self._read, name="tcpdump", daemon=True)
            self._reader.start()
            self._listening.wait(START_S)
            if not any("listening on" in line for line in self._said):
                said = " | ".join(self._said) or "it is silent"
                raise CaptureError(f"tcpdump did not start: {said}")
        except BaseException:  # a Ctrl-C as well: nobody will leave what was not entered
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            time.sleep(RING_DELAY_S)
        self._end()
        if kind is None and (why := fault(self._process.returncode, self._said)):
            raise CaptureError(why)

    @property
    def pid(self) -> int:
        """The process that captures."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def _read(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._said.append(line.strip())
            if "listening on" in line:
                self._listening.set()
        self._listening.set()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(START_S)
        assert self._process.stderr
        self._process.stderr.close()


def _lifeline() -> list[str]:
    """What starts a program that ends with us, however we do: SIGTERM runs no ``finally``.

    The kernel takes the end of the thread that forks for ours, so only the main one can.
    """
    program = shutil.which("setpriv")
    if program is None or threading.current_thread() is not threading.main_thread():
        return []
    return [program, "--pdeathsig", "TERM", "--"]


def fault(code: int, said: Sequence[str]) -> str | None:
    """Why a capture that ended with ``code`` and these last words is not complete."""
    words = " | ".join(said)
    if code != 0:
        return f"tcpdump ended with {code}: {words}"
    dropped = [int(count) for count in re.findall(r"(\d+) packets? dropped by", words)]
    if not dropped:
        return f"tcpdump does not say whether packets were dropped: {words}"
    if any(dropped):
        return f"the capture has holes: {words}; expected 0 dropped. Look at: the machine's load"
    return None
