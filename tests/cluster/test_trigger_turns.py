"""A trigger makes pods start, so it waits while others start on this machine."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from pytest_drainwatch import trial as conductor
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.cluster.embedded.starts import DEPLOYMENTS
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.plan import BEFORE_NS
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.trial import Held
from tests.cluster.harness import QUICK, Silent, measure_stage, never

pytestmark = pytest.mark.cluster


def test_a_trigger_and_its_dense_stretch_wait_for_pods_that_start(
    dw_cluster: Cluster, tmp_path: Path
) -> None:
    ended_ns: list[int] = []

    def others_start(held: Held) -> None:
        begun = threading.Event()

        def deploy() -> None:
            with DEPLOYMENTS.turn(lambda _: None):
                begun.set()
                time.sleep(3.0)
                ended_ns.append(time.monotonic_ns())

        threading.Thread(target=deploy, daemon=True).start()
        assert begun.wait(30)

    with conductor.prepare(
        dw_cluster, QUICK, folder=tmp_path, keep=never, progress=Silent()
    ) as stage:
        measure_stage(stage, others_start)
    (ended,) = ended_ns
    seen = loads((tmp_path / "recording.jsonl").read_text()).observations
    (accepted,) = (o for o in seen if o.event is Event.TRIGGER_ACCEPTED)
    assert accepted.at.lo >= ended + BEFORE_NS, "it would have come two seconds before"
    sent = [o for o in seen if o.event is Event.AGENT_SENDING and o.data["proto"] == "udp"]
    dense_hz = max(float(str(o.data["rate_hz"])) for o in sent)
    around = [o.at for o in sent if o.data["rate_hz"] == dense_hz and o.at.hi > accepted.at.lo]
    assert abs(around[0].lo - (accepted.at.lo - BEFORE_NS)) < 250 * NS_PER_MS
    assert str(os.getpid()) not in [name.split("-")[1] for name in DEPLOYMENTS.tickets()]
