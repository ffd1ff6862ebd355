"""HAProxy's parent: ends it as soon as whoever started us is gone.

    python -m pytest_drainwatch.balancers HAPROXY CONFIG DESCRIPTOR

Our stdin is the lifeline. If we are killed the kernel ends HAProxy.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from pytest_drainwatch.balancers.process import NOBODY
from pytest_drainwatch.cluster.embedded.mounts import die_with_parent


def main(argv: list[str]) -> int:
    """Run it until it ends, or our stdin does; returns its exit code."""
    program, config, descriptor = argv
    nobody: dict[str, object] = {}
    if os.geteuid() == 0:
        nobody = {"user": NOBODY, "group": "nogroup", "extra_groups": []}
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [program, "-db", "-f", config],
        stdin=subprocess.DEVNULL,
        pass_fds=(int(descriptor),),
        # After the change of user, which takes it back.
        preexec_fn=lambda: die_with_parent(signal.SIGKILL),
        **nobody,  # type: ignore[call-overload]
    )

    def follow() -> None:
        sys.stdin.buffer.read()
        process.kill()

    threading.Thread(target=follow, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
