"""A HAProxy of our own: started in a folder of its own, asked through its socket, ended.

It is nobody's user where root starts it, and so is given what it may not open itself. It never
outlives us: a small parent of its own holds the other end of a pipe, and the kernel ends HAProxy
with that parent.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pytest_drainwatch.balancers.config import Asked, config
from pytest_drainwatch.balancers.stat import parse

CONFIG = "haproxy.cfg"
SOCKET = "api.sock"
PATIENCE_S = 10.0
ASK_TIMEOUT_S = 5.0
LOOK_S = 0.01
BACKLOG = 1024
LINES = 5
# Debian puts it where not every user looks.
_MORE_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"


class BalancerFailed(Exception):
    """HAProxy is not there, does not start, or has ended; the text says what to do."""


def program() -> str:
    """Where HAProxy is. Raises :class:`BalancerFailed` if it is not installed."""
    found = shutil.which("haproxy", path=f"{os.environ.get('PATH', os.defpath)}:{_MORE_FOLDERS}")
    if found is None:
        raise BalancerFailed(
            "haproxy is not installed: expected it on PATH, for --dw-path=haproxy. Install it: "
            "apt-get install haproxy (or drainwatch setup --for-tests)"
        )
    return found


class Haproxy:
    """One process. Raises :class:`BalancerFailed` unless it starts."""

    def __init__(self, asked: Asked, listen: str) -> None:
        self._stack = ExitStack()
        with ExitStack() as undo:
            undo.push(self._stack)
            self._start(program(), asked, listen)
            undo.pop_all()

    def _start(self, found: str, asked: Asked, listen: str) -> None:
        # Its parent removes it too, should we be killed.
        made = tempfile.TemporaryDirectory(prefix="dw-lb-", ignore_cleanup_errors=True)
        self.folder = Path(self._stack.enter_context(made))
        family = socket.AF_INET6 if ":" in listen else socket.AF_INET
        try:
            listening = self._stack.enter_context(
                socket.create_server((listen, 0), family=family, backlog=BACKLOG)
            )
        except OSError as error:
            raise BalancerFailed(
                f"HAProxy's clients cannot be let in at {listen}: {error.strerror or error}; "
                "expected an address of this machine. Look at: ip address"
            ) from error
        self.address = listen
        self.port: int = listening.getsockname()[1]
        with self._api() as api:
            self._run(found, config(asked, listening.fileno(), api.fileno()), (listening, api))
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            self.check()
            if time.monotonic() > deadline:
                raise BalancerFailed(
                    f"HAProxy does not answer after {PATIENCE_S:g} s: {self._said()}; expected it "
                    "within one. Look at: this machine's load"
                )
            time.sleep(LOOK_S)

    def _api(self) -> socket.socket:
        """Where it is asked: the folder is ours alone, so nobody else can."""
        api = socket.socket(socket.AF_UNIX)
        try:
            api.bind(str(self.folder / SOCKET))
            api.listen(BACKLOG)
        except OSError as error:
            api.close()
            raise BalancerFailed(
                f"HAProxy cannot be asked at {self.folder / SOCKET}: {error.strerror or error}; "
                "expected a folder that takes a Unix socket, by a path of about 100 characters at "
                "most. Try: TMPDIR=/tmp"
            ) from error
        return api

    def _run(self, found: str, text: str, given: Sequence[socket.socket]) -> None:
        (self.folder / CONFIG).write_text(text)
        descriptors = [each.fileno() for each in given]
        self._log = self.folder / "log"
        log = self._stack.enter_context(self._log.open("wb"))
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest_drainwatch.balancers"),
                *(found, str(self.folder), *map(str, descriptors)),
            ],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=descriptors,
            start_new_session=True,  # Ctrl-C is ours to handle: a trial puts back what it changed
        )
        self._stack.callback(self._end)

    @property
    def pid(self) -> int:
        """The process id of HAProxy's parent."""
        return self._process.pid

    def check(self) -> None:
        """Raise :class:`BalancerFailed` if it has ended."""
        if (code := self._process.poll()) is not None:
            raise BalancerFailed(
                f"HAProxy ended with exit code {code}: {self._said()}; expected it to live as long "
                "as the trial. Look at: haproxy -v; ulimit -Hn; dmesg"
            )

    def ask(self, command: str) -> str:
        """One command to its runtime API, and the answer. Raises OSError if it gives none."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(ASK_TIMEOUT_S)
            sock.connect(str(self.folder / SOCKET))
            sock.sendall(f"{command}\n".encode())
            answer = b""
            while data := sock.recv(65536):
                answer += data
        return answer.decode(errors="replace")

    def version(self) -> str:
        """Which it is."""
        lines = dict(line.partition(": ")[::2] for line in self.ask("show info").splitlines())
        return lines.get("Version", "unknown")

    def close(self) -> None:
        """End it, and whatever it carries."""
        self._stack.close()

    def _answers(self) -> bool:
        try:
            return bool(parse(self.ask("show stat")))
        except (OSError, ValueError):
            return False

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()  # its parent ends it
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _said(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()[-LINES:]
        return "; ".join(line.strip() for line in lines) or "it said nothing"
