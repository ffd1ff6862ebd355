"""How do real servers end? nginx, HAProxy, gunicorn, Node and Python's http.server.

Each is deployed from its manifest in `servers/` and then attached to, as any workload is; its
pod is deleted while clients ask it. The answers with their numbers are in docs/servers.md.

Predictions, from the servers' own documentation: nginx finishes what it has begun on SIGQUIT
and not on SIGTERM, HAProxy on SIGUSR1 and not on SIGTERM; gunicorn finishes on SIGTERM, but a
sync worker only the one request that it works on; Node without a handler, and whatever runs
under `sh -c`, does not hear SIGTERM at all and is killed at the end of the grace period.
What is asserted and not predicted here was measured first, and is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from pytest_drainwatch import EndedBy, Role, Scenario, Trial, Trigger, Workload
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.http.document import (
    ConnectionEnd,
    FailingRequests,
    How,
    KindRequests,
    OldConnections,
    Requests,
)
from pytest_drainwatch.core.http.ending import LaneKind
from pytest_drainwatch.core.http.fate import SERVED, Fate
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Http
from scenarios.servers.images import (
    HAPROXY,
    HAPROXY_TERM,
    NGINX,
    NGINX_TERM,
    NODE,
    PYTHON,
    NotHad,
)
from scenarios.servers.running import Server
from scenarios.short import LATE_NS, known, undisturbed

pytestmark = pytest.mark.slow

GRACE_NS = 10 * NS_PER_S
HTTP = Http(
    keepalive=4,
    idle=4,
    in_flight=4,
    new=4,
    rate_hz=10,
    in_flight_path="/slow",  # takes 3 s: one more, for a trigger that is late
    in_flight_ns=2 * NS_PER_S,
    identity_header="X-Pod",
)
# A worker that takes one request at a time: what is under way, and what waits.
ONE_AT_A_TIME = replace(HTTP, keepalive=0, idle=0, in_flight=3, new=0, timeout_ns=20 * NS_PER_S)
SLEEP = {"preStop": {"sleep": {"seconds": 3}}}

NGINX_SERVER = Server(name="nginx", image=NGINX, replicas=1)
HAPROXY_SERVER = Server(name="haproxy", image=HAPROXY, others={"backend": PYTHON})
GUNICORN_SERVER = Server(name="gunicorn", image=PYTHON)
NODE_SERVER = Server(name="node", image=NODE)
PYTHON_SERVER = Server(name="python", image=PYTHON)

CALM = {"settle_ns": 4 * NS_PER_S}

Measure = Callable[..., Trial]


@pytest.fixture
def ended(drainwatch: Callable[[Scenario], Trial], dw_cluster: Cluster) -> Iterator[Measure]:
    """Deploy a server, attach to it, delete its pod: what became of it."""
    with ExitStack() as stack:

        def measure(name: str, server: Server, http: Http = HTTP, **asked: Any) -> Trial:
            try:
                namespace = stack.enter_context(server.running(dw_cluster, print))
            except NotHad as reason:
                pytest.skip(str(reason))
            workload = Workload.attach(
                f"deployment/{server.name}", namespace=namespace, protocol=http
            )
            trial = drainwatch(Scenario(name=name, workload=workload, **(CALM | asked)))
            assert undisturbed([trial])
            return trial

        yield measure


def requests(trial: Trial) -> Requests:
    found = trial.report.trial.requests
    assert found is not None, "no requests were made"
    return found


def kind(trial: Trial, which: LaneKind) -> KindRequests:
    """What became of the requests of one kind of lane."""
    (found,) = (each for each in requests(trial).kinds if each.kind is which)
    return found


def only(trial: Trial, which: LaneKind, *expected: Fate) -> bool:
    """Whether all requests of one kind of lane had one of these fates."""
    found = kind(trial, which)
    assert found.attempts >= found.lanes, "not each lane asked"
    assert set(found.fates) <= set(expected), f"{which}: {dict(found.fates)}"
    return True


def ends(trial: Trial, which: LaneKind) -> list[ConnectionEnd]:
    """How the connections ended that lanes of one kind held when the pod was deleted."""
    found = [each for each in requests(trial).connections if each.lane.startswith(f"{which}-")]
    assert found, f"no {which} lane held a connection at the trigger"
    return found


def old(trial: Trial) -> OldConnections:
    """The connections that clients held to the pod when it was deleted."""
    (found,) = (each for each in requests(trial).old_connections if each.role is Role.TARGET)
    return found


def ended_by_itself(trial: Trial) -> bool:
    """The kubelet had to kill nobody."""
    assert set(trial.exit_codes) == {0}, trial.exit_codes
    return True


def ended_at_once(trial: Trial) -> bool:
    """The same, within moments: all connections had ended by then."""
    assert known(old(trial).gone_ns)[1] < LATE_NS, old(trial)
    return ended_by_itself(trial)


def was_killed(trial: Trial) -> bool:
    """SIGKILL at the end of the grace period; the last connections ended with it."""
    assert trial.exit_codes == (137,), trial.exit_codes
    lo, hi = known(old(trial).gone_ns)
    assert hi >= GRACE_NS, old(trial)
    assert lo <= GRACE_NS + LATE_NS, old(trial)
    return True


def served_until_killed(trial: Trial) -> bool:
    """Its old connections went on being served for the whole of the grace period."""
    found = old(trial)
    assert found.served_after > 0
    assert known(found.last_served_ns)[1] > GRACE_NS - LATE_NS, found
    # Its answers say how long it lived: it was killed when the grace period was over.
    assert {end.ended_by for end in trial.pod_ends} == {EndedBy.SIGKILL_AT_GRACE}
    return was_killed(trial)


def lost_new_ones(trial: Trial) -> FailingRequests:
    """The window in which requests over new connections failed."""
    found = kind(trial, LaneKind.NEW)
    assert found.failing is not None, f"none of {found.attempts} failed"
    assert found.failing.recovered_ns is not None, "they never recovered"
    return found.failing


def test_nginx_finishes_what_it_began_on_quit(ended: Measure) -> None:
    """What its official image does: STOPSIGNAL SIGQUIT (case C23)."""
    trial = ended("nginx-quit", NGINX_SERVER)
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)
    assert ended_by_itself(trial)
    assert trial.summary.trigger_to_sigterm_ns is None  # it never got one
    # Idle connections are closed at once, and no response had announced it.
    for each in ends(trial, LaneKind.IDLE):
        assert each.how is How.FIN_IDLE, each
        assert known(each.ended_ns)[0] < LATE_NS, each
    # It has closed its listener as well, and one replica is all there is.
    assert lost_new_ones(trial).begun_ns[0] < LATE_NS


def test_nginx_cuts_what_it_began_on_term(ended: Measure) -> None:
    """What an image of the distribution's package does, which names no stop signal."""
    trial = ended("nginx-term", replace(NGINX_SERVER, image=NGINX_TERM))
    assert only(trial, LaneKind.IN_FLIGHT, Fate.WRITTEN_THEN_CLOSED)
    # A part of each answer had been read: no client may repeat such a request unasked.
    assert kind(trial, LaneKind.IN_FLIGHT).not_retry_safe > 0
    assert ended_at_once(trial)


