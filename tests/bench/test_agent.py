"""What an agent takes is told of the stretch that was looked at, and of no other."""

from __future__ import annotations

import json

import pytest

from bench import agent
from bench.prober import DONE
from pytest_drainwatch.core.interval import NS_PER_MS, Interval
from pytest_drainwatch.core.observation import Event, Observation, Source

DIALLING, GAP, DENSE, SPARSE = range(0, 400, 100)


def sending(proto: str, begun_ns: int, late_p99_ns: int | None) -> Observation:
    return Observation(
        source=Source.CLIENT,
        event=Event.AGENT_SENDING,
        at=Interval(begun_ns, begun_ns + 100),
        data={"proto": proto, "late_p99_ns": late_p99_ns},
    )


def test_the_later_transport_of_the_stretch_that_was_looked_at() -> None:
    seen = [
        sending("tcp", DIALLING, 900),
        sending("tcp", GAP, 800),
        sending("tcp", DENSE, 5),
        sending("udp", DENSE, 7),
        sending("tcp", SPARSE, 3),
        sending("udp", SPARSE, None),  # sent nothing in it
    ]
    assert agent.late_ns(seen, DENSE) == 7, "and not what dialling cost"
    assert agent.late_ns(seen, SPARSE) == 3
    assert agent.late_ns(seen, SPARSE + 1) is None


def test_figures_are_medians_over_rounds() -> None:
    taken = [
        {"dense": agent.Taken(cores=share, wakes_per_s=100, late_p99_ns=late)}
        for share, late in ((0.1, 2 * NS_PER_MS), (0.2, None), (0.9, 4 * NS_PER_MS))
    ]
    told = {figure["figure"]: figure["value"] for figure in agent.figures(taken)}
    assert told == {"cpu_dense": 20, "wake_ups_dense": 100, "sends_late_p99_dense": 3}


def test_a_round_against_a_real_probe(capsys: pytest.CaptureFixture[str]) -> None:
    assert agent.main(["--seconds", "0.3", "--rounds", "1"]) == DONE
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {line["figure"]: line["value"] for line in told}
    assert len(found) == 6, "each figure of both stretches"
    assert found["wake_ups_sparse"] < found["wake_ups_dense"], "the loop follows the plan"
