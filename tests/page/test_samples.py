"""Pages of the sample runs, which real clusters gave: their shape, and what they say."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.render.page.data import Trial
from pytest_drainwatch.render.page.trial import trial
from tests.page.shape import check_trial

SAMPLES = Path(__file__).resolve().parents[2] / "results" / "sample"
REPORTS = sorted(SAMPLES.glob("*/*/r0*/report.json"))
NEWER = SAMPLES / "kubernetes-1.37"


@cache
def read(path: Path) -> Report:
    return report.loads(path.read_text(encoding="utf-8"))


def shown(arm: str) -> Trial:
    return trial(read(NEWER / arm / "r00" / "report.json"))


def test_there_are_samples() -> None:
    assert len(REPORTS) >= 25


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: "/".join(path.parts[-4:-1]))
def test_every_sample_is_a_page_with_all_of_its_flows(path: Path) -> None:
    said = read(path)
    found = trial(said)
    check_trial(found)
    assert sorted(flow["id"] for flow in found["flows"]) == sorted(f.id for f in said.trial.flows)
    for flow in found["flows"]:
        (mine,) = [f for f in said.trial.flows if f.id == flow["id"]]
        assert (flow["outcome"], flow["mechanism"]) == (mine.outcome, mine.mechanism)
        assert flow["rows"] is not None
        assert len(flow["rows"]) == len(mine.history) + len(mine.evidence)
    assert 2 <= len(found["says"]) <= 5


DONE = (
    "Pod A (the only one) was deleted through the Kubernetes API while 10 TCP connections and 10 "
    "UDP flows talked to it; times count from then. "
)
DRAINS = (
    "It is built to drain: to take no new connections, to serve those it has for up to 25 s, then "
    "to say bye and close them."
)

CLEAN = "All 10 open TCP connections were closed cleanly, as the pod had announced, "
MOVED = "All 10 UDP flows moved to another pod without losing a datagram."

GOLDEN = {
    "A-exit-now-delete": [
        DONE + "It was asked to stop (SIGTERM) at +31.0 ms. It is built to exit at once.",
        "All 10 open TCP connections were cut off by a reset, without warning, at about +31 ms.",
        "All 10 UDP flows went unanswered from the first 35 ms on; pod B, the replacement, "
        "answered again after at most 2.38 s; each lost 69–70 datagrams.",
        "New TCP connections failed for 2.15–3.13 s, from about +45 ms on: all 109 tried "
        "in that time (21 refused, 1 reset, 87 without an answer). Pod A exited at +32.5 ms and "
        "pod B, its replacement, was ready by +1.515 s.",
    ],
    "B-drain-delete": [
        DONE + "It was asked to stop (SIGTERM) at +46.4 ms. " + DRAINS,
        CLEAN + "at +25.048 s.",
        MOVED,
        "New TCP connections failed for 1.06 s, from +63.0 ms on: all 54 tried in that "
        "time (refused). Pod A stopped accepting at +47.3 ms and pod B, its replacement, was ready "
        "by +782.8 ms.",
    ],
    "C-ignore-delete": [
        DONE
        + "It was asked to stop (SIGTERM) at +84.1 ms. It is built to ignore that, until it is "
        "killed when its grace period of 30 s is over.",
        "All 10 open TCP connections were closed without warning, at about +30.10 s.",
        "All 10 UDP flows went unanswered from about +30.08 s on; pod B, the replacement, answered "
        "again after at most 367 ms; each lost 9–10 datagrams.",
        "None of 653 new TCP connections failed.",
    ],
    "D-drain-evict": [
        DONE.replace(
            "deleted through the Kubernetes API", "evicted, as the drain of a node does it,"
        )
        + "It was asked to stop (SIGTERM) at +172.1 ms. "
        + DRAINS,
        CLEAN + "at about +25.19 s.",
        MOVED,
        "New TCP connections failed for 2.11–3.03 s, from +196.1 ms on: all 107 tried in "
        "that time (62 refused, 45 without an answer). Pod A stopped accepting at +183.1 ms and "
        "pod B, its replacement, was ready by +1.741 s.",
    ],
    "E-drain-scale": [
        "The workload was scaled down, which ended pod A (the only one) while 10 TCP connections "
        "and 10 UDP flows talked to it; times count from then. It was asked to stop (SIGTERM) at "
        "+81.9 ms. " + DRAINS,
        CLEAN + "at about +25.08 s.",
        "All 10 UDP flows went unanswered from about +25.08 s on, to the end of the recording; "
        "each lost 243–244 datagrams.",
        "New TCP connections failed from +85.8 ms on, to the end of the recording: all 867 tried "
        "in that time (90 refused, 777 without an answer). Pod A stopped accepting at +82.2 ms and "
        "no other pod was there.",
    ],
}
HURT = {
    "A-exit-now-delete": (
        "new:tcp-new",
        "New TCP connections failed for 2.15–3.13 s, from about +45 ms on: all 109 tried in "
        "that time. Also, 10 open TCP connections were cut off, at about +31 ms.",
    ),
    "B-drain-delete": (
        "new:tcp-new",
        "New TCP connections failed for 1.06 s, from +63.0 ms on: all 54 tried in that time.",
    ),
    "C-ignore-delete": (
        "udp:outage",
        "All 10 UDP flows went unanswered for up to 367 ms, from about +30.08 s on. Also, 10 open "
        "TCP connections were cut off, at about +30.10 s.",
    ),
    "E-drain-scale": (
        "new:tcp-new",
        "New TCP connections failed from +85.8 ms on, to the end of the recording: all 867 tried "
        "in that time.",
    ),
}


@pytest.mark.parametrize("arm", GOLDEN)
def test_each_arm_says_what_happened_to_connections(arm: str) -> None:
    assert shown(arm)["says"] == GOLDEN[arm]


@pytest.mark.parametrize("arm", HURT)
def test_the_window_that_hurt_most_is_a_band_of_the_picture(arm: str) -> None:
    hurt = shown(arm)["hurt"]
    assert hurt is not None
    assert (hurt["band"], hurt["text"]) == HURT[arm]


def test_stories_say_who_answered_until_when() -> None:
    drained, killed = shown("B-drain-delete"), shown("A-exit-now-delete")
    stories = {flow["id"]: flow["story"] for flow in drained["flows"]}
    assert stories["tcp-0001"] == (
        "Connected 12.6 s before t = 0; pod A answered 188 heartbeats, the last one at +24.927 s; "
        "pod A said bye and closed with FIN at +25.048 s, as announced."
    )
    assert stories["udp-0010"] == (
        "Answered by pod A until +1.142–1.176 s; then, with no datagram lost, answered by pod B."
    )
    stories = {flow["id"]: flow["story"] for flow in killed["flows"]}
    assert stories["tcp-0001"].endswith(
        "cut off by a reset (RST) at +31.5–31.9 ms, without having been told."
    )
    assert stories["udp-0010"] == (
        "Answered by pod A until +3–38 ms; 70 datagrams lost; answered by pod B from "
        "+2.336–2.371 s."
    )
    assert stories["udp-0001"] == (
        "Answered by pod A until +17–52 ms; 70 datagrams lost, and refused (ICMP port "
        "unreachable); answered by pod B from +2.352–2.394 s."
    )


def test_the_lanes_hold_what_the_report_tells() -> None:
    found = shown("B-drain-delete")
    lanes = {lane["id"]: lane for lane in found["lanes"]}
    assert list(lanes) == ["api", "endpoints", "kubelet", "app", "tcp", "new", "instrument"]
    keys = {mark["key"]: mark for lane in found["lanes"] for mark in lane["marks"]}
    assert keys["trigger_issued"]["at"] == (0, 0)
    assert keys["sigterm_received"]["at"] == (46_430, 46_431)
    # The windows bound it more closely than the timeline's "after the trigger".
    assert keys["endpointslice_endpoint_removed"]["at"] == (25_038_914, 25_313_038)
    bands = {
        band["id"].partition(":")[0]: band for lane in found["lanes"] for band in lane["bands"]
    }
    assert bands["new"]["met"] == "54 of 54 failed"
    assert bands["advertised"]["met"] == "54 of 512 new connections failed"
    assert bands["grace"]["closes"] == (30_000_000, 30_046_431)
    assert bands["new"]["opens"] == (62_919, 62_986)
