"""HAProxy's parent: ends it as soon as whoever started us is gone.

    python -m pytest_drainwatch.balancers HAPROXY FOLDER DESCRIPTOR…

Our stdin is the lifeline; the folder is ours, and goes with it: its config is read there. HAProxy
inherits the descriptors. If we are killed the kernel ends HAProxy.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from pytest_drainwatch.balancers.process import CONFIG
from pytest_drainwatch.cluster.embedded.mounts import die_with_parent

LIFELINE = 0  # stdin


def main(argv: list[str]) -> int:
    """Run it until it ends, or our stdin does; returns its exit code."""
    program, folder, *descriptors = argv
    # Opened by us: who is nobody may not enter every folder.
    config = os.open(Path(folder, CONFIG), os.O_RDONLY)
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [program, "-db", "-f", f"/dev/fd/{config}"],
        stdin=subprocess.DEVNULL,
        pass_fds=(config, *map(int, descriptors)),
        # After the change of user, which takes it back.
        preexec_fn=lambda: die_with_parent(signal.SIGKILL),
        **_nobody(),  # type: ignore[call-overload]
    )

    left = threading.Event()

    def follow() -> None:
        while os.read(LIFELINE, 1):  # no lock of Python's, which our end would trip over
            pass
        left.set()
        process.kill()

    threading.Thread(target=follow, daemon=True).start()
    code = process.wait()
    if left.is_set():  # else somebody still wants to read why it ended
        shutil.rmtree(folder, ignore_errors=True)
    return code


def _nobody() -> dict[str, object]:
    """Whose rights root gives it; anybody else has none to take away."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
