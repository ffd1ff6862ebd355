"""Runs a command in a time namespace of its own: ``timens.py OFFSET_NS COMMAND…``.

``unshare --monotonic`` knows whole seconds only. Signals are passed on; the command dies
with this process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

CLONE_NEWTIME = 0x80
PR_SET_PDEATHSIG = 1
EXIT_NOT_ALLOWED = 77


def main() -> int:
    offset_ns, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWTIME):
        print(f"unshare: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        return EXIT_NOT_ALLOWED
    seconds, nanos = divmod(offset_ns, 10**9)
    Path("/proc/self/timens_offsets").write_text(f"monotonic {seconds} {nanos}\n")
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execvp(command[0], command)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
