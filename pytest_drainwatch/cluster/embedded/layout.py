"""The files of one running cluster."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Paths of one cluster.

    Attributes:
        state: what ends with the cluster: certificates, etcd's data, images.
        logs: what people want afterwards.
    """

    state: Path
    logs: Path

    def of_node(self, index: int) -> Layout:
        """The files of node *index* alone; the first one's are beside the cluster's own."""
        if index == 0:
            return self
        name = f"node-{index + 1}"
        return Layout(state=self.state / name, logs=self.logs / name)

    @property
    def lock(self) -> Path:
        """Held by flock as long as anything of this cluster lives."""
        return self.state / "lock"

    @property
    def record(self) -> Path:
        return self.state / "record.json"

    @property
    def node_pid(self) -> Path:
        """The process id, on the host, of the node's PID 1; there since it was forked."""
        return self.state / "node.pid"

    @property
    def plan(self) -> Path:
        return self.state / "plan.json"

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def config(self) -> Path:
        return self.state / "config"

    @property
    def etcd(self) -> Path:
        return self.state / "etcd"

    @property
    def containerd(self) -> Path:
        return self.state / "containerd"

    @property
    def done(self) -> Path:
        """A file in here for each job that the node has done."""
        return self.state / "done"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def ended(self) -> Path:
        """Written by the reaper if the node ended unasked."""
        return self.logs / "ended.json"

    def make(self) -> None:
        """Make the folders. Raises OSError."""
        for folder in (self.pki, self.config / "cni", self.logs, self.done):
            folder.mkdir(parents=True, exist_ok=True)

    def remove_state(self) -> None:
        """Remove the state folder, the lock last: until then nobody takes it for a leftover."""
        with contextlib.suppress(OSError):
            for entry in self.state.iterdir():
                if entry == self.lock:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
            self.lock.unlink(missing_ok=True)
            self.state.rmdir()

    def log(self, component: str) -> Path:
        return self.logs / f"{component}.log"
