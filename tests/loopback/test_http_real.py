"""HTTP lanes against servers that people run: how each ends what it holds."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_drainwatch.core.flow.classify import Outcome
from pytest_drainwatch.core.http.document import How, Requests
from pytest_drainwatch.core.http.ending import LaneKind
from tests.loopback.http_servers import Asking, Served, judged, of
from tests.loopback.rig import Rig

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (apt: nginx)")
needs_gunicorn = pytest.mark.skipif(
    importlib.util.find_spec("gunicorn") is None, reason="gunicorn is not installed (PyPI)"
)
# The slow answer is sent bit by bit, as a download is: 3 s for 3,000 bytes.
CONFIG = """
{user} daemon off; master_process on; worker_processes 1; pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; keepalive_timeout 60s;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port}; root {folder};
    location / {{ return 200 "ok"; }}
    location /slow {{ limit_rate 1000; }}
  }}
}}
"""
APP = """
import time

def app(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        time.sleep(1.5)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


def nginx(folder: Path) -> Served:
    def argv(port: int) -> Sequence[str]:
        (folder / "slow").write_bytes(b"x" * 3000)
        user = "" if os.geteuid() else "user root;"  # pytest's folders are for their owner
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port, user=user))
        return [str(NGINX), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]

    return Served(argv)


def gunicorn(folder: Path, *options: str) -> Served:
    (folder / "served.py").write_text(APP)
    return Served(
        lambda port: [
            *(sys.executable, "-m", "gunicorn", "served:app", "--chdir", str(folder)),
            *("--bind", f"127.0.0.1:{port}", "--graceful-timeout", "10", *options),
        ]
    )


def ended(rig: Rig, server: Served, number: int, *, slow_ns: int, **lanes: object) -> Requests:
    """What lanes met when the server got that signal with requests in flight."""
    asking = Asking(
        rig,
        server.port,
        in_flight=2,
        in_flight_path="/slow",
        in_flight_ns=slow_ns,
        timeout_ns=5 * 10**9,
        **lanes,
    )
    asking.ready().plan(slow_ns / 1e9)
    asking.until_trigger()
    server.process.send_signal(number)
    asking.agent.await_status(lambda status: status["http"]["due"] == 0, "all asked")
    asking.over()
    time.sleep(0.3)
    return judged(asking.recorded().seen, asking.trigger_ns)


@needs_nginx
@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGTERM])
def test_nginx_finishes_what_is_in_flight_on_quit_and_cuts_it_on_term(
    rig: Rig, tmp_path: Path, number: int
) -> None:
    with nginx(tmp_path) as server:
        found = ended(rig, server, number, slow_ns=3 * 10**9, keepalive=2, idle=4)
    in_flight = of(found, LaneKind.IN_FLIGHT)
    if number == signal.SIGQUIT:
        assert in_flight.fates == {"served": 2}
    else:
        assert in_flight.failed == 2
        assert in_flight.not_retry_safe == 2  # half of the answer had come
    # Idle connections are closed at once, with a FIN; a new one is refused.
    idle = [one for one in found.connections if one.lane.startswith("idle")]
    assert {(one.outcome, one.how) for one in idle} == {(Outcome.DRAINED, How.FIN_IDLE)}
    assert of(found, LaneKind.IDLE).fates == {"refused": 4}
    assert of(found, LaneKind.IDLE).redialled == 4
    keepalive = of(found, LaneKind.KEEPALIVE)
    assert keepalive.fates["refused"] > 0
    assert keepalive.failing is not None
    assert keepalive.failing.recovered_ns is None


@needs_gunicorn
def test_gunicorn_threads_finish_what_is_in_flight(rig: Rig, tmp_path: Path) -> None:
    with gunicorn(tmp_path, "--threads", "8", "--keep-alive", "30") as server:
        found = ended(rig, server, signal.SIGTERM, slow_ns=15 * 10**8, keepalive=2, idle=3)
    assert of(found, LaneKind.IN_FLIGHT).fates == {"served": 2}
    # A pooled connection is answered once more, with Connection: close.
    assert of(found, LaneKind.IDLE).fates == {"served": 3}
    pooled = [one for one in found.connections if not one.lane.startswith("in-flight")]
    assert {(one.how, one.served_after) for one in pooled} == {(How.CONNECTION_CLOSE, 1)}
    # New ones are accepted by the kernel, and by nobody else, until the last request has ended.
    keepalive = of(found, LaneKind.KEEPALIVE)
    assert keepalive.fates["written-then-reset"] > 0
    assert keepalive.failing is not None
    assert keepalive.failing.recovered_ns is None


@needs_gunicorn
def test_gunicorn_sync_workers_pool_nothing(rig: Rig, tmp_path: Path) -> None:
    """Each response says Connection: close, so there is no idle connection to meet its end."""
    with gunicorn(tmp_path, "--workers", "4") as server:
        found = ended(rig, server, signal.SIGTERM, slow_ns=15 * 10**8, keepalive=1, idle=2)
    assert of(found, LaneKind.IN_FLIGHT).fates == {"served": 2}
    idle = of(found, LaneKind.IDLE)
    assert any("no pooled connection" in note for note in idle.notes)
    assert idle.redialled == 0
