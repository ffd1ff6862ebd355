"""Which processes of this machine are a pod's: told by the cgroups that they are in."""

from __future__ import annotations

import contextlib
from pathlib import Path


def oldest(uid: str, container_id: str = "") -> int | None:
    """The first process of the pod *uid*, its sandbox's, or of one container of it.

    It is named as the host numbers it. A pod's cgroup folder is ``pod<uid>``, or systemd's
    spelling of that; its containers' lie in it and have their ids in their names.
    """
    pods = (f"pod{uid}", f"pod{uid.replace('-', '_')}")
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                cgroups = (folder / "cgroup").read_text()
                if container_id in cgroups and any(pod in cgroups for pod in pods):
                    started = (folder / "stat").read_text().rpartition(")")[2].split()[19]
                    found.append((int(started), int(folder.name)))
    return min(found)[1] if found else None
