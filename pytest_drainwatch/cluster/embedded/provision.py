"""`drainwatch setup`: everything the embedded cluster needs, ahead of time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from pytest_drainwatch.cluster import ClusterError, Log
from pytest_drainwatch.cluster.embedded import machine
from pytest_drainwatch.cluster.embedded.binary import find_binary
from pytest_drainwatch.cluster.embedded.directories import writing_to_cache
from pytest_drainwatch.cluster.embedded.image import base_image, pause_image, probe_image
from pytest_drainwatch.cluster.embedded.rootfs import root_filesystem
from pytest_drainwatch.cluster.embedded.store import image_store

_TAIL_LINES = 8
# A package manager must never take something away to make room for ours.
_APT_INSTALL = ("install", "--yes", "--no-install-recommends", "--no-remove")


def set_up(
    versions: Sequence[str],
    *,
    log: Log,
    agree: Callable[[str], bool],
    for_tests: bool = False,
) -> None:
    """Install missing programs, build binaries and images. Quick if all is there.

    Args:
        versions: minor versions of Kubernetes to build.
        log: takes progress.
        agree: asked with the list of packages before any is installed.
        for_tests: get what this project's own tests need, too.

    Raises:
        ClusterError: something can't be had; the message names it.
    """
    machine.check_rights()
    machine.check_python()
    packages = machine.missing_packages()
    if for_tests:
        packages += machine.missing_test_packages()
    if packages:
        _install(packages, log=log, agree=agree)
        machine.check_programs()
    else:
        log("all programs are there")
    with writing_to_cache():
        _make(versions, log)


def _make(versions: Sequence[str], log: Log) -> None:
    for version in versions:
        log(f"Kubernetes {version}: {find_binary(version, given=None, log=log)}")
    pause, base = pause_image(log), base_image(root_filesystem(log))
    store = image_store((pause, base), log)
    log(f"unpacked images: {store or 'none, each cluster unpacks its own'}")
    log(f"probe image: {probe_image(log, thin=store is not None).reference}")


def _install(packages: Sequence[str], *, log: Log, agree: Callable[[str], bool]) -> None:
    names = " ".join(packages)
    apt = shutil.which("apt-get")
    if apt is None:
        raise ClusterError(
            f"programs are missing: {', '.join(machine.missing_programs() or packages)}, and this"
            " is no Debian or Ubuntu. Expected them on PATH. Install your distribution's"
            f" {names}, then: drainwatch setup"
        )
    if not agree(f"install with apt-get: {names}"):
        raise ClusterError(
            f"not installed: {names}. Expected a yes. Say it ahead with: drainwatch setup --yes"
        )
    for arguments in (("update",), (*_APT_INSTALL, *packages)):
        log(f"apt-get {' '.join(arguments)}")
        done = subprocess.run(
            [apt, "--quiet", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        # A source that does not answer need not be the one that has our packages.
        if done.returncode != 0 and arguments != ("update",):
            tail = "\n  ".join(done.stdout.strip().splitlines()[-_TAIL_LINES:])
            raise ClusterError(
                f"apt-get could not install {names}:\n  {tail}\nExpected it to, without removing"
                f" anything. Try it by hand: apt-get install {names}"
            )


def ask(question: str) -> bool:
    """Ask a person on the terminal; no terminal, no agreement."""
    if not sys.stdin.isatty():
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
