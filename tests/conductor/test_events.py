"""What the cluster says about the pods, read at the end of a trial over real HTTP."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.workload import probe
from tests.conductor.api_server import Call, reply, serving


def item(reason: str, uid: str = "u", **more: object) -> dict[str, object]:
    about = {"kind": "Pod", "uid": uid, "fieldPath": "spec.containers{probe}"}
    return {"involvedObject": about, "reason": reason, "type": "Normal", "count": 1, **more}


def recorded(
    folder: Path, *listings: object, ended: tuple[str, ...] = ("u",)
) -> tuple[list[Observation], list[Call]]:
    """Each listing in turn, the last one again and again."""
    left = list(listings)

    def answer(handler: BaseHTTPRequestHandler, call: Call) -> None:
        body = left.pop(0) if len(left) > 1 else left[0]
        reply(handler, *body) if isinstance(body, tuple) else reply(handler, body)

    seen: list[Observation] = []
    with serving(answer, folder) as (api, script):
        probe.record_events(api, "ns", ended, seen.append)
    return seen, script.calls


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "EVENTS_TIMEOUT_S", 0.5)
    monkeypatch.setattr(probe, "EVENTS_PAUSE_S", 0.05)


def test_an_event_is_reduced_to_named_fields(tmp_path: Path) -> None:
    killing = item(
        "Killing",
        message="m" * 500,
        firstTimestamp="2026-01-01T00:00:00Z",
        lastTimestamp="2026-01-01T00:00:05Z",
        metadata={"annotations": {"token": "s3cret"}},
    )
    seen, calls = recorded(tmp_path, {"items": [killing]})
    assert "s3cret" not in repr(seen)
    event, read = seen
    assert (event.event, event.subject) == (Event.CLUSTER_EVENT, "u")
    assert event.data == {
        "reason": "Killing",
        "type": "Normal",
        "message": "m" * 200,
        "count": 1,
        "container": "probe",
        "first": "2026-01-01T00:00:00Z",
        "last": "2026-01-01T00:00:05Z",
    }
    assert (read.event, read.data) == (Event.CLUSTER_EVENTS_READ, {"count": 1, "problem": None})
    assert "involvedObject.kind%3DPod" in calls[0].path
    assert len(calls) == 1


def test_the_kubelets_word_is_waited_for_and_nothing_is_recorded_twice(tmp_path: Path) -> None:
    """Events come a moment after what they tell of."""
    early, late = {"items": [item("Scheduled")]}, {"items": [item("Scheduled"), item("Killing")]}
    seen, calls = recorded(tmp_path, early, early, late)
    assert [o.data.get("reason") for o in seen[:-1]] == ["Scheduled", "Killing"]
    assert len(calls) == 3


def test_another_pods_word_is_not_the_one_that_is_waited_for(tmp_path: Path) -> None:
    other = {"items": [item("Killing", uid="v")]}
    seen, calls = recorded(tmp_path, other)
    assert len(calls) > 2
    assert [o.subject for o in seen[:-1]] == ["v"]
    assert seen[-1].data == {"count": 1, "problem": None}


def test_a_refusal_is_an_observation_and_no_failure(tmp_path: Path) -> None:
    seen, _ = recorded(tmp_path, ({"message": "events is forbidden"}, 403))
    (read,) = seen
    assert read.data["count"] == 0
    assert "HTTP 403: events is forbidden" in str(read.data["problem"])


@pytest.mark.parametrize("body", [[], "text", {"items": None}, {}, None])
def test_an_odd_answer_is_one_too(body: object, tmp_path: Path) -> None:
    (read,), _ = recorded(tmp_path, body)
    assert read.data["problem"]


def test_a_list_that_goes_on_is_not_called_whole(tmp_path: Path) -> None:
    seen, _ = recorded(tmp_path, {"items": [item("Killing")], "metadata": {"continue": "more"}})
    assert "not read" in str(seen[-1].data["problem"])


@pytest.mark.parametrize("odd", [None, "text", {"involvedObject": "odd"}, {"involvedObject": [1]}])
def test_an_odd_item_is_counted_as_not_read(odd: object, tmp_path: Path) -> None:
    seen, _ = recorded(tmp_path, {"items": [odd, item("Killing")]})
    assert [o.subject for o in seen[:-1]] == ["u"]
    assert seen[-1].data["count"] == 1
    assert "1 of 2 events" in str(seen[-1].data["problem"])


def test_odd_items_cost_nobody_else(tmp_path: Path) -> None:
    seen, _ = recorded(tmp_path, {"items": [None, {"reason": "Odd"}, item("Killing")]})
    assert [(o.subject, o.data.get("reason")) for o in seen[:-1]] == [
        ("None", "Odd"),
        ("u", "Killing"),
    ]
