"""The recording that judging is timed with is one that judging has work with."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from bench import derive as bench
from bench.derive import SLOWER, WITHIN, generated
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.flow.classify import Mechanism


def test_each_half_ends_in_its_way() -> None:
    trial = derive(generated(41)).trial
    ends = Counter((flow.proto, flow.mechanism) for flow in trial.flows)
    assert ends == {("tcp", Mechanism.ANNOUNCED_FIN): 20, ("udp", Mechanism.REHOMED): 21}
    assert all(
        flow.continuity is not None and flow.continuity.lost == 7 for flow in trial.flows[20:]
    )
    (prober,) = trial.new_connections
    assert (prober.failed, len(prober.by_interval)) == (100, 2)
    assert trial.pod_ends


@pytest.mark.parametrize(("goal_s", "code"), [(1e9, WITHIN), (0.0, SLOWER)])
def test_either_verdict(
    goal_s: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "GOAL_S", goal_s)
    assert bench.main(["--flows", "20", "--rounds", "1"]) == code
    told: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["figure"] for line in told] == [
        "read_s", "derive_s", "render_s", "write_s", "derive_and_render_s",
    ]  # fmt: skip
