"""The ticker: a process that does not run says so afterwards, in few words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from pytest_drainwatch.core.interval import NS_PER_S, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import parse_observation
from pytest_drainwatch.watch.ticker import LATE_NS, PERIOD_NS, Ticker

MS = 1_000_000


def test_only_a_late_wake_is_recorded() -> None:
    seen: list[Observation] = []
    ticker = Ticker(seen.append)
    ticker.woke(0, PERIOD_NS)
    ticker.woke(0, PERIOD_NS + LATE_NS)
    assert seen == []
    ticker.woke(5, 5 + PERIOD_NS + LATE_NS + 1)
    (stall,) = seen
    assert (stall.source, stall.event) == (Source.K8S, Event.WATCHER_STALLED)
    assert stall.at == Interval(5, 5 + PERIOD_NS + LATE_NS + 1)
    assert stall.data == {"late_ns": LATE_NS + 1}


def test_too_many_become_one_line_that_covers_them() -> None:
    seen: list[Observation] = []
    ticker = Ticker(seen.append, most=2)
    for second in range(5):
        ticker.woke(second * NS_PER_S, second * NS_PER_S + (200 + second) * MS)
    assert len(seen) == 2
    ticker.close()
    ticker.close()
    assert len(seen) == 3
    assert seen[-1].at == Interval(2 * NS_PER_S, 4 * NS_PER_S + 204 * MS)
    assert seen[-1].data == {"late_ns": 184 * MS, "count": 3}


def test_a_stopped_process_is_recorded(tmp_path: Path) -> None:
    """SIGSTOP for real; the stall covers the time in which the process could not run."""
    program = textwrap.dedent(
        """
        import sys
        from pytest_drainwatch.core.recording import dump_observation
        from pytest_drainwatch.watch.ticker import Ticker

        ticker = Ticker(lambda seen: print(dump_observation(seen), flush=True))
        ticker.thread.start()
        print("ticking", flush=True)
        sys.stdin.read()
        ticker.stop()
        ticker.thread.join()
        ticker.close()
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ticking\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        stopped_ns = time.monotonic_ns()
        time.sleep(0.4)
        continued_ns = time.monotonic_ns()
        process.send_signal(signal.SIGCONT)
        told, _ = process.communicate(timeout=20)  # closes its stdin: told to stop at once
    seen = [parse_observation(text, 1) for text in told.splitlines()]
    assert process.returncode == 0
    covering = [o for o in seen if o.at.lo <= stopped_ns and continued_ns <= o.at.hi]
    assert len(covering) == 1
    late_ns = covering[0].data["late_ns"]
    assert isinstance(late_ns, int)
    assert late_ns >= continued_ns - stopped_ns - PERIOD_NS