def test_a_pre_stop_sleep_makes_nginx_lose_no_request(ended: Measure) -> None:
    """A rollout of two replicas: requests over new connections, without the hook and with it."""
    http = replace(HTTP, in_flight=0, new=8, rate_hz=20)
    server = replace(NGINX_SERVER, replicas=2)
    without = ended("nginx-no-hook", server, http, trigger=Trigger.ROLLOUT)
    hooked = ended("nginx-hook", server.with_(lifecycle=SLEEP), http, trigger=Trigger.ROLLOUT)
    assert lost_new_ones(without).failures > 0
    found = kind(hooked, LaneKind.NEW)
    assert found.failed == 0, dict(found.fates)
    assert found.failure_rate is not None
    assert found.failure_rate.high < 0.01, "too few requests to say anything"
    assert ended_by_itself(without)
    assert ended_by_itself(hooked)


def test_haproxy_finishes_what_it_began_on_usr1(ended: Measure) -> None:
    """What its official image does: STOPSIGNAL SIGUSR1. Idle connections are closed at once."""
    trial = ended("haproxy-usr1", HAPROXY_SERVER)
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)
    assert ended_by_itself(trial)
    for each in ends(trial, LaneKind.IDLE):
        assert each.how is How.FIN_IDLE, each
        assert known(each.ended_ns)[0] < LATE_NS, each
    assert lost_new_ones(trial).begun_ns[0] < LATE_NS


def test_haproxy_cuts_what_it_began_on_term(ended: Measure) -> None:
    """What an image of the distribution's package does, which names no stop signal."""
    trial = ended("haproxy-term", replace(HAPROXY_SERVER, image=HAPROXY_TERM))
    assert only(trial, LaneKind.IN_FLIGHT, Fate.WRITTEN_THEN_CLOSED)
    assert ended_at_once(trial)


