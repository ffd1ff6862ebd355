"""A trial's namespace is removed whatever happened, and nobody else's ever is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pytest_drainwatch.api import failures
from pytest_drainwatch.workload import manifests, namespace
from pytest_drainwatch.workload.namespace import is_dead, owner, sweep, trial_namespace
from tests.conductor.api_server import Call, reply, serving


class Cluster:
    """Namespaces by name, with what the next calls are to be answered."""

    def __init__(self, *existing: tuple[str, str]) -> None:
        self.there = {name: manifests.namespace(name, who) for name, who in existing}
        self.slow_s = 0.0
        self.refuse_delete: dict[str, int] = {}
        self.arrived = threading.Event()

    def __call__(self, handler: BaseHTTPRequestHandler, call: Call) -> None:
        name = call.path.partition("?")[0].rpartition("/")[2]
        if call.method == "POST":
            name = call.body["metadata"]["name"]
            if name in self.there:
                return reply(handler, {"message": "exists"}, 409)
            self.there[name] = call.body
            self.arrived.set()
            time.sleep(self.slow_s)
            reply(handler, call.body, 201)
        elif name == "namespaces":
            reply(handler, {"kind": "NamespaceList", "items": list(self.there.values())})
        elif name not in self.there:
            reply(handler, {"message": "not found"}, 404)
        elif call.method == "GET":
            reply(handler, self.there[name])
        elif name in self.refuse_delete:
            reply(handler, {"message": "no"}, self.refuse_delete[name])
        else:
            del self.there[name]
            reply(handler, {"kind": "Status", "status": "Success"})
        return None


def never() -> bool:
    return False


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A parent that ignores SIGINT (a background job's shell) hands that down."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_namespace_whose_creation_was_interrupted_is_removed(tmp_path: Path) -> None:
    """Ctrl-C while the server has carried out the call but not answered yet."""
    cluster = Cluster()
    cluster.slow_s = 1.0

    def interrupt() -> None:
        cluster.arrived.wait(5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with (
        serving(cluster, tmp_path) as (api, _),
        pytest.raises(KeyboardInterrupt),
        trial_namespace(api, "dw-x", keep=never, say=print),
    ):
        raise AssertionError("was created")
    assert cluster.there == {}


def test_a_namespace_whose_creation_timed_out_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster()
    cluster.slow_s = 1.0
    monkeypatch.setattr(namespace, "REQUEST_TIMEOUT", (5.0, 0.3))
    with (
        serving(cluster, tmp_path) as (api, _),
        pytest.raises(failures()),
        trial_namespace(api, "dw-x", keep=never, say=print),
    ):
        raise AssertionError("was created")
    assert cluster.there == {}


def test_a_namespace_of_somebody_else_with_our_name_stays(tmp_path: Path) -> None:
    cluster = Cluster(("dw-x", "somebody/else/1/1"))
    with (
        serving(cluster, tmp_path) as (api, _),
        pytest.raises(failures()),
        trial_namespace(api, "dw-x", keep=never, say=print),
    ):
        raise AssertionError("was created")
    assert set(cluster.there) == {"dw-x"}


@pytest.mark.parametrize(("status", "left"), [(404, False), (409, False), (403, True), (500, True)])
def test_a_removal_that_is_refused_hides_nothing_and_is_told(
    status: int, left: bool, tmp_path: Path
) -> None:
    cluster = Cluster()
    cluster.refuse_delete["dw-x"] = status
    said: list[str] = []
    with (
        serving(cluster, tmp_path) as (api, _),
        pytest.raises(LookupError),
        trial_namespace(api, "dw-x", keep=never, say=said.append),
    ):
        raise LookupError
    assert len(said) == left
    if left:
        assert f"namespace dw-x, whose removal failed: HTTP {status}: no" in said[0]
        assert "kubectl delete namespace dw-x" in said[0]


def test_a_namespace_to_keep_stays(tmp_path: Path) -> None:
    cluster = Cluster()
    with (
        serving(cluster, tmp_path) as (api, _),
        trial_namespace(api, "dw-x", keep=lambda: True, say=print),
    ):
        pass
    assert set(cluster.there) == {"dw-x"}


def test_a_sweep_goes_on_after_one_that_another_run_has_just_removed(tmp_path: Path) -> None:
    boot, _, _, pid_namespace = owner().split("/")
    gone = f"{boot}/4194305/1/{pid_namespace}"
    cluster = Cluster(("dw-a", gone), ("dw-b", gone), ("dw-c", gone), ("dw-mine", owner()))
    cluster.refuse_delete = {"dw-a": 404, "dw-b": 409}
    with serving(cluster, tmp_path) as (api, _):
        assert sweep(api) == ["dw-c"]
    assert set(cluster.there) == {"dw-a", "dw-b", "dw-mine"}


def test_a_process_of_another_pid_namespace_cannot_be_judged() -> None:
    """Containers of a host share its boot id, and each has a process 17 of its own."""
    boot, pid, started, pid_namespace = owner().split("/")
    assert pid_namespace == str(Path("/proc/self/ns/pid").stat().st_ino)
    assert is_dead(f"{boot}/4194305/1/{pid_namespace}")
    assert not is_dead(f"{boot}/4194305/1/{int(pid_namespace) + 1}")
    # An older owner text does not say.
    assert not is_dead(f"{boot}/4194305/1")
    assert not is_dead(f"{boot}/{pid}/{int(started) - 1}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a PID namespace")
def test_the_owner_of_a_live_namespace_in_a_container_is_not_dead() -> None:
    ask = "from pytest_drainwatch.workload.namespace import owner; print(owner(), flush=True)"
    code = f"{ask}; input()"
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as contained:
        assert contained.stdout
        assert contained.stdin
        who = contained.stdout.readline().strip()
        assert who.split("/")[1] == "1"  # which here is another process
        assert not is_dead(who)
        contained.stdin.write("\n")


def test_a_process_that_proc_hides_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hidepid, other users' processes have no /proc entry."""
    who = owner()
    monkeypatch.setattr(namespace, "_start_time", lambda _: "")
    assert not is_dead(who)


def test_where_nothing_can_be_known_nobody_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "_boot_id", lambda: namespace.UNKNOWN)
    assert not is_dead(f"{namespace.UNKNOWN}/4194305/1/{owner().split('/')[3]}")
