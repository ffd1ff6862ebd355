"""The end of a trial: what pods and cluster still have to tell, before it is judged."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.scenario import Trigger
from pytest_drainwatch.preflight import TrialVoid
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.watch import Watch
from pytest_drainwatch.workload import newcomers, probe
from pytest_drainwatch.workload.logs import LogFollower, join_logs

# Of the probe: how often it tells what one-way flows brought, and how many a line.
NOTES_TOLD_S, NOTES_A_LINE = 1.0, 32
LAST_WORDS_S = 2.0
NAMESPACE_GONE = (
    "the namespace was being deleted: its events went with it, and none could be posted there"
)


def collect(
    stage: Stage, watch: Watch, logs: Sequence[LogFollower], ended: Collection[str]
) -> None:
    """Record the last log lines of the pods ``ended``, receipts of one-way flows, and events.

    Raises :class:`TrialVoid` if the log of one of those pods was lost before its SIGTERM line.
    """
    verb = stage.scenario.trigger
    if verb in (Trigger.NONE, Trigger.CONTAINER_KILL):  # nobody has last words
        ended = ()
    one_way = stage.scenario.flows.udp_one_way
    if one_way:
        time.sleep(NOTES_TOLD_S * (2 + one_way // NOTES_A_LINE))
    if verb is not Trigger.NONE and stage.found is None:
        pods = {uid: str(fields["name"]) for uid, fields in watch.pods().items()}
        followed = [log.uid for log in logs]
        newcomers.record_logs(stage.api, stage.namespace, pods, followed, stage.recorder)
    _last_words(stage, logs, ended)
    probe.record_events(
        stage.api,
        stage.namespace,
        ended,
        stage.recorder,
        unheard=NAMESPACE_GONE if verb is Trigger.NAMESPACE_DELETE else None,
        uids=None if stage.place.own and stage.found is None else _seen(stage),
        quote=stage.found is None,
    )


def _seen(stage: Stage) -> set[str]:
    """Every pod of the trial, by UID: a namespace that is given has others too."""
    return {str(o.subject) for o in stage.recorder.observations() if o.event is Event.POD}


def _last_words(stage: Stage, logs: Sequence[LogFollower], ended: Collection[str]) -> None:
    """Wait for the last lines of the pods that ended; those of the others never end."""
    targets = [log for log in logs if log.uid in ended]
    join_logs(targets, LAST_WORDS_S)
    join_logs(logs, 0.0)
    told = {o.subject for o in stage.recorder.observations() if o.event is Event.SIGTERM_RECEIVED}
    for log in logs:
        stage.recorder(log.outcome())
    for log in targets:
        if log.problem and log.uid not in told:
            raise TrialVoid(
                f"the log of pod {log.pod} was lost before its SIGTERM line: {log.problem}; "
                "expected to follow it to its end. Look at: the kubelet's log; the API server"
            )
