"""The conductor's own decisions: how long it waits, what an interrupt voids, what is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_drainwatch import deploying, environment, standing, targets, terminating
from pytest_drainwatch import trial as conductor
from pytest_drainwatch.beside import Beside
from pytest_drainwatch.cluster.embedded.starts import DEPLOYMENTS
from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.flow.table import Proto
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import loads
from pytest_drainwatch.core.scenario import Affinity, App, Flows, Scenario, Service, Trigger
from pytest_drainwatch.flows.ask import NobodyAnswered
from pytest_drainwatch.flows.config import AgentConfig
from pytest_drainwatch.preflight.check import Check
from pytest_drainwatch.stage import HARNESS_FAILURES, Stage
from pytest_drainwatch.trial import Trial
from pytest_drainwatch.trigger import Pod
from pytest_drainwatch.way import Way
from pytest_drainwatch.workload import namespace, probe
from tests.conductor.test_interrupts import stage
from tests.core.trials import recording_of


class Seen:
    """A watch that has one pod in sight; it is ready behind the Service."""

    def __init__(self, *_: object, **__: object) -> None: ...
    def __enter__(self) -> Seen:
        return self

    def __exit__(self, *_: object) -> None: ...
    def stop(self) -> None: ...
    def wait_changed(self, timeout_s: float) -> None: ...
    def trouble(self) -> None: ...
    def delivering(self) -> dict[str, bool]:
        return {"pods": True}

    def pods(self) -> dict[str, dict[str, object]]:
        return {"uid-1": {"name": "pod-1"}}

    def slices(self) -> dict[str, dict[str, object]]:
        return {"slice-1": {"endpoints": [{"uid": "uid-1", "ready": True}]}}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """A deployment of one pod that is ready at once; how long each check would be waited for."""
    found: dict[str, float] = {}

    def require(check: Callable[[], Check], *_: object, timeout_s: float, **__: object) -> None:
        found[check().name] = timeout_s

    nothing = Way(command=list, sources=(), address="192.0.2.1", tcp=1, udp=2)
    monkeypatch.setattr(deploying, "Watch", Seen)
    monkeypatch.setattr(standing, "require", require)
    monkeypatch.setattr(deploying, "find_way", lambda *_: nothing)
    monkeypatch.setattr(probe, "apply", lambda *_: None)
    monkeypatch.setattr(deploying, "reach", lambda *_: None)
    monkeypatch.setattr(deploying, "join_logs", lambda *_: None)
    log = SimpleNamespace(pod="pod-1", started=True, problem=None, ended=False)
    monkeypatch.setattr(deploying, "LogFollower", lambda *_: log)
    monkeypatch.setattr(probe, "evidence", lambda *_: iter(()))
    return found


def deployed_on(provider: str, folder: Path, period_ms: int | None = None) -> Stage:
    deployed = stage(folder)
    facts = SimpleNamespace(min_sync_period_ms=period_ms)
    cluster: Any = SimpleNamespace(provider=provider, facts=lambda: facts)
    deployed.cluster = cluster
    return deployed


@pytest.mark.parametrize(("period_ms", "held_s"), [(None, 2), (1000, 2), (40_000, 80)])
def test_the_wait_for_endpoints_is_longer_than_what_they_must_hold(
    tmp_path: Path, waits: dict[str, float], period_ms: int | None, held_s: float
) -> None:
    deployed = deployed_on("existing", tmp_path, period_ms)
    with conductor.deploy(deployed):
        pass
    deployed.recorder.close()
    assert waits["service-endpoint-stable"] == standing.ENDPOINT_TIMEOUT_S + held_s


@pytest.mark.parametrize("provider", ["embedded", "existing"])
def test_deployments_on_this_machine_take_turns(
    provider: str, tmp_path: Path, waits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(DEPLOYMENTS, "at_once", lambda: 1)
    applied = threading.Event()
    monkeypatch.setattr(probe, "apply", lambda *_: applied.set())
    deployed = deployed_on(provider, tmp_path)

    left: list[str] = []

    def deploy() -> None:
        with conductor.deploy(deployed):
            left.extend(DEPLOYMENTS.tickets())

    worker = threading.Thread(target=deploy, daemon=True)
    with DEPLOYMENTS.turn(lambda _: None):
        worker.start()
        if provider == "embedded":
            until = time.monotonic() + 10
            while len(DEPLOYMENTS.tickets()) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            assert not applied.wait(0.3), "somebody else has the turn"
        else:
            assert applied.wait(10), "its pods start elsewhere"
    worker.join(10)
    deployed.recorder.close()
    assert applied.is_set()
    if provider == "embedded":
        assert left == [], "given back once the pods are ready, and not held for the trial"


def test_a_row_that_cannot_be_written_voids_and_names_the_way_out(
    tmp_path: Path, waits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "deployments").touch()
    deployed = deployed_on("embedded", tmp_path)
    with pytest.raises(conductor.TrialVoid, match="DW_STATE=FOLDER"), conductor.deploy(deployed):
        pass


@pytest.mark.parametrize(("provider", "agents"), [("embedded", 6), ("kind", 1), ("existing", 1)])
def test_where_trials_take_turns_one_agent_is_at_work(
    provider: str, agents: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "6")
    started: list[AgentConfig] = []

    class Refuses(Exception):
        """Nothing beyond the configuration is looked at."""

    def start(command: object, config: AgentConfig) -> None:
        started.append(config)
        raise Refuses

    monkeypatch.setattr(conductor, "FlowAgent", start)
    monkeypatch.setattr(probe, "evidence", lambda *_: iter(()))
    monkeypatch.setattr(conductor, "require", lambda *_, **__: None)
    way = Way(command=list, sources=(), address="192.0.2.1", tcp=1, udp=2)
    ready: Any = SimpleNamespace(
        stage=deployed_on(provider, tmp_path),
        way=way,
        watch=None,
        target=SimpleNamespace(pod=Pod(name="a", uid="1")),
    )
    with pytest.raises(Refuses), conductor.hold(ready):
        pass
    ready.stage.recorder.close()
    assert [config.agents for config in started] == [agents]


@pytest.mark.parametrize(
    ("trigger", "kept"), [(Trigger.DELETE, True), (Trigger.NAMESPACE_DELETE, False)]
)
def test_a_namespace_that_is_deleted_is_never_called_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trigger: Trigger, kept: bool
) -> None:
    asked: list[bool] = []
    said: list[str] = []

    @contextmanager
    def trial_namespace(
        api: object, name: str, *, keep: Callable[[], bool], say: Callable[[str], None]
    ) -> Iterator[str]:
        yield name
        asked.append(keep())

    api = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(conductor, "connect", lambda *_: api)
    monkeypatch.setattr(environment, "gather", lambda *_: {})
    monkeypatch.setattr(conductor, "require", lambda *_, **__: None)
    monkeypatch.setattr(namespace, "trial_namespace", trial_namespace)
    monkeypatch.setattr(probe, "evidence", lambda *_: iter(()))
    cluster: Any = SimpleNamespace(
        provider="embedded",
        ensure_probe_image=lambda: "image",
        kubeconfig=None,
        context=None,
        node_address="",
    )
    progress: Any = SimpleNamespace(
        line=said.append, phase=lambda *_: None, follow=lambda _: None, rest=lambda: None
    )
    with conductor.prepare(
        cluster,
        Scenario(trigger=trigger),
        folder=tmp_path,
        keep=lambda *, failed: True,
        progress=progress,
    ):
        pass
    assert asked == [kept]
    assert [line.startswith("kept namespace ") for line in said] == [True] * kept


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_an_interrupt_of_the_last_look_is_recorded_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    """It waits for seconds where the node's programs hang."""

    def hangs() -> None:
        raise KeyboardInterrupt(sent)

    monkeypatch.setattr(terminating, "all_over", lambda *_, **__: None)
    monkeypatch.setattr(terminating, "watch_until", lambda *_: True)
    trial = stage(tmp_path)
    facts = SimpleNamespace(min_sync_period_ms=None, nodes=None)
    here: Any = SimpleNamespace(facts=lambda: facts)
    trial.cluster = here
    target = SimpleNamespace(pods=(), kills={}, controller=None)
    held: Any = SimpleNamespace(
        probe=SimpleNamespace(stage=trial, watch=None, target=target), agent=None
    )
    accepted: Any = SimpleNamespace(targets=())
    evidence: Any = SimpleNamespace(observed=hangs)
    here.provider = "existing"
    with pytest.raises(KeyboardInterrupt):
        terminating.observe(held, accepted, evidence, Beside(trial), ExitStack())
    last = loads((tmp_path / "recording.jsonl").read_text()).observations[-1]
    assert last.event is Event.INTERRUPTED
    assert last.data == {"phase": "observe", "signal": sent}


def test_an_answer_that_takes_too_long_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "ASK_TIMEOUT_S", 0.1)
    asking = stage(tmp_path)
    asking.scenario = Scenario(
        app=App(replicas=2),
        flows=Flows(udp=0),
        service=Service(session_affinity=Affinity.CLIENT_IP),
    )
    way = Way(command=lambda _: ["sleep", "60"], sources=(), address="192.0.2.1", tcp=1, udp=2)
    pods = (Pod(name="a", uid="1"), Pod(name="b", uid="2"))
    with pytest.raises(NobodyAnswered, match=r"tcp 192\.0\.2\.1 port 1 took longer than 0\.1 s"):
        targets.choose(asking, way, pods)
    asking.recorder.close()
    assert NobodyAnswered in HARNESS_FAILURES, "so that it voids the trial and says why"


def test_of_flows_that_there_are_not_nothing_is_known() -> None:
    """0 of none would read as "none is stale"."""
    measured = Trial(
        scenario=Scenario(), report=derive(recording_of(Scenario())), folder=Path("r00")
    )
    assert measured.tcp.total == 1
    assert measured.udp.total == 0
    assert measured.stale(Proto.UDP, Occasion.AFTER_EXIT) is None
