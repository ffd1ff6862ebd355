"""Hosts of a network of our own: namespaces without names, joined by veth pairs.

Each lives in a process that ends when its stdin closes, so the kernel takes links,
routes and rules away whichever way the test ends. Nothing of this machine's own
network is touched.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from types import TracebackType
from typing import Self


class NoNamespaces(Exception):
    """This machine does not let us make network namespaces."""


class Host:
    """A network namespace."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--kill-child", "--fork", "sh", "-c", "echo $$; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        started = self._holder.stdout.readline().strip()
        if not started:
            reason = self.close()
            raise NoNamespaces(f"needs the right to make network namespaces: {reason}")
        self.pid = int(started)
        self("ip", "link", "set", "lo", "up")

    @property
    def prefix(self) -> list[str]:
        """What runs a command on this host."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--"]

    def __call__(self, *command: str) -> str:
        """Run a command here; its output."""
        done = subprocess.run([*self.prefix, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
        return done.stdout

    def close(self) -> str:
        """End it; returns what the holder complained about."""
        _, errors = self._holder.communicate(timeout=10)
        return errors.strip()


class Network:
    """Up to three hosts: ``client`` — ``node``, or ``client`` — ``node`` — ``pod``."""

    def __init__(self, *, pod: bool = False) -> None:
        with ExitStack() as stack:
            self.client = self._host(stack)
            self.node = self._host(stack)
            self.server = self.node
            self.address = "10.91.0.2"
            _join(self.client, "10.91.0.1", self.node, "10.91.0.2")
            if pod:
                self.server = self._host(stack)
                self.address = "10.92.0.2"
                _join(self.node, "10.92.0.1", self.server, "10.92.0.2")
                self.node("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
                self.client("ip", "route", "add", "default", "via", "10.91.0.2")
                self.server("ip", "route", "add", "default", "via", "10.92.0.1")
            self._stack = stack.pop_all()

    @staticmethod
    def _host(stack: ExitStack) -> Host:
        host = Host()
        stack.callback(host.close)
        return host

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()


def _join(left: Host, left_address: str, right: Host, right_address: str) -> None:
    """A veth pair between two hosts, one /24."""
    near, far = f"to{right.pid}"[:15], f"to{left.pid}"[:15]
    left("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", str(right.pid))
    for host, link, address in ((left, near, left_address), (right, far, right_address)):
        host("ip", "addr", "add", f"{address}/24", "dev", link)
        host("ip", "link", "set", link, "up")


def link_to(host: Host, other: Host) -> str:
    """The name of the link on ``host`` that leads to ``other``."""
    return f"to{other.pid}"[:15]
