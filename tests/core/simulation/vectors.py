"""Inputs with their full results, for whoever computes the same: `python -m` this writes the file.

The page's script must give what Python gives. The file is read by both tests; what is in it is
compared anew with Python each time.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import Behavior
from pytest_drainwatch.core.simulation.document import document
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.presets import PRESETS
from pytest_drainwatch.core.simulation.run import simulate

FILE = Path(__file__).with_name("vectors.json")
COUNT = 60
COLUMNS = ("source", "start_ns", "takes_ns", "end_ns", "outcome", "cause", "attempts")

S = NS_PER_S
# Each is there for what it is beside: ties, cuts, what comes before or after what.
EDGES = (
    Inputs(grace_period_s=10, pre_stop_ns=9999 * S, behavior=Behavior.IGNORE),
    Inputs(grace_period_s=30, pre_stop_ns=300 * S),
    Inputs(grace_period_s=50, pre_stop_ns=40 * S, propagation_ns=30 * S, nodes=1),
    Inputs(pre_stop_ns=5 * S, grace_period_s=60, load_balancer_ns=18 * S),
    Inputs(grace_period_s=0, pre_stop_ns=0),
    Inputs(grace_period_s=0, pre_stop_ns=1),
    Inputs(drain_ns=0),
    Inputs(drain_ns=0, close_idle=False, pre_stop_ns=10 * S + 300 * NS_PER_MS),
    Inputs(pre_stop_ns=10 * S + 300 * NS_PER_MS, propagation_ns=1, longest_ns=1_000_000),
    Inputs(pre_stop_ns=10 * S + 250 * NS_PER_MS, behavior=Behavior.EXIT_NOW),
    Inputs(pre_stop_ns=2 * S + 999_999_999, grace_period_s=3, behavior=Behavior.IGNORE),
    Inputs(handler_ns=40 * S, grace_period_s=30, behavior=Behavior.EXIT_NOW),
    Inputs(handler_ns=20 * S, grace_period_s=30),
    Inputs(kill_ns=3 * S, grace_period_s=12, longest_ns=60 * S),
    Inputs(kubelet_ns=2 * S + 1, handler_ns=7, kill_ns=1, pre_stop_ns=0),
    Inputs(propagation_ns=0, keepalive=False, longest_ns=1 * S),
    Inputs(propagation_ns=10 * S + 1, keepalive=False),
    Inputs(propagation_ns=0, keepalive=False, longest_ns=1_000_000),
    Inputs(propagation_ns=1, nodes=1, keepalive=False, longest_ns=1_000_000),
    Inputs(kill_ns=5 * S, grace_period_s=20),
    Inputs(pre_stop_ns=0, client_retries=3),
    Inputs(pre_stop_ns=0, client_retries=10, load_balancer_ns=20 * S, nodes=2),
    Inputs(close_idle=False, client_retries=1),
    Inputs(slow_ns=2 * S),
    Inputs(slow_ns=0, nodes=7, propagation_ns=3 * S),
    Inputs(drain_ns=35 * S, longest_ns=50 * S),
    Inputs(drain_ns=34 * S, longest_ns=50 * S),
)


def drawn(chance: random.Random) -> Inputs:
    """Any inputs; round numbers, which meet each other, as often as odd ones."""

    def ns(most_s: int) -> int:
        odd = chance.random() < 0.5
        return chance.randrange(most_s * S) if odd else chance.randrange(most_s + 1) * S

    def rarely(value: int) -> int:
        return value if chance.random() < 0.3 else 0

    return Inputs(
        grace_period_s=chance.choice((0, 1, 5, 20, 30, 45)),
        pre_stop_ns=chance.choice((0, ns(15), ns(15), ns(60))),
        behavior=chance.choice(tuple(Behavior)),
        drain_ns=ns(30),
        close_idle=chance.random() < 0.7,
        nodes=chance.choice((1, 2, 3, 3, 5)),
        propagation_ns=ns(12),
        load_balancer_ns=chance.choice((None, ns(20))),
        longest_ns=max(1_000_000, ns(25)),
        keepalive=chance.random() < 0.7,
        client_retries=chance.choice((0, 0, 1, 3)),
        slow_ns=chance.choice((30 * S, ns(10))),
        kubelet_ns=rarely(ns(2)),
        handler_ns=rarely(ns(5)),
        kill_ns=rarely(ns(1)),
    )


def chosen() -> Iterator[Inputs]:
    """What the file holds."""
    yield from (preset.inputs for preset in PRESETS)
    yield from EDGES
    chance = random.Random(3)
    for _ in range(COUNT - len(PRESETS) - len(EDGES)):
        yield drawn(chance)


def packed(found: dict[str, Any]) -> dict[str, Any]:
    """The same with requests as rows: a third of the size."""
    rows = [[request[name] for name in COLUMNS] for request in found["sent"]]
    return {**found, "sent": rows}


def unpacked(kept: dict[str, Any]) -> dict[str, Any]:
    """A document again."""
    sent = [dict(zip(COLUMNS, row, strict=True)) for row in kept["sent"]]
    return {**kept, "sent": sent}


def read() -> list[dict[str, Any]]:
    """The documents in the file."""
    return [unpacked(json.loads(line)) for line in FILE.read_text("utf-8").splitlines()]


def main() -> None:
    """Write it anew; look at what changed before you keep it."""
    lines = [
        json.dumps(packed(document(simulate(inputs))), ensure_ascii=False, separators=(",", ":"))
        for inputs in chosen()
    ]
    FILE.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    print(f"{FILE.name}: {len(lines)}, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
