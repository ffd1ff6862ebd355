"""A Docker daemon and a kind for tests: this machine's own, or the lab's.

Where Docker answers and kind is on PATH, those are used. Elsewhere `shared/kind-lab` beside the
repository builds kind and a node image from package registries alone, once, in some minutes:

    python -m tests.kind.lab      # or: make setup-kind

Its daemon then runs in a network namespace of its own, so that no rule, link or route of this
machine is touched, and ends with the tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LAB = Path(__file__).parents[3] / "shared" / "kind-lab"
BUILT = Path.home() / ".cache" / "drainwatch" / "kind-lab"
NODE_IMAGE = "drainwatch/node:v1.34.4"
# A node inherits from the machine's first network namespace whether it forwards packets. Docker's
# daemon switches that on where it runs, which everywhere else is there, and kind relies on it. A
# CNI plugin does it with a node's first pod; until then its NodePorts would lead to no other node.
FORWARDING = "drainwatch/node-forwarding:v1.34.4"
_DOCKERFILE = f"""\
FROM {NODE_IMAGE}
RUN echo net.ipv4.ip_forward=1 > /etc/sysctl.d/90-forward.conf
"""
NAMESPACE = "dw-kind-lab"
RUN = Path("/run") / NAMESPACE
DATA = BUILT / "docker"
PATIENCE_S = 60.0


class NoKind(Exception):
    """There is no kind to test with; the text says why, and what to type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where kind runs: words before every command, and its environment."""

    into: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    node_image: str | None = None

    def run(
        self,
        *words: str,
        cwd: Path | None = None,
        more: Mapping[str, str] | None = None,
        said: str = "",
        timeout_s: float = 900,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there, to its end; *more* is added to its environment, it reads *said*."""
        return subprocess.run(
            [*self.into, *words],
            env={**self.environment, **(more or {})},
            cwd=cwd,
            input=said,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def start(
        self, words: Sequence[str], *, cwd: Path, more: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        """Start a command there."""
        return subprocess.Popen(
            [*self.into, *words],
            env={**self.environment, **more},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def containers(self) -> list[str]:
        """Names of all containers, ended ones included."""
        return self.run("docker", "ps", "--all", "--format", "{{.Names}}").stdout.split()


@contextmanager
def place() -> Iterator[Place]:
    """A place with kind. Raises :class:`NoKind`."""
    if find_spec("pytest_kind") is None:
        raise NoKind("pytest-kind is not installed: pip install --group kind")
    if shutil.which("kind") and _answers(Place()):
        yield Place()
        return
    _check_built()
    with daemon() as found:
        if not found.run("docker", "image", "ls", "--quiet", NODE_IMAGE).stdout.strip():
            raise NoKind(f"the node image {NODE_IMAGE} is not built: python -m tests.kind.lab")
        built = found.run("docker", "build", "--quiet", "--tag", FORWARDING, "-", said=_DOCKERFILE)
        if built.returncode != 0:
            raise NoKind(f"{FORWARDING} cannot be built: {built.stderr.strip()}")
        yield found


@contextmanager
def daemon() -> Iterator[Place]:
    """The lab's Docker daemon, in a network namespace of its own, for as long as this lasts.

    Two runs of the tests wait for each other.
    """
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _daemon() as found:
            yield found


@contextmanager
def _daemon() -> Iterator[Place]:
    RUN.mkdir(exist_ok=True)
    socket = f"unix://{RUN}/docker.sock"
    found = Place(
        into=("nsenter", f"--net=/run/netns/{NAMESPACE}", "--"),
        environment={
            **os.environ,
            "DOCKER_HOST": socket,
            "PATH": f"{BUILT / 'bin'}{os.pathsep}{os.environ['PATH']}",
        },
        node_image=FORWARDING,
    )
    subprocess.run(["ip", "netns", "delete", NAMESPACE], check=False, capture_output=True)
    subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
    try:
        found.run("ip", "link", "set", "lo", "up")
        (RUN / "daemon.json").write_text("{}")
        with (BUILT / "dockerd.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    # It ends with these tests, however they end.
                    *(*found.into, "setpriv", "--pdeathsig", "TERM"),
                    *("dockerd", "--config-file", str(RUN / "daemon.json"), "--host", socket),
                    *("--data-root", str(DATA), "--exec-root", str(RUN / "exec")),
                    *("--pidfile", str(RUN / "docker.pid")),
                    # What a machine's own capabilities lack no container can have.
                    *("--add-runtime", f"runc-wrap={BUILT / 'bin' / 'runc-wrap'}"),
                    *("--default-runtime", "runc-wrap"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            _wait(found, process)
            yield found
        finally:
            _remove_containers(found)
            process.terminate()
            process.wait(PATIENCE_S)
    finally:
        subprocess.run(["ip", "netns", "delete", NAMESPACE], check=False)
        shutil.rmtree(RUN, ignore_errors=True)


def set_up() -> None:
    """Install Docker's daemon and build kind and its node image, unless they are there."""
    if shutil.which("kind") and _answers(Place()):
        return
    if not LAB.is_dir():
        raise NoKind(f"there is no {LAB}")
    if not shutil.which("dockerd"):
        _typed(["apt-get", "install", "--yes", "--no-install-recommends", "docker.io"])
    (BUILT / "bin").mkdir(parents=True, exist_ok=True)
    wrapper = BUILT / "bin" / "runc-wrap"
    if not wrapper.exists():  # the daemon is started with it
        build = ["go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", str(wrapper), "."]
        _typed(build, cwd=LAB / "runc-wrap", env={**os.environ, "CGO_ENABLED": "0"})
    with daemon() as found:
        if not found.run("docker", "image", "ls", "--quiet", NODE_IMAGE).stdout.strip():
            _typed([str(LAB / "build.sh")], env=dict(found.environment))


def _check_built() -> None:
    if not LAB.is_dir():
        raise NoKind(
            f"no Docker daemon answers or kind is not on PATH, and there is no {LAB} to build one"
        )
    lacking = [name for name in ("dockerd", "nsenter", "ip") if shutil.which(name) is None]
    if os.geteuid() != 0 or lacking or not (BUILT / "bin" / "kind").exists():
        raise NoKind(
            "the kind lab is not set up (root, dockerd and a build are needed): python -m"
            " tests.kind.lab"
        )


def _answers(found: Place) -> bool:
    try:
        return found.run("docker", "version", timeout_s=10).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _wait(found: Place, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not _answers(found):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = (BUILT / "dockerd.log").read_text(errors="replace").splitlines()[-5:]
            raise NoKind(f"dockerd did not start: {' | '.join(tail)}")
        time.sleep(0.2)


def _remove_containers(found: Place) -> None:
    if names := found.containers():
        found.run("docker", "rm", "--force", "--volumes", *names)


def _typed(command: Sequence[str], **how: Any) -> None:
    print("+", *command, file=sys.stderr, flush=True)
    subprocess.run(command, check=True, **how)


if __name__ == "__main__":
    try:
        set_up()
    except NoKind as error:
        sys.exit(str(error))
