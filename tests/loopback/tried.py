"""What a prober wrote down, checked for what must always hold."""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.probing.result import Result
from pytest_drainwatch.flows.limits import port_range
from tests.loopback.rig import Agent, Part

FIRST_FREE = 2000
SUMMARY = {
    "proto", "address", "node", "period_ns", "epoch_ns", "patience_ns", "source",
    "ports_round_ns", "attempts",
    "missed_slots", "unfinished", "late_p50_ns", "late_p99_ns", "late_max_ns", "stretches",
}  # fmt: skip


def trying(port: int, proto: str = "tcp", **more: Any) -> dict[str, Any]:
    """A prober's configuration; times in milliseconds."""
    interval_ms, patience_ms = more.pop("interval_ms", 5), more.pop("patience_ms", 1000)
    return {
        "proto": proto,
        "address": "127.0.0.1",
        "port": port,
        "interval_ns": interval_ms * NS_PER_MS,
        "patience_ns": patience_ms * NS_PER_MS,
        **more,
    }


def await_tried(agent: Agent, name: str, count: int, subject: str = "tcp-new") -> dict[str, Any]:
    """Wait until the status tells so many attempts that were ``answered`` or ``finished``."""

    def enough(status: dict[str, Any]) -> bool:
        told = status["probers"].get(subject) or {}
        return bool(told) and told[name] >= count

    return agent.await_line(enough, f"{count} attempts {name}")


class Tried:
    """The runs of one prober, in order."""

    def __init__(self, part: Part, subject: str = "tcp-new") -> None:
        (summary,) = (o for o in part.all(Event.PROBER_SUMMARY) if o.subject == subject)
        self.summary: dict[str, Any] = {**summary.data}
        seen = [o for o in part.all(Event.NEW_CONNECTIONS) if o.subject == subject]
        self.runs: list[Mapping[str, Any]] = [_whole(o) for o in seen]
        self.counts: Counter[str] = Counter()
        for run in self.runs:
            self.counts[run["result"]] += run["count"]
        told, runs = self.summary, self.runs
        assert set(told) == SUMMARY
        assert set(self.counts) <= set(Result)
        assert self.counts.total() == told["attempts"]
        assert self.counts[Result.UNFINISHED] == told["unfinished"]
        # All slots are there, but perhaps the one that was due when it stopped; those that
        # were missed after the last attempt are in no run.
        slots = told["attempts"] + told["missed_slots"]
        planned = [_planned(told, stretch) for stretch in told["stretches"]]
        assert sum(planned) - 1 <= slots <= sum(planned)
        for stretch, number in zip(told["stretches"], planned, strict=True):
            last = stretch is told["stretches"][-1]
            assert number - last <= stretch["attempts"] + stretch["missed_slots"] <= number
        for name in ("attempts", "missed_slots"):
            assert told[name] == sum(stretch[name] for stretch in told["stretches"])
        for one, other in pairwise(runs):
            assert one["last_slot"] < other["first_slot"]
        for o, run in zip(seen, runs, strict=True):
            assert (run["count"] - 1) * run["every"] <= run["last_slot"] - run["first_slot"]
            assert o.at.hi - run["first_ns"] >= run["took_max_ns"]
            for end in ("first", "last"):
                slot_ns = told["epoch_ns"] + run[f"{end}_slot"] * told["period_ns"]
                assert _every(told, slot_ns) == run["every"]
                assert run[f"{end}_slot"] % run["every"] == 0
                assert slot_ns <= run[f"{end}_ns"], "never before its slot"
                assert run["took_min_ns"] <= run[f"{end}_took_ns"] <= run["took_max_ns"]
                assert run[f"{end}_ns"] + run[f"{end}_took_ns"] <= o.at.hi
            assert o.at.lo == run["first_ns"]

    @property
    def ways(self) -> list[tuple[str, str | None, str | None]]:
        """Result, responder and errno of each run, repeats left out."""
        found: list[tuple[str, str | None, str | None]] = []
        for run in self.runs:
            way = (run["result"], run["responder"], run["errno"])
            if not found or found[-1] != way:
                found.append(way)
        return found


def _whole(o: Observation) -> dict[str, Any]:
    """A run with all its fields; one of a single attempt is written without most of them."""
    rest: dict[str, Any] = {}
    if "count" not in o.data:
        assert set(o.data) <= {"result", "first_slot", "responder", "errno", "every"}
        rest = {"count": 1, "last_slot": o.data["first_slot"]}
        rest.update(dict.fromkeys(("first_ns", "last_ns"), o.at.lo))
        tooks = ("first_took_ns", "last_took_ns", "took_min_ns", "took_max_ns")
        rest.update(dict.fromkeys(tooks, o.at.width))
    assert None not in o.data.values()
    return {"responder": None, "errno": None, "every": 1, **o.data, **rest}


def _planned(told: dict[str, Any], stretch: dict[str, Any]) -> int:
    """How many slots a stretch holds."""
    period_ns = told["period_ns"] * stretch["every"]
    lo_ns, hi_ns = (at_ns - told["epoch_ns"] for at_ns in stretch["at"])
    planned: int = -(-hi_ns // period_ns) - -(-lo_ns // period_ns)
    return planned


def _every(told: dict[str, Any], slot_ns: int) -> int:
    """Each so many-th slot is tried where that one lies."""
    (every,) = (int(s["every"]) for s in told["stretches"] if s["at"][0] <= slot_ns < s["at"][1])
    return every


@contextmanager
def mute_listener(backlog: int = 512) -> Iterator[int]:
    """A port whose connections are accepted by the kernel and by nobody else."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        yield listener.getsockname()[1]


@contextmanager
def full_listener() -> Iterator[int]:
    """A port that takes no connection any more: its queue is full, and SYNs are dropped."""
    with mute_listener(backlog=0) as port, socket.socket() as first:
        first.connect(("127.0.0.1", port))
        yield port


def closed_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port that nobody listens on, and that nobody connects from.

    Among the kernel's source ports an attempt could be given that very one, and TCP connects a
    port with itself. (Where all ports are source ports, there is no other.)
    """
    low, _ = port_range() or (FIRST_FREE, 0)
    tried = random.sample(range(FIRST_FREE, low), 20) if low > FIRST_FREE + 20 else []
    for port in (*tried, 0):
        with socket.socket(socket.AF_INET, kind) as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            found: int = sock.getsockname()[1]
            return found
    raise OSError("no port is free")
