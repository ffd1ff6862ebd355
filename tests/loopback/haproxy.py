"""A real HAProxy on loopback with backends that say who they are, driven by its runtime API."""

from __future__ import annotations

import csv
import io
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.loopback.rig import LOOPBACK, PATIENCE_S, RigError

# Debian puts it where not every user looks.
HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
NOT_HAD = "haproxy is not installed (apt: haproxy, or `drainwatch setup --for-tests`)"
# The runtime API's words for "done", and how long a state may take to show in its figures.
SAID_NOTHING = "\n"
LOOK_S = 0.002

CONFIG = """\
global
    nbthread 1
    stats socket {folder}/api.sock mode 600 level admin
{user}
defaults
    mode tcp
    retries 0
    timeout connect {patience}s
    timeout client {patience}s
    timeout server {patience}s
frontend front
    bind fd@{listening}
    default_backend pool
backend pool
    balance roundrobin
{more}
{servers}
"""
# Root starts it, and root's rights it gives away.
NOBODY = "    user nobody\n    group nogroup"


class Named:
    """A backend: says its name on each connection, and echoes until the other side ends it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._listening = socket.create_server((LOOPBACK, 0), backlog=128)
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listening.accept()
                threading.Thread(target=self._echo, args=(sock,), daemon=True).start()

    def _echo(self, sock: socket.socket) -> None:
        with sock, suppress(OSError):
            sock.sendall(f"{self.name}\n".encode())
            while data := sock.recv(4096):
                sock.sendall(data)


class Held:
    """A client's connection through HAProxy; ``name``: who answered, None: nobody did."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._sock = socket.create_connection(address, PATIENCE_S)
        self._file = self._sock.makefile("rb")
        self.name = self._read() or None

    def echoes(self) -> bool:
        """Whether it still serves: what is sent comes back."""
        with suppress(OSError):
            self._sock.sendall(b"still there\n")
            return self._read() == "still there"
        return False

    def ended(self) -> bool:
        """Whether the other side ends it: waits for that, and is no use where it lives on."""
        with suppress(ConnectionResetError):
            return self._file.readline() == b""
        return True

    def close(self) -> None:
        self._file.close()
        self._sock.close()

    def _read(self) -> str:
        return self._file.readline().decode().strip()


class Haproxy:
    """A process of its own, in a folder of its own, with one pool; ends with the block."""

    def __init__(self, names: Sequence[str], more: str = "", each: str = "") -> None:
        self._stack = ExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="dw-ha-")))
        self._names, self._more, self._each = names, more, each

    def __enter__(self) -> Self:
        if HAPROXY is None:
            raise RigError(NOT_HAD)
        with ExitStack() as undo:
            undo.push(self._stack)
            self._start(HAPROXY)
            undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def connect(self) -> Held:
        """A client's connection, answered or turned away."""
        held = Held(self.address)
        self._stack.callback(held.close)
        return held

    def ask(self, command: str) -> str:
        """One command to the runtime API, and its answer; a blank line is its "done"."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PATIENCE_S)
            sock.connect(str(self.folder / "api.sock"))
            sock.sendall(f"{command}\n".encode())
            answer = b""
            while data := sock.recv(65536):
                answer += data
        return answer.decode()

    def tell(self, command: str) -> None:
        """The same for a command that answers nothing. Raises :class:`RigError` with its words."""
        if (answer := self.ask(command)) != SAID_NOTHING:
            raise RigError(f"{command}: {answer.strip()}")

    def remove(self, name: str) -> None:
        """All that it takes to take a server out of the pool, whatever it holds."""
        self.tell(f"set server pool/{name} state maint")
        self.tell(f"shutdown sessions server pool/{name}")
        self.until(lambda: self.sessions()[name] == 0)
        if (answer := self.ask(f"del server pool/{name}").strip()) != "Server deleted.":
            raise RigError(f"del server pool/{name}: {answer}")

    def servers(self) -> dict[str, str]:
        """Each server's administrative state, in the words of ``set server``."""
        _, head, *rows = self.ask("show servers state pool").strip().splitlines()
        fields = head.lstrip("# ").split()
        told = [dict(zip(fields, row.split(), strict=False)) for row in rows]
        return {row["srv_name"]: _state(int(row["srv_admin_state"])) for row in told}

    def sessions(self) -> dict[str, int]:
        """How many connections each server holds."""
        return {row["svname"]: int(row["scur"]) for row in self._stat()}

    def ever(self) -> dict[str, int]:
        """How many connections each server was given, ever."""
        return {row["svname"]: int(row["stot"]) for row in self._stat()}

    def until(self, true: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Wait for it. Raises :class:`RigError` if it never comes."""
        end = time.monotonic() + patience_s
        while not true():
            if time.monotonic() > end:
                raise RigError(f"HAProxy never gets there: {self.servers()} {self.sessions()}")
            time.sleep(LOOK_S)

    def _stat(self) -> list[dict[str, str]]:
        text = self.ask("show stat pool 4 -1").lstrip("# ")
        return list(csv.DictReader(io.StringIO(text)))

    def _start(self, program: str) -> None:
        listening = self._stack.enter_context(socket.create_server((LOOPBACK, 0), backlog=128))
        self.address: tuple[str, int] = listening.getsockname()
        servers = [Named(name) for name in self._names]
        for server in servers:
            self._stack.callback(server.close)
        rows = [f"    server {each.name} {LOOPBACK}:{each.port} {self._each}" for each in servers]
        (self.folder / "haproxy.cfg").write_text(
            CONFIG.format(
                folder=self.folder,
                user=NOBODY if os.geteuid() == 0 else "",
                patience=int(PATIENCE_S),
                listening=listening.fileno(),
                more=self._more,
                servers="\n".join(rows),
            )
        )
        log = self._stack.enter_context((self.folder / "log").open("wb"))
        process = subprocess.Popen(
            [program, "-db", "-f", str(self.folder / "haproxy.cfg")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(listening.fileno(),),
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        end = time.monotonic() + PATIENCE_S
        while not self._answers():
            if process.poll() is not None or time.monotonic() > end:
                raise RigError(f"HAProxy does not start: {(self.folder / 'log').read_text()}")
            time.sleep(LOOK_S)

    def _answers(self) -> bool:
        try:
            return "Uptime" in self.ask("show info")
        except OSError:
            return False


def _state(flags: int) -> str:
    # HAProxy's SRV_ADMF_FMAINT and SRV_ADMF_FDRAIN, as `set server` sets them.
    return "maint" if flags & 0x01 else "drain" if flags & 0x08 else "ready"
