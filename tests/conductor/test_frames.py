"""A pod's frame holds who ended it, and no more than that."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.watch.frames import MESSAGE_LIMIT, reduce_object


def frame(**status: Any) -> dict[str, Any]:
    pod = {"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "n"}, "status": status}
    uid, fields = reduce_object(Event.POD, pod, "MODIFIED")
    assert uid == "u"
    return dict(fields)


def container(**status: Any) -> dict[str, Any]:
    shown = frame(containerStatuses=[{"name": "probe", "restartCount": 1, **status}])
    return dict(shown["containers"][0])


DIED = {
    "exitCode": 137,
    "reason": "OOMKilled",
    "startedAt": "2026-01-01T00:00:00Z",
    "finishedAt": "2026-01-01T00:00:09Z",
    "message": "its last words may hold a s3cret",
    "containerID": "containerd://abc",
}


def test_a_containers_end_has_its_stamps() -> None:
    shown = container(state={"terminated": DIED})
    assert shown == {
        "name": "probe",
        "ready": None,
        "restarts": 1,
        "state": "terminated",
        "exit_code": 137,
        "signal": None,
        "reason": "OOMKilled",
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:00:09Z",
        "last_state": None,
    }


def test_a_restart_shows_how_the_run_before_it_ended() -> None:
    running = {"running": {"startedAt": "2026-01-01T00:00:10Z"}}
    shown = container(state=running, lastState={"terminated": DIED})
    assert (shown["state"], shown["started_at"]) == ("running", "2026-01-01T00:00:10Z")
    before = shown["last_state"]
    assert (before["state"], before["exit_code"], before["reason"]) == (
        "terminated",
        137,
        "OOMKilled",
    )
    assert "s3cret" not in repr(shown)
    assert container(state=running, lastState={})["last_state"] is None


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ({"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}, True),
        ({"type": "DisruptionTarget", "status": "False", "reason": "TerminationByKubelet"}, False),
        ({"type": "Ready", "status": "True", "reason": "TerminationByKubelet"}, False),
    ],
)
def test_who_is_about_to_end_it(condition: dict[str, str], shown: bool) -> None:
    found = frame(conditions=[condition])["disruption"]
    assert found == ("TerminationByKubelet" if shown else None)


def test_the_status_message_is_cut() -> None:
    shown = frame(reason="Evicted", message="x" * 5000)
    assert (shown["reason"], shown["message"]) == ("Evicted", "x" * MESSAGE_LIMIT)
    assert frame()["message"] is None


def test_the_message_of_a_users_pod_is_left_out() -> None:
    status = {"reason": "Evicted", "message": "whoever may write a status chooses it"}
    pod = {"metadata": {"name": "p", "uid": "u"}, "status": status}
    _, fields = reduce_object(Event.POD, pod, "LISTED", quote=False)
    assert (fields["reason"], fields["message"]) == ("Evicted", None)
