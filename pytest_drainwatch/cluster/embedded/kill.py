"""The process that is PID 1 of a container, as the host numbers it, and its end.

Nobody inside of a container can kill its PID 1: the kernel drops SIGKILL from its own PID
namespace. From the host's it arrives.
"""

from __future__ import annotations

import contextlib
import os
import signal
import weakref

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import processes


class Killer:
    """Kills one process, which it holds on to: a number that comes again is never meant."""

    def __init__(self, descriptor: int, who: str) -> None:
        self._descriptor, self._who = descriptor, who
        self._close = weakref.finalize(self, os.close, descriptor)

    def __call__(self) -> None:
        try:
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        except ProcessLookupError:
            raise ClusterError(
                f"{self._who} had ended before it was to be killed. Expected it to run until then."
                " See its last log lines: kubectl logs --previous"
            ) from None
        finally:
            self._close()


def find(uid: str, container_id: str, *, cluster: str) -> Killer:
    """What kills PID 1 of the container *container_id* of the pod *uid*.

    Raises:
        ClusterError: no process of it runs in *cluster*.
    """
    who = f"container {container_id[:12]} of pod {uid} in cluster {cluster}"
    pid = processes.oldest(uid, container_id)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            killer = Killer(os.pidfd_open(pid), who)
            if processes.oldest(uid, container_id) == pid:  # it is still the one that was found
                return killer
    raise ClusterError(
        f"no process of {who} was found: expected one that runs."
        " See: kubectl get pods --all-namespaces -o wide"
    )
