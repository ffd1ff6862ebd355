"""Broken harnesses, refusing APIs, interrupted runs: an error that says so, and no report."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pytest_drainwatch import App, Scenario, Trial, TrialVoid, preflight, standing
from pytest_drainwatch import Trigger as Verb
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.cluster import Cluster
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.observation import Event, Observation
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.stage import Stage
from pytest_drainwatch.trial import Held
from pytest_drainwatch.workload import manifests
from tests.cluster.harness import QUICK, Silent, measure_stage, never
from tests.cluster.runs import left_behind, run_drainwatch

pytestmark = pytest.mark.cluster

Measure = Callable[[Scenario], Trial]


def void(
    cluster: Cluster, folder: Path, scenario: Scenario = QUICK
) -> tuple[str, list[Observation]]:
    """Run a trial that must be void; returns what it said and what it left."""
    with pytest.raises(TrialVoid) as caught:
        conductor.run_trial(cluster, scenario, folder=folder, keep=never, progress=Silent())
    assert not (folder / "report.json").exists()
    left = list(loads((folder / "recording.jsonl").read_text()).observations)
    assert [o.event for o in left].count(Event.VOID) == 1
    return str(caught.value), left


def test_a_selector_that_matches_nothing(
    dw_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "SELECTOR", {"app.kubernetes.io/name": "nobody"})
    monkeypatch.setattr(standing, "ENDPOINT_TIMEOUT_S", 4.0)
    real = manifests.deployment

    def selects_its_pods(app: App, image: str) -> manifests.Manifest:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(manifests, "SELECTOR", {"app.kubernetes.io/name": manifests.NAME})
            return real(app, image)

    monkeypatch.setattr(manifests, "deployment", selects_its_pods)
    said, left = void(dw_cluster, tmp_path)
    assert "'service-endpoint-stable' failed" in said
    assert "ready there: nobody" in said
    assert any(o.event is Event.POD_LOG for o in left)
    assert any(o.event is Event.CLUSTER_EVENT for o in left)


def test_a_probe_that_never_answers_udp(
    dw_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = manifests._container

    def mute(app: App, image: str) -> manifests.Manifest:
        container = real(app, image)
        env = container["env"]
        assert isinstance(env, list)
        return container | {"env": [*env, {"name": "UDP_PORT", "value": "7999"}]}

    monkeypatch.setattr(manifests, "_container", mute)
    monkeypatch.setattr(conductor, "FLOWS_TIMEOUT_S", 4.0)
    said, _ = void(dw_cluster, tmp_path)
    assert "invariant" in said
    assert "0 udp" in said


def test_an_image_that_does_not_exist_shows_the_pods_state(
    dw_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(dw_cluster), "ensure_probe_image", lambda _: "docker.io/dw/none:1")
    monkeypatch.setattr(preflight.workload, "STUBBORN_NS", NS_PER_S)
    said, left = void(dw_cluster, tmp_path)
    assert "'image-pulled' failed" in said
    assert "docker.io/dw/none:1" in said
    assert any("dw/none:1" in str(o.data) for o in left if o.event is Event.CLUSTER_EVENT)


def test_a_flow_that_ends_during_settle_voids_the_trial(dw_namespace: Stage) -> None:
    """Somebody else deletes the pod before we do."""
    dw_namespace.scenario = Scenario(
        app=QUICK.app, flows=QUICK.flows, settle_ns=20 * NS_PER_S, trigger=Verb.DELETE
    )

    def interfere(held: Held) -> None:
        target = held.probe.target
        dw_namespace.api.core.delete_namespaced_pod(target.pod.name, target.namespace)

    with pytest.raises(TrialVoid, match="no flow ends, is refused"):
        measure_stage(dw_namespace, interfere)
    assert not (dw_namespace.folder / "report.json").exists()


def test_wrong_kubeconfigs_name_the_way_out(tmp_path: Path) -> None:
    bad = tmp_path / "config"
    bad.write_text("not: [a, kubeconfig")
    for config in (bad, tmp_path / "missing"):
        done = run_drainwatch("run", "--kubeconfig", str(config), "--out", str(tmp_path / "out"))
        assert done.returncode == 3
        assert str(config) in done.stderr
        assert "Traceback" not in done.stderr


PHASES = ("deploy", "preflight: flows", "settle", "observe")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _sooner(at: int, phase: str, sent: signal.Signals) -> object:
    """Every phase and every signal without ``slow``, and half of their products."""
    marks = () if SIGNALS[at % 2] is sent else pytest.mark.slow
    return pytest.param(f"drainwatch: {phase}", sent, marks=marks)


@pytest.mark.parametrize(
    ("running", "sent"),
    [_sooner(at, phase, sent) for at, phase in enumerate(PHASES) for sent in SIGNALS],
    indirect=["running"],
)
def test_an_interrupted_trial_keeps_its_recording_and_cleans_up(
    running: subprocess.Popen[str], tmp_path: Path, sent: signal.Signals
) -> None:
    running.send_signal(sent)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == pytest.ExitCode.INTERRUPTED, output
    (found,) = tmp_path.glob("results/2*/*/r00/recording.jsonl")
    left = loads(found.read_text()).observations
    marks = [o.data for o in left if o.event is Event.INTERRUPTED]
    assert len(marks) == 1
    assert marks[0]["signal"] == sent.name
    if any(o.event is Event.AGENT_STARTED for o in left):
        assert any(o.event is Event.AGENT_SUMMARY for o in left)
    assert not found.with_name("report.json").exists()
    assert not left_behind(tmp_path)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("running", ["collected 1 item"], indirect=True)
def test_an_interrupted_cluster_start_leaves_nothing(
    running: subprocess.Popen[str], tmp_path: Path, sent: signal.Signals
) -> None:
    time.sleep(1.0)  # well into it: a start takes two to three seconds
    running.send_signal(sent)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == pytest.ExitCode.INTERRUPTED, output
    assert not list(tmp_path.glob("results/2*/*/r00"))
    assert not left_behind(tmp_path)


# A connection to a hung server is given up, not closed: its socket goes with the client.
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_the_api_server_dying_or_hanging_mid_trial_voids_it(
    tmp_path: Path, sent: signal.Signals
) -> None:
    """A cluster of its own, whose API server we end, or stop as a hung host would."""
    from pytest_drainwatch.cluster import ClusterSettings
    from pytest_drainwatch.cluster.opening import open_cluster

    cluster = open_cluster(ClusterSettings(), why="test", log=lambda _: None)
    try:
        with pytest.raises(TrialVoid, match=r"API server|kube-apiserver"):
            _run_and_interfere(cluster, tmp_path, partial(_signal_api_server, sent))
        assert not (tmp_path / "report.json").exists()
    finally:
        cluster.close()
        gc.collect()  # the socket goes here, and in no later test


def _signal_api_server(sent: signal.Signals, held: Held) -> None:
    name = Path(held.probe.stage.cluster.kubeconfig).parent.name
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        mine = any(name.encode() in word for word in words)
        if b"kube-apiserver" in words[:2] and mine:
            os.kill(int(entry.name), sent)
            return
    raise AssertionError("no API server of this cluster found")


def _run_and_interfere(cluster: Cluster, folder: Path, interfere: Callable[[Held], None]) -> None:
    scenario = Scenario(app=QUICK.app, flows=QUICK.flows, settle_ns=30 * NS_PER_S)
    with conductor.prepare(
        cluster, scenario, folder=folder, keep=never, progress=Silent()
    ) as stage:
        measure_stage(stage, interfere)
