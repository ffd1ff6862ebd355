"""A namespace for one trial, and the sweeping of those that a dead run left behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, failures
from pytest_drainwatch.workload import manifests


def owner() -> str:
    """Names this process beyond doubt: boot id, pid and the pid's start time."""
    return f"{_boot_id()}/{os.getpid()}/{_start_time(os.getpid())}"


@contextmanager
def trial_namespace(api: Api, name: str, *, keep: Callable[[], bool]) -> Iterator[str]:
    """Create ``name`` and remove it again, unless ``keep()`` says to leave it."""
    body = manifests.namespace(name, owner())
    api.core.create_namespace(body, _request_timeout=REQUEST_TIMEOUT)
    try:
        yield name
    finally:
        if not keep():
            # Its pods may still be terminating; nobody measures them any more.
            with suppress(*failures()):
                api.core.delete_namespace(
                    name, grace_period_seconds=0, _request_timeout=REQUEST_TIMEOUT
                )


def sweep(api: Api) -> list[str]:
    """Remove namespaces whose owner ran on this machine and is dead; returns their names.

    Namespaces without our label, and those of other machines, are never touched.
    """
    selector = ",".join(f"{key}={value}" for key, value in manifests.MANAGED_BY.items())
    found = api.core.list_namespace(label_selector=selector, _request_timeout=REQUEST_TIMEOUT)
    swept = []
    for item in found.items:
        who = (item.metadata.annotations or {}).get(manifests.OWNER_ANNOTATION, "")
        if item.metadata.deletion_timestamp is None and is_dead(who):
            api.core.delete_namespace(item.metadata.name, _request_timeout=REQUEST_TIMEOUT)
            swept.append(item.metadata.name)
    return swept


def is_dead(who: str) -> bool:
    """Whether the process that an owner text names is surely gone.

    A process of another boot of another machine cannot be judged from here, so
    only this boot's processes can be dead.
    """
    boot, _, rest = who.partition("/")
    pid, _, started = rest.partition("/")
    if boot != _boot_id() or not pid.isdigit():
        return False
    return _start_time(int(pid)) != started


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _start_time(pid: int) -> str:
    try:
        # Field 22; the command in field 2 may hold blanks, so count from its end.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
