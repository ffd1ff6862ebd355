"""A namespace for one trial, and the sweeping of those that a dead run left behind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_drainwatch.api import REQUEST_TIMEOUT, Api, explain, failures
from pytest_drainwatch.workload import manifests

UNKNOWN = "unknown"
# A namespace whose removal is answered so is gone, or going.
GOING = (404, 409)


def owner() -> str:
    """Names this process beyond doubt: boot id, pid, the pid's start time, and the PID
    namespace that the pid is of (containers share their host's boot id).
    """
    return f"{_boot_id()}/{os.getpid()}/{_start_time(os.getpid())}/{_pid_namespace()}"


@contextmanager
def trial_namespace(
    api: Api, name: str, *, keep: Callable[[], bool], say: Callable[[str], None]
) -> Iterator[str]:
    """Create ``name`` and remove it again, unless ``keep()`` says to leave it.

    ``say`` takes why it could not be removed.
    """
    body = manifests.namespace(name, owner())
    created = False
    try:
        api.core.create_namespace(body, _request_timeout=REQUEST_TIMEOUT)
        created = True
        yield name
    finally:
        # Interrupted or unanswered, the call may have been carried out all the same.
        if not keep() and (created or _is_ours(api, name)):
            # Its pods may still be terminating; nobody measures them any more.
            try:
                _ask_to_go(api, name, grace_period_seconds=0)
            except failures() as error:
                if getattr(error, "status", None) not in GOING:
                    say(
                        f"left: namespace {name}, whose removal failed: {explain(error)}. "
                        f"Type: kubectl delete namespace {name}"
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
        gone = item.metadata.deletion_timestamp is None and is_dead(who)
        if gone and _delete(api, item.metadata.name):
            swept.append(item.metadata.name)
    return swept


def is_dead(who: str) -> bool:
    """Whether the process that an owner text names is surely gone.

    Only processes of this boot and this PID namespace can be judged from here. Any
    other's, or that of an owner text which does not tell, cannot be called dead.
    """
    parts = who.split("/")
    if len(parts) != 4:
        return False
    boot, pid, started, pid_namespace = parts
    here = (_boot_id(), _pid_namespace())
    if UNKNOWN in here or (boot, pid_namespace) != here or not re.fullmatch(r"\d{1,9}", pid):
        return False
    now = _start_time(int(pid))
    return now != started if now else not _exists(int(pid))


def _exists(pid: int) -> bool:
    """Whether there is such a process, even if /proc hides it (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _is_ours(api: Api, name: str) -> bool:
    """Whether a namespace is there and names this process: another's name may collide."""
    with suppress(*failures()):
        found = api.core.read_namespace(name, _request_timeout=REQUEST_TIMEOUT)
        return (found.metadata.annotations or {}).get(manifests.OWNER_ANNOTATION) == owner()
    return False


def _delete(api: Api, name: str) -> bool:
    """Ask for a namespace's removal; False if it is refused, gone or going."""
    with suppress(*failures()):
        _ask_to_go(api, name)
        return True
    return False


def _ask_to_go(api: Api, name: str, **options: int) -> None:
    """Ask for a namespace's removal. The API client's errors pass."""
    api.core.delete_namespace(name, _request_timeout=REQUEST_TIMEOUT, **options)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return UNKNOWN


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return UNKNOWN


def _start_time(pid: int) -> str:
    try:
        # Field 22; the command in field 2 may hold blanks, so count from its end.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
