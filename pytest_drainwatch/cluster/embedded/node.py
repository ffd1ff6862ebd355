"""A node's PID 1: builds the node's world, starts its components, ends with them.

Runs as a fork of the reaper in new namespaces, one for each node. When it ends, by whatever
cause, the kernel ends every process, mount, link and packet filter rule of the node.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import IO

from pytest_drainwatch.cluster.embedded import cgroups, mounts, runtime
from pytest_drainwatch.cluster.embedded.api import ApiClient
from pytest_drainwatch.cluster.embedded.configuration import ETCD_PORT
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.plan import Component, Gate, NodePlan

NODE_LINK = "eth0"
_GATE_POLL_S = 0.03


class Node:
    """The running node, seen from inside."""

    def __init__(self, plan: NodePlan, reaper: socket.socket) -> None:
        self._plan = plan
        self._reaper = reaper
        self._layout = Layout(state=Path(plan.state), logs=Path(plan.logs))
        self._began = time.monotonic()
        self._running: dict[int, Component] = {}
        self._passed: set[Gate] = set()
        self._api: ApiClient | None = None

    def run(self) -> int:
        """Live until a component dies (1) or the reaper does (0)."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._enter()
        outside = self._reaper.fileno()
        waiting = list(self._plan.components)
        while True:
            waiting = self._start(waiting)
            timeout = _GATE_POLL_S if waiting else None
            readable, _, _ = select.select([wake_read, outside], [], [], timeout)
            if wake_read in readable:
                os.read(wake_read, 512)
                if dead := self._reap():
                    self._report(dead)
                    return 1
            if outside in readable:
                return 0  # end of file: nobody is left outside

    def _enter(self) -> None:
        plan = self._plan
        _plain_limits()
        mounts.unshare(
            mounts.CLONE_NEWNS | mounts.CLONE_NEWNET | mounts.CLONE_NEWUTS | mounts.CLONE_NEWIPC
        )
        self._reaper.sendall(b"n")  # the network namespace is there
        socket.sethostname(plan.name)
        cgroups.create(plan.cgroup, cgroups.hierarchies())
        self._share_processors(cgroups.Part.NODE)
        mounts.build_view([Path(folder) for folder in plan.kept])
        if plan.volatile:
            folder = self._layout.state / plan.volatile
            folder.mkdir(exist_ok=True)
            mounts.mount("tmpfs", str(folder), "tmpfs", data="mode=700")
        self._say("the file system view is built")
        if self._reaper.recv(1) != b"l":
            raise SystemExit("the reaper gave no link")
        _ip(
            "link set lo up",
            f"addr add {plan.address} dev {NODE_LINK}",
            f"link set {NODE_LINK} up",
            f"route add {plan.service_range} dev {NODE_LINK}",
            *(f"route add {pods} via {node}" for pods, node in plan.routes),
        )
        # What pods send off the nodes would else have no way back; pods know each other's ways.
        masquerade = ["-s", plan.pod_range, "!", "-d", plan.pods, "-o", NODE_LINK]
        masquerade += ["-j", "MASQUERADE"]
        subprocess.run(
            ["iptables", "-w", "-t", "nat", "-A", "POSTROUTING", *masquerade], check=True
        )
        for name in ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"):
            with contextlib.suppress(FileNotFoundError):
                (Path("/proc/sys") / name).write_text("1")
        self._say("the network is up")

    def _start(self, waiting: list[Component]) -> list[Component]:
        held = []
        needed = {gate for component in waiting for gate in component.gates}
        for gate in needed - self._passed:
            if self._try(gate):
                self._passed.add(gate)
                self._say(f"gate {gate} is open")
        for component in waiting:
            if self._passed.issuperset(component.gates):
                with self._layout.log(component.name).open("ab") as log:
                    self._spawn(component, log)
            else:
                held.append(component)
        return held

    def _spawn(self, component: Component, log: IO[bytes]) -> None:
        process = subprocess.Popen(
            component.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(),
            cwd="/",
            start_new_session=True,
        )
        self._running[process.pid] = component
        if component.control_plane:
            self._share_processors(cgroups.Part.CONTROL_PLANE, process.pid)
        # The loop reaps every child itself, orphans of containers among them.
        process.returncode = 0
        self._say(f"{component.name} started")

    def _share_processors(self, part: cgroups.Part, process: int = 0) -> None:
        try:
            cgroups.join(self._plan.cgroup, part, cgroups.hierarchies(), process)
        except OSError as error:  # it runs all the same, and trials beside it are less alike
            self._say(f"no share of processor time of its own: {error}")

    def _try(self, gate: Gate) -> bool:
        if gate is Gate.CONTAINERD:
            with socket.socket(socket.AF_UNIX) as probe:
                return probe.connect_ex(runtime.SOCKET) == 0
        if gate is Gate.ETCD:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", ETCD_PORT)) == 0
        if self._api is None:
            # Before its etcd answers the API server of this node does not, either.
            if self._plan.waits_for(Gate.ETCD) and Gate.ETCD not in self._passed:
                return False
            self._api = ApiClient(self._plan.api, Path(self._plan.pki), timeout_s=1.0)
        status, _ = self._api.get("/readyz")
        return status == 200 or (gate is Gate.API_ANSWERS and status != 0)

    def _reap(self) -> tuple[Component, int] | None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            component = self._running.pop(pid, None)
            if component is None:
                continue  # an orphan of some container
            code = os.waitstatus_to_exitcode(status)
            if not (component.passing and code == 0):
                return component, code
            (self._layout.done / component.name).touch()
            self._say(f"{component.name} done")

    def _report(self, dead: tuple[Component, int]) -> None:
        component, code = dead
        self._say(f"{component.name} ended with {code}")
        with contextlib.suppress(OSError):
            self._layout.ended.write_text(json.dumps({"component": component.name, "code": code}))

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.3f} s  {text}", flush=True)


def _environment() -> dict[str, str]:
    # Components must not inherit proxies, Python paths or credentials of the owner.
    return {"PATH": os.environ["PATH"], "HOME": "/root", "TMPDIR": "/run/tmp", "LANG": "C"}


def _plain_limits() -> None:
    """Undo what pods must not inherit from the owner's shell."""
    os.umask(0o022)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _ip(*commands: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands).encode(), check=True)
