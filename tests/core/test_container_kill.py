"""A container that the trial killed past the API: no deletion, its end is the effect.

Each verdict is set against an input that looks alike and gives another one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.flow.classify import Mechanism, Outcome
from pytest_drainwatch.core.interval import NS_PER_MS
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.pod.ending import EndedBy, Initiator
from pytest_drainwatch.core.start import CannotDerive, start_of
from tests.core import story as s
from tests.core.endings import NO_HOOK, log, term
from tests.core.story import OLD

MS = NS_PER_MS
KILLED = s.gone(137, reason="Error")
RUNNING: dict[str, object] = dict(s.LIVE)
AGAIN: dict[str, object] = {**s.LIVE, "restarts": 1, "last_state": KILLED}


def killed(container: str = "probe", restarts: int = 0) -> Observation:
    """The trial's own kill of that container."""
    base = s.accepted(1, verb="container-kill")
    return replace(base, data={**base.data, "containers": {OLD: [container, restarts]}})


def quick(again: dict[str, object] | None = None) -> list[Observation]:
    """A restart whose end was never a state of its own; then the pod is ready again."""
    back = again or AGAIN
    return [
        s.pod(OLD, -6000, containers=[RUNNING]),
        s.pod(OLD, 900, containers=[{**back, "ready": False}], ready=False),
        s.pod(OLD, 1900, containers=[back]),
    ]


def slow() -> list[Observation]:
    """The same where a frame caught the container between its end and its next start."""
    return [
        s.pod(OLD, -6000, containers=[RUNNING]),
        s.pod(OLD, 600, containers=[KILLED], ready=False),
        s.pod(OLD, 1900, containers=[AGAIN]),
    ]


def reset(ms: float = 0.6) -> list[Observation]:
    flow = "tcp-0001"
    return [*s.alive(flow, 0), s.client(Event.FLOW_RESET, flow, s.at(0, ms), errno="ECONNRESET")]


def judged(*parts: Any, start: Observation | None = None) -> TrialReport:
    return derive(s.recording([start or killed()], *parts, config=NO_HOOK)).trial


@pytest.mark.parametrize("frames", [quick(), slow()], ids=["quick", "slow"])
def test_the_end_of_a_killed_container_is_the_triggers(frames: list[Observation]) -> None:
    trial = judged(reset(), frames)
    shown_ms = 900 if frames == quick() else 600
    assert trial.trigger.effective_ns == (0, shown_ms * MS)
    (end,) = trial.pod_ends
    assert (end.ended_by, end.initiator) == (EndedBy.KILLED_BY_TRIGGER, Initiator.CONTAINER_KILL)
    assert (end.restart, end.exit_code) == (0, 137)
    assert end.ended_ns == (0, shown_ms * MS)
    assert (end.deletion_ns, end.sigterm_ns, end.deletion_grace_period_s) == (None, None, None)
    (left,) = trial.container_exits
    assert (left.exit_code, left.pod_uid) == (137, OLD)


def test_its_flows_are_cut_and_what_never_comes_is_said_once() -> None:
    trial = judged(reset(), quick())
    (flow,) = [f for f in trial.flows if f.id == "tcp-0001"]
    assert (flow.outcome, flow.mechanism) == (Outcome.SEVERED, Mechanism.RST)
    notes = " ".join(trial.notes)
    assert "container probe was killed past the API" in notes
    assert "endpoint removal" not in notes
    assert "no SIGTERM line" not in notes
    assert not [line for line in trial.degraded if "unready" in line], "that is the trigger's doing"


def test_the_same_frames_after_a_delete_are_no_effect_of_it() -> None:
    with pytest.raises(CannotDerive, match="did not carry it out"):
        judged(reset(), quick(), start=s.accepted(1))


def test_a_kill_that_ended_nothing_is_no_trial() -> None:
    """As a SIGKILL from inside of the container's own PID namespace would be."""
    still = [s.pod(OLD, -6000, containers=[RUNNING]), s.pod(OLD, 900, containers=[RUNNING])]
    with pytest.raises(CannotDerive, match="1 of 1 containers that were killed were not seen"):
        judged(s.alive("tcp-0001", 5000), still)
    early = [s.pod(OLD, -6000, containers=[RUNNING]), s.pod(OLD, -400, containers=[AGAIN])]
    with pytest.raises(CannotDerive, match="not seen to end"):
        judged(s.alive("tcp-0001", 5000), early)