def test_a_sync_worker_finishes_one_request_and_resets_the_rest(ended: Measure) -> None:
    """It works on one; the others wait in the listener's queue, and go with it (case C15)."""
    trial = ended("gunicorn-sync", GUNICORN_SERVER, ONE_AT_A_TIME)
    assert only(trial, LaneKind.IN_FLIGHT, Fate.SERVED, Fate.WRITTEN_THEN_RESET)
    assert kind(trial, LaneKind.IN_FLIGHT).fates[Fate.SERVED] == 1
    assert ended_by_itself(trial)


def test_a_threaded_worker_leaves_requests_on_old_connections_unread(ended: Measure) -> None:
    """Requests in flight are finished. Until they are, old connections stay open and nobody
    reads them: what is asked there waits, and is reset. Measured: gunicorn 20.1.
    """
    server = GUNICORN_SERVER.with_(
        args=["--worker-class=gthread", "--threads=20", "--keep-alive=30"]
    )
    trial = ended("gunicorn-gthread", server)
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)
    held = [*ends(trial, LaneKind.KEEPALIVE), *ends(trial, LaneKind.IDLE)]
    assert any(each.how is How.RST_OUTSTANDING for each in held), held
    assert ended_by_itself(trial)


@pytest.mark.parametrize("keep_alive_s", [2, 30], ids=["default", "30s"])
def test_a_gevent_worker_waits_for_idle_connections(ended: Measure, keep_alive_s: int) -> None:
    """For as long as it keeps them alive; the default is 2 s. With more than the grace period
    it is killed. Requests in flight are finished either way. Measured: gunicorn 20.1.
    """
    server = GUNICORN_SERVER.with_(args=["--worker-class=gevent", f"--keep-alive={keep_alive_s}"])
    trial = ended(f"gunicorn-gevent-{keep_alive_s}s", server)
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)
    assert was_killed(trial) if keep_alive_s * NS_PER_S > GRACE_NS else ended_by_itself(trial)


def test_under_a_shell_python_serves_until_it_is_killed(ended: Measure) -> None:
    """The shell is PID 1 and tells nobody of SIGTERM (case C22): requests keep arriving, for
    the whole of the grace period, on connections that nobody closes (case C20).
    """
    trial = ended("python-sh", PYTHON_SERVER)
    assert served_until_killed(trial)
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)
    assert kind(trial, LaneKind.NEW).failed == 0  # it listened until its successor was ready


def test_python_that_exits_on_term_cuts_what_it_began(ended: Measure) -> None:
    """The same server with a handler that exits: nothing waits any more, and nobody is served."""
    server = PYTHON_SERVER.with_(command=["python3", "/app/server.py", "--exit-on-sigterm"])
    trial = ended("python-exit", server)
    assert only(trial, LaneKind.IN_FLIGHT, Fate.WRITTEN_THEN_CLOSED)
    assert ended_at_once(trial)


def test_node_does_not_hear_sigterm(ended: Measure) -> None:
    """As PID 1 without a handler of its own: the kernel drops the signal."""
    trial = ended("node-nothing", node_that_does("nothing"))
    assert served_until_killed(trial)
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)


def test_node_that_closes_its_server_waits_for_busy_connections(ended: Measure) -> None:
    """`server.close()` closes the listener only: who goes on asking is served until the kill.
    Measured: Node 18.
    """
    trial = ended("node-close", node_that_does("close"))
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)
    assert lost_new_ones(trial).begun_ns[0] < LATE_NS
    assert served_until_killed(trial)


def test_node_that_closes_idle_connections_too_ends_by_itself(ended: Measure) -> None:
    """`server.closeIdleConnections()` beside it; what was answered after that stays open for
    the 5 s for which Node keeps connections alive.
    """
    # Who asks all the time is not idle when it matters; and idle ones must not be 5 s old by then.
    http = replace(HTTP, keepalive=0)
    server = node_that_does("close-idle")
    trial = ended("node-close-idle", server, http, settle_ns=5 * NS_PER_S // 2)
    assert only(trial, LaneKind.IN_FLIGHT, *SERVED)
    for each in ends(trial, LaneKind.IDLE):
        assert each.how is How.FIN_IDLE, each
        assert known(each.ended_ns)[0] < LATE_NS, each
    assert ended_by_itself(trial)


def node_that_does(what: str) -> Server:
    return NODE_SERVER.with_(env=[{"name": "ON_SIGTERM", "value": what}])
