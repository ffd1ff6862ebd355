"""The programs `kind` and `docker`: run, bounded in time, and their failures in words."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind.shape import Shape

QUICK_S = 30.0
# Images of hundreds of megabytes are pulled, built and copied into nodes.
SLOW_S = 600.0
_TAIL_LINES = 6
# So many looks in a row.
_STAYS_GONE = 5
_POLL_S = 0.5


def run(
    argv: Sequence[str | Path], *, expected: str, timeout_s: float = QUICK_S, said: bytes = b""
) -> str:
    """What the command wrote to stdout; it reads *said*.

    Args:
        expected: what should have been, and what to type next, for the error's text.

    Raises:
        ClusterError: it is not there, failed, or did not end in time.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words, input=said, capture_output=True, check=False, timeout=timeout_s
        )
    except OSError as error:
        raise ClusterError(f"{words[0]} cannot be run: {error}. Expected {expected}") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(
            f"`{_shown(words)}` did not end within {timeout_s:.0f} s. Expected {expected}"
        ) from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        told = [line.strip() for line in lines if line.strip()]
        tail = " | ".join(told[-_TAIL_LINES:]) or "it said nothing"
        raise ClusterError(
            f"`{_shown(words)}` failed (status {done.returncode}): {tail}. Expected {expected}"
        )
    return done.stdout.decode("utf-8", "replace")


def _shown(words: Sequence[str]) -> str:
    return " ".join([Path(words[0]).name, *words[1:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The program `kind`, by its path."""

    program: Path

    def clusters(self) -> list[str]:
        """The names of all clusters that it knows of."""
        return self._run("get", "clusters").splitlines()

    def nodes(self, name: str) -> list[str]:
        """The node containers of a cluster."""
        return sorted(self._run("get", "nodes", "--name", name).split())

    def create(self, name: str, kubeconfig: Path, shape: Shape) -> None:
        """Make a cluster; what a failed attempt leaves is removed by `kind` itself."""
        config = shape.config()
        words = ["create", "cluster", "--name", name, "--kubeconfig", str(kubeconfig)]
        words += ["--image", shape.image] if shape.image else []
        words += ["--config", "-"] if config else []
        self._run(*words, slow=True, said=(config or "").encode())

    def delete(self, name: str, kubeconfig: Path) -> None:
        """Remove a cluster; one that is not there is no error."""
        self._run("delete", "cluster", "--name", name, "--kubeconfig", str(kubeconfig), slow=True)

    def clear(self, name: str, kubeconfig: Path) -> None:
        """Remove what an interrupted `create` leaves.

        What it asked Docker for may come into being after a deletion, so look until it stays gone.
        """
        deadline = time.monotonic() + QUICK_S
        gone = 0
        while gone < _STAYS_GONE and time.monotonic() < deadline:
            if name in self.clusters():
                self.delete(name, kubeconfig)
                gone = 0
            else:
                gone += 1
            time.sleep(_POLL_S)

    def export(self, name: str, kubeconfig: Path) -> None:
        """Write a running cluster's kubeconfig again."""
        self._run("export", "kubeconfig", "--name", name, "--kubeconfig", str(kubeconfig))

    def load_archive(self, name: str, archive: Path) -> None:
        """Copy the images of an archive into every node."""
        self._run("load", "image-archive", "--name", name, str(archive), slow=True)

    def load_docker_image(self, name: str, reference: str) -> None:
        """Copy an image of the Docker daemon into every node."""
        self._run("load", "docker-image", "--name", name, reference, slow=True)

    def _run(self, *words: str, slow: bool = False, said: bytes = b"") -> str:
        return run(
            [self.program, *words],
            expected="kind and a Docker daemon that work together: kind get clusters",
            timeout_s=SLOW_S if slow else QUICK_S,
            said=said,
        )


def find_kind(given: str | None = None) -> Kind:
    """`kind` as *given* or as PATH has it.

    Raises:
        ClusterError: there is none.
    """
    found = given or shutil.which("kind")
    if found is None or not Path(found).is_file():
        raise ClusterError(
            f"kind is not {'at ' + found if found else 'on PATH'}: expected the program, since"
            " what pytest-kind would download by itself (0.17.0) cannot make a Kubernetes of today."
            " Install it (go install sigs.k8s.io/kind@v0.30.0), name it with --kind-bin FILE, or"
            " choose another cluster: --dw-cluster=embedded, --dw-cluster=existing"
        )
    return Kind(program=Path(found).absolute())


def docker(*words: str | Path, expected: str, slow: bool = False, said: bytes = b"") -> str:
    """What `docker` said. Raises ClusterError."""
    return run(
        ["docker", *words], expected=expected, timeout_s=SLOW_S if slow else QUICK_S, said=said
    )


def check_docker() -> None:
    """Raise ClusterError unless a Docker daemon answers."""
    where = os.environ.get("DOCKER_HOST", "its usual socket")
    docker(
        *("version", "--format", "{{.Server.Version}}"),
        expected=f"a Docker daemon that answers at {where}. Start it (systemctl start docker),"
        " join its group, or choose another cluster: --dw-cluster=embedded,"
        " --dw-cluster=existing",
    )