@pytest.mark.parametrize(
    ("lost_ms", "start", "measured"),
    [
        (-15, killed(), True),
        (-15, s.accepted(1), False),  # nothing was lost in a process that nobody had told to end
        (-1500, killed(), False),  # for so long nothing waits in a process that is well
    ],
)
def test_what_a_killed_process_had_not_read_yet_was_lost_by_the_kill(
    lost_ms: float, start: Observation, measured: bool
) -> None:
    flow = "udp-0001"
    lost = [
        *s.alive(flow, lost_ms - 10),
        s.unanswered(flow, lost_ms, 3000, 150),
        s.client(Event.FLOW_ICMP, flow, s.at(5), type=3, code=3, errno="ECONNREFUSED", seq=102),
    ]
    frames = quick() if start.data["verb"] == "container-kill" else s.cluster()
    if measured:
        (found,) = [f for f in judged(lost, frames, start=start).flows if f.id == flow]
        assert found.terminal_ns is not None
        assert found.terminal_ns[0] < 0
    else:
        with pytest.raises(CannotDerive, match="ended before the trigger"):
            judged(lost, frames, start=start)


def test_a_container_that_was_told_to_end_was_not_killed_by_us() -> None:
    """Case C67: the kubelet restarts a container that fails its liveness probe."""
    trial = judged(reset(), quick(), log(term(300)))
    (end,) = trial.pod_ends
    assert end.initiator is Initiator.CONTAINER_RESTART
    assert end.ended_by is not EndedBy.KILLED_BY_TRIGGER


def test_another_container_of_that_pod_was_not_killed_by_us() -> None:
    side = {**RUNNING, "name": "side"}
    frames = [
        s.pod(OLD, -6000, containers=[RUNNING, side]),
        s.pod(OLD, 900, containers=[AGAIN, side]),
        s.pod(OLD, 1900, containers=[AGAIN, {**AGAIN, "name": "side"}]),
    ]
    ends = {end.container: end for end in judged(reset(), frames).pod_ends}
    assert ends["probe"].initiator is Initiator.CONTAINER_KILL
    assert ends["side"].initiator is Initiator.CONTAINER
    assert ends["side"].ended_by is not EndedBy.KILLED_BY_TRIGGER


def test_the_run_after_it_was_not_killed_by_us() -> None:
    twice = {**s.LIVE, "restarts": 2, "last_state": KILLED}
    frames = [*quick(), s.pod(OLD, 3000, containers=[twice])]
    first, second = judged(reset(), frames).pod_ends
    assert (first.restart, first.initiator) == (0, Initiator.CONTAINER_KILL)
    assert (second.restart, second.initiator) == (1, Initiator.CONTAINER)
    assert second.ended_by is EndedBy.UNKNOWN


def test_a_pod_that_somebody_deletes_meanwhile_is_not_ended_by_us() -> None:
    frames = [
        s.pod(OLD, -6000, containers=[RUNNING]),
        s.pod(
            OLD, 100, deletion_timestamp="then", deletion_grace_period_s=10, containers=[RUNNING]
        ),
        s.pod(OLD, 900, deletion_timestamp="then", deletion_grace_period_s=10, containers=[KILLED]),
    ]
    (end,) = judged(reset(), frames).pod_ends
    assert end.initiator is Initiator.OTHER_DELETION
    assert end.ended_by is not EndedBy.KILLED_BY_TRIGGER


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.lists(st.integers()),
        st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.lists(st.integers()))),
    )
)
def test_an_odd_list_of_containers_is_none(odd: object) -> None:
    """A recording by hand: what is no such list names nobody, and nothing breaks."""
    base = killed()
    start = start_of([replace(base, data={**base.data, "containers": odd})])
    assert all(isinstance(name, str) for name, _ in start.killed.values())
