"""A simulated run of requests as a recording of HTTP lanes, so that it is judged as any other.

A lane for each source, with a connection for each request, and one for the pooled client. The
recorded clients never ask again, as those of a trial: of a request that a retry mended it is
recorded what its first try met. A process that ends closes what it held with a FIN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_drainwatch.core.http.ending import Ending, LaneKind, Over
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation, Source
from pytest_drainwatch.core.recording import Recording, merge
from pytest_drainwatch.core.scenario import App, Behavior, Flows, PreStop, Scenario, Trigger
from pytest_drainwatch.core.simulation import probe_log, record
from pytest_drainwatch.core.simulation.cluster import Pod, endpoint_changes, pod_up
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.latencies import Latencies
from pytest_drainwatch.core.simulation.life import Ending as LifeEnding
from pytest_drainwatch.core.simulation.life import Life
from pytest_drainwatch.core.simulation.record import T0_NS
from pytest_drainwatch.core.simulation.requests import Cause, Request
from pytest_drainwatch.core.simulation.routes import EVERY_NS, POOLED
from pytest_drainwatch.core.simulation.run import Simulated
from pytest_drainwatch.core.simulation.termination import Termination

OPENED_BEFORE_NS = 5 * NS_PER_S  # the pooled connection, before the deletion
LINGER_NS = 1 * NS_PER_S
EXPECTED = 200


def recording(simulated: Simulated, *, version: str = "simulated") -> Recording:
    """The recording of a run. Raises :class:`~pytest_drainwatch.core.scenario.ScenarioError` for
    inputs that no trial takes, such as a grace period of hours.
    """
    inputs, took = simulated.inputs, Latencies(deletion_ns=0)
    app = _app(inputs)
    asked = simulated.requests
    begins_ns = min([0, *(one.start_ns for one in asked)]) - OPENED_BEFORE_NS
    # Requests over HTTP are answered by a pod, whichever its run: a nonce would be a flow's.
    target, other = (
        replace(pod_up(number, begins_ns, took, end), nonce="")
        for number, end in enumerate((_termination(simulated.life, inputs, took), None))
    )
    pods = (target, other)
    ends = [target.deleted_ns or 0, *(one.end_ns for one in asked)]
    end_ns = max(ends) + LINGER_NS
    lanes = _lanes(asked)
    term_ns = simulated.life.sigterm_ns
    waiting = [
        one.start_ns
        for one in asked
        if one.start_ns < term_ns < one.end_ns and _met(one)[0] in (Ending.RESPONSE, Ending.FIN)
    ]
    described = record.described(
        Scenario(
            app=app, flows=Flows(tcp=1, udp=0, probe_interval_ns=None), name="simulated-requests"
        )
    )
    config = described["config"]
    assert isinstance(config, dict)
    config["tcp_flows"] = 0  # none is held: requests are made
    grace_s = app.grace_period_s
    return Recording(
        record.header(described, version=version, trial_id="simulated-requests/simulated"),
        merge(
            record.begun(app, target.created_ns - 1, 1),
            [record.accepted(Trigger.DELETE, [target], 0)],
            *(record.frames(pod, Trigger.DELETE, grace_s) for pod in pods),
            record.slices(endpoint_changes(pods, took), pods),
            *(probe_log.log(pod, app, len(waiting), waiting) for pod in pods),
            *(_requests(name, kind, mine, target) for name, kind, mine in lanes),
            _pooled_connection(lanes, simulated, target),
            [_summary(lanes, inputs, begins_ns, end_ns)],
            record.over(pods, end_ns, terminal=True),
            [_agent(len(asked), begins_ns, end_ns)],
        ),
    )


_Lane = tuple[str, LaneKind, Sequence[Request]]


def _app(inputs: Inputs) -> App:
    hook_ns, grace_s = inputs.pre_stop_ns, inputs.grace_period_s
    hook = None
    if hook_ns and hook_ns % NS_PER_S == 0 and hook_ns // NS_PER_S <= grace_s:
        hook = PreStop(sleep_s=hook_ns // NS_PER_S)
    elif hook_ns:  # what the sleep action cannot be: parts of a second, or beyond the grace period
        hook = PreStop(exec=("simulated",), exec_lasts_ns=hook_ns)
    return App(
        behavior=inputs.behavior,
        drain_ns=inputs.drain_ns,
        grace_period_s=grace_s,
        replicas=2,
        pre_stop=hook,
    )


def _termination(life: Life, inputs: Inputs, took: Latencies) -> Termination:
    drains = inputs.behavior is Behavior.DRAIN and life.listener_closed_ns < life.exit_ns
    acts_ns = life.listener_closed_ns if drains else life.sigterm_ns + inputs.handler_ns
    cut = life.ending is LifeEnding.DRAIN_DEADLINE
    return Termination(
        deletion_ns=0,
        hook_ns=life.sigterm_ns - life.begins_ns,
        sigterm_ns=life.sigterm_ns,
        handled_ns=acts_ns,
        unready_ns=acts_ns if drains else None,
        closed_ns=acts_ns if drains else None,
        deadline_ns=life.deadline_ns if cut else None,
        ended_ns=life.exit_ns,
        exit_ns=life.exit_ns,
        network_ns=life.exit_ns + took.network_ns,
        killed=life.ending is LifeEnding.SIGKILL,
    )


def _lanes(asked: Sequence[Request]) -> list[_Lane]:
    """A lane for each source, in the order in which they first asked."""
    by_source: dict[str, list[Request]] = {}
    for one in asked:
        by_source.setdefault(one.source, []).append(one)
    found: list[_Lane] = []
    for number, source in enumerate(source for source in by_source if source != POOLED):
        found.append((f"new-{number:02d}", LaneKind.NEW, by_source[source]))
    if POOLED in by_source:
        found.append(("keepalive-00", LaneKind.KEEPALIVE, by_source[POOLED]))
    return found


def _met(one: Request) -> tuple[Ending, int]:
    """With what the first try ended, and when."""
    match one.cause:
        case None:
            return Ending.RESPONSE, one.end_ns
        case Cause.LISTENER_CLOSED | Cause.PROCESS_GONE:
            return Ending.REFUSED, one.start_ns
        case Cause.CONNECTION_ENDED:
            return Ending.RST, one.start_ns
        case _:
            return Ending.FIN, one.end_ns


def _requests(
    lane: str, kind: LaneKind, asked: Sequence[Request], target: Pod
) -> Iterator[Observation]:
    for one in asked:
        ended, end_ns = _met(one)
        data: dict[str, object] = {
            "kind": str(kind),
            "ended": str(ended),
            "first_slot": (one.start_ns - asked[0].start_ns) // EVERY_NS,
        }
        if kind is LaneKind.KEEPALIVE:
            data |= {"connection": 1, "pool": "reused"}
        if ended is Ending.RESPONSE:
            data |= {"status": EXPECTED, "responder": target.uid}
        elif ended is Ending.REFUSED:
            data |= {"errno": "ECONNREFUSED", "written": False}
        elif ended is Ending.RST:
            data |= {"errno": "ECONNRESET"}
        yield _client(Event.HTTP_REQUESTS, one.start_ns, end_ns, lane, **data)


def _pooled_connection(
    lanes: Sequence[_Lane], simulated: Simulated, target: Pod
) -> Iterator[Observation]:
    """How the pooled connection ended, and whether a request was under way then."""
    mine = next((asked for _, kind, asked in lanes if kind is LaneKind.KEEPALIVE), None)
    if not mine:
        return
    ended, last_ns = _met(mine[-1])
    life = simulated.life
    if ended is Ending.RESPONSE:  # closed when nothing was under way, or right after it
        closes_ns = life.listener_closed_ns if simulated.inputs.close_idle else life.exit_ns
        last_ns = max(last_ns, min(closes_ns, life.exit_ns))
    answered = sum(_met(one)[0] is Ending.RESPONSE for one in mine)
    data: dict[str, object] = {
        "connection": 1,
        "opened_ns": T0_NS - OPENED_BEFORE_NS,
        "over": str(Over.RST if ended is Ending.RST else Over.FIN),
        "answered": answered + 1,  # it was opened by one
        "responder": target.uid,
    }
    if ended is not Ending.RESPONSE:
        data["outstanding"] = True
    yield _client(Event.HTTP_CONNECTION, last_ns, last_ns, "keepalive-00", **data)


def _summary(lanes: Sequence[_Lane], inputs: Inputs, lo_ns: int, hi_ns: int) -> Observation:
    return _client(
        Event.HTTP_SUMMARY,
        lo_ns,
        hi_ns,
        method="GET",
        expect_status=EXPECTED,
        timeout_ns=2 * inputs.longest_ns,
        identity=True,
        trigger_ns=T0_NS,
        lanes=[
            {
                "lane": name,
                "kind": str(kind),
                "requests": len(asked),
                "missed_slots": 0,
                "epoch_ns": T0_NS + asked[0].start_ns,
                "period_ns": EVERY_NS,
            }
            for name, kind, asked in lanes
        ],
        late_p50_ns=0,
        late_p99_ns=0,
        late_max_ns=0,
    )


def _agent(sends: int, lo_ns: int, hi_ns: int) -> Observation:
    exact: dict[str, object] = dict.fromkeys(
        ("missed_slots", "late_p50_ns", "late_p99_ns", "late_max_ns"), 0
    )
    return _client(Event.AGENT_SUMMARY, lo_ns, hi_ns, "", sends=sends, **exact)


def _client(event: Event, lo_ns: int, hi_ns: int, subject: str = "", **data: object) -> Observation:
    return Observation(
        source=Source.CLIENT,
        event=event,
        at=record.at(lo_ns, hi_ns),
        subject=subject,
        data=data,
    )
