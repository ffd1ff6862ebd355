"""How long does it take to judge a recording of 10,000 flows, and to show the report?

    python -m bench.derive [--flows 10000] [--rounds 3] [--profile]

The recording is generated: a drain, half of the flows TCP, which are told and closed, half UDP,
which lose a few datagrams and move to the replacement; new connections beside them, some of
which fail. Prints one JSON line per figure: seconds of processor time, the least of all
rounds. The goal is for judging and showing together; reading the recording and writing
report.json are beside it.
Exit code: 0 within the goal, 1 not.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from bench.arguments import positive
from pytest_drainwatch import report
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.core.recording import Recording, dumps, loads
from pytest_drainwatch.render.terminal import show
from tests.core import story as s
from tests.core.tries import prober, tries

T = TypeVar("T")
WITHIN, SLOWER = 0, 1
GOAL_S = 1.0
SHOWN = 25  # lines of a profile
DRAIN_MS, MOVED_MS, END_MS = 25_000, 3_000, 59_000


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.derive", description="how long judging many flows takes"
    )
    parser.add_argument("--flows", type=positive, default=10_000, help="half TCP (%(default)s)")
    parser.add_argument("--rounds", type=positive, default=3, help="(%(default)s)")
    parser.add_argument("--profile", action="store_true", help="where the time goes, on stderr")
    arguments = parser.parse_args(argv)
    text = dumps(generated(arguments.flows))
    took = [_round(text) for _ in range(arguments.rounds)]
    least = {name: min(one[name] for one in took) for name in took[0]}
    both = min(one["derive"] + one["render"] for one in took)
    for name, seconds in least.items():
        print(json.dumps(_figure(f"{name}_s", seconds)), flush=True)
    print(json.dumps(_figure("derive_and_render_s", both, f"<= {GOAL_S:g}")), flush=True)
    if arguments.profile:
        _profile(loads(text))
    return WITHIN if both <= GOAL_S else SLOWER


def generated(flows: int) -> Recording:
    """A trial with so many flows."""
    each = (*map(_tcp, range(flows // 2)), *map(_udp, range(flows - flows // 2)))
    return s.recording(
        (seen for flow in each for seen in flow),
        [s.accepted()],
        [s.log(Event.SIGTERM_RECEIVED, 40)],
        s.cluster(0, DRAIN_MS + 200, grace_s=30),
        prober(
            tries(-9_000, 3_600),
            tries(9_000, 100, Result.REFUSED),
            tries(9_500, 500, who=s.NEW),
            tries(12_000, 900, who=s.NEW, every=10),
        ),
        config={"drain_behavior": "drain", "probe_interval_ms": 5.0},
    )


def _tcp(number: int) -> Iterator[Observation]:
    """Answered until its pod says bye and closes it."""
    flow, end_ms = f"tcp-{number}", DRAIN_MS + number % 50
    yield from s.alive(flow, end_ms - 20)
    told = s.at(end_ms, end_ms + 1)
    yield s.client(Event.FLOW_ANNOUNCED, flow, told, seq=100, reason="drain-deadline")
    yield s.client(Event.FLOW_FIN, flow, told)


def _udp(number: int) -> Iterator[Observation]:
    """Answered, then not, then by the replacement."""
    flow, lost_ms = f"udp-{number}", MOVED_MS + number % 100
    yield from s.alive(flow, lost_ms)
    yield s.unanswered(flow, lost_ms + 16, lost_ms + 116, 7)
    yield s.responder(flow, s.NEW, lost_ms + 130, lost_ms + 131, s.OLD)
    yield s.answered(flow, s.NEW, lost_ms + 130, END_MS, (108, 600))
    yield s.client(
        Event.FLOW_OPEN_AT_END, flow, s.at(END_MS), sent=600, answered=593, unanswered=7,
        late=0, reordered=0, duplicates=0, last_seq=600, unsent=0,
    )  # fmt: skip


def _round(text: str) -> dict[str, float]:
    """Seconds of each phase, in their order."""
    took: dict[str, float] = {}

    def timed(name: str, work: Callable[[], T]) -> T:
        gc.collect()
        begun = time.process_time()
        done = work()
        took[name] = time.process_time() - begun
        return done

    recording = timed("read", lambda: loads(text))
    judged = timed("derive", lambda: derive(recording))
    timed("render", lambda: show(judged))
    timed("write", lambda: report.dumps(judged))
    return took


def _profile(recording: Recording) -> None:
    profile = cProfile.Profile()
    judged = profile.runcall(derive, recording)
    profile.runcall(show, judged)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(SHOWN)


def _figure(name: str, value: float, goal: str | None = None) -> dict[str, object]:
    return {"figure": name, "value": round(value, 3), "unit": "s", "goal": goal}


if __name__ == "__main__":
    sys.exit(main())
