"""Small root file systems, from the distribution's own packages."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded import machine
from pytest_drainwatch.cluster.embedded.archive import Layer, architecture, layer_digest, normalise
from pytest_drainwatch.cluster.embedded.directories import cache_dir
from pytest_drainwatch.cluster.embedded.locks import locked

PINNED_SUITE = "bookworm"
# base-files brings the links of a merged /usr where a suite has them.
# dash is there to be a PID 1 that keeps SIGTERM to itself (`App.pid1`).
PACKAGES = ("python3-minimal", "libpython3-stdlib", "base-files", "dash")
# Raise it when the recipe changes: it is part of the cache's key.
_RECIPE = 2
_DROPPED = (
    r"usr/share/(doc|man|locale|lintian|info|bug|polkit-1)/"
    r"|var/(cache|lib/apt|log)/"
    r"|usr/lib/python3[.\d]*/(pydoc_data|lib2to3|ensurepip|idlelib|turtledemo|test)/"
    r"|usr/lib/[^/]*/gconv/"
)
# Without byte code every start of a container would compile asyncio anew, which costs more
# than all else. Hash-based and never checked: the layer has no times.
_COMPILE = (
    'chroot "$1" /usr/bin/python3 -c "import compileall, os, py_compile;'
    " compileall.compile_dir(os.path.dirname(os.__file__), quiet=1, workers=0,"
    ' invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)" || true'
)
# Some suites link it in a maintainer script, and none of those runs here.
SHELL = 'test -e "$1/bin/sh" || ln -s dash "$1/bin/sh"'
_TAIL_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a root file system is made of.

    Attributes:
        purpose: whose it is, for people.
        packages: Debian's names; what they depend on comes along. No maintainer script runs:
            there are no users, and no alternatives.
        hooks: shell commands, run once all is unpacked, with the folder as `$1`.
        about: how long it takes, for people.
    """

    purpose: str
    packages: tuple[str, ...]
    hooks: tuple[str, ...]
    about: str


PROBE = Recipe(
    purpose="the probe's", packages=PACKAGES, hooks=(_COMPILE, SHELL), about="about 15 s"
)


def cached_root_filesystem(recipe: Recipe = PROBE) -> Layer | None:
    """The root file system's layer if it was made already."""
    target = _target(_suite_and_sources()[0], recipe)
    digest = target.with_suffix(".sha256")
    return Layer(path=target, digest=digest.read_text()) if digest.exists() else None


def root_filesystem(log: Log, recipe: Recipe = PROBE) -> Layer:
    """The root file system's layer, from the cache or made now.

    Raises:
        ClusterError: mmdebstrap is missing or failed.
    """
    if cached := cached_root_filesystem(recipe):
        return cached
    suite, sources = _suite_and_sources()
    target = _target(suite, recipe)
    what = f"{recipe.purpose} root file system"
    waiting = f"waiting for another process that makes {what}"
    with locked(target.with_suffix(".lock"), on_wait=lambda: log(waiting)):
        if cached := cached_root_filesystem(recipe):
            return cached
        log(f"making {what} from {suite} packages (once, {recipe.about})")
        _make(suite, sources, target, recipe)
        digest = layer_digest(target)
        target.with_suffix(".sha256").write_text(digest)
    return Layer(path=target, digest=digest)


def _target(suite: str, recipe: Recipe) -> Path:
    made_of = repr((_RECIPE, suite, recipe.packages, _DROPPED, *recipe.hooks))
    key = hashlib.sha256(made_of.encode()).hexdigest()[:12]
    return cache_dir() / "rootfs" / f"{suite}-{architecture()}-{key}.tar"


def _make(suite: str, sources: list[Path], target: Path, recipe: Recipe) -> None:
    program = machine.find_program("mmdebstrap")
    if program is None:
        raise ClusterError(
            "mmdebstrap is missing: expected it on PATH to make an image."
            " Install it: drainwatch setup"
        )
    raw = target.with_suffix(".raw.tar")
    command = [
        program,
        "--variant=extract",
        f"--include={','.join(recipe.packages)}",
        *(f"--extract-hook={hook}" for hook in recipe.hooks),
        suite,
        str(raw),
        *map(str, sources),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            tail = "\n  ".join(done.stderr.strip().splitlines()[-_TAIL_LINES:])
            raise ClusterError(
                f"mmdebstrap could not make a root file system of {suite}:\n  {tail}\n"
                "Expected this machine's apt sources to answer. Try: apt-get update"
            )
        partial = target.with_suffix(".part")
        with raw.open("rb") as source:
            normalise(source, partial, dropped=_DROPPED)
        partial.replace(target)
    finally:
        raw.unlink(missing_ok=True)


def _suite_and_sources() -> tuple[str, list[Path]]:
    """The host's own suite and sources where it is a Debian or an Ubuntu.

    Those are known to answer here; elsewhere mmdebstrap's default mirror must do.
    """
    release = _os_release()
    suite = release.get("VERSION_CODENAME", "")
    if release.get("ID") not in ("debian", "ubuntu") or not suite:
        return PINNED_SUITE, []
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return suite, [file for file in files if _serves(file, suite)]


def _serves(file: Path, suite: str) -> bool:
    if file.suffix not in (".list", ".sources") or not os.access(file, os.R_OK):
        return False
    active = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    # Third parties' repositories name the suite too, but not the component "main" beside it.
    return any(suite in line.split() for line in active) and any(
        "main" in line.split() for line in active
    )


def _os_release() -> dict[str, str]:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key: value.strip("\"'") for key, _, value in pairs}
