"""Workers of one run build the same image at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BUILD = """
import sys
from pytest_drainwatch.cluster.embedded.image import _image
sys.stdin.readline()
image = _image("docker.io/dw/race", [b"x" * 20_000_000], entrypoint=["/x"], environment=[])
print(image.archive)
"""


def test_workers_that_build_side_by_side_do_not_disturb_each_other(tmp_path: Path) -> None:
    env = {**os.environ, "DW_CACHE": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", BUILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for _ in range(4)
    ]
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    ends = [worker.communicate(timeout=60) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, ends
    (archive,) = {out.strip() for out, _ in ends}
    assert [p.name for p in Path(archive).parent.iterdir()] == [Path(archive).name]
