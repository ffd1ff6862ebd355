"""``drainwatch doctor --trial``: the controls stay what they are, wherever they run.

Measuring is replaced by recordings made by hand; what is tested is the command around it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_drainwatch import doctor
from pytest_drainwatch.cli import main
from pytest_drainwatch.controls import CONTROLS
from pytest_drainwatch.options import OPTIONS, OptionError
from pytest_drainwatch.output import CUT_OFF

ROOT = Path(__file__).resolve().parents[2]
# Of every option that says what is measured, a value that would change a control or break it.
OTHER = {
    "proxy-mode": "nftables",
    "min-sync-period": "10s",
    "nodes": "2",
    "path": "haproxy",
    "attach": "deployment/web",
    "attach-namespace": "shop",
    "attach-port": "80",
    "attach-service": "web",
    "attach-protocol": "udp",
    "attach-send": "ping",
    "attach-expect": "pong",
    "grace-period": "31",
    "drain": "soon",
    "readiness-on-drain": "keep",
    "tcp-flows": "0",
    "udp-flows": "0",
    "tcp-rate": "1",
    "udp-rate": "1",
    "probe-interval": "0",
    "udp-probe-interval": "1ms",
    "probe-sparse-every": "1",
    "settle": "0",
    "observe-timeout": "1s",
}
PLACES = {
    "cluster": "existing",
    "kubeconfig": "/there/config",
    "context": "there",
    "kind-image": "there/node:v1",
    "kube-bin": "/there/kubenode",
    "kube-version": "1.34",
    "probe-image": "there/probe:1",
    "allow-context": "there-prod",
    "namespace": "team",
    "pull-secret": "registry",
    "address": "192.0.2.7",
    "out": "/there/results",
    "keep": "always",
}
PROGRAM = """
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from dataclasses import replace
import pytest_drainwatch.pool, pytest_drainwatch.trial
from pytest_drainwatch import controls, doctor
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.derive import derive
from tests.core.trials import recording_of

class Pool:
    def __init__(self, *_, keep): self.keep = keep
    def __enter__(self): return self
    def __exit__(self, *_): print("kept" if self.keep() else "closed", file=sys.stderr)
    @contextmanager
    def lease(self, needs): yield None

def run_trial(cluster, scenario, **_):
    {fault}
    return SimpleNamespace(report=derive(recording_of(scenario)))

good, odd = controls.CONTROLS[:2]
controls.CONTROLS = (replace(good, judge=lambda _: []), replace(odd, judge=lambda _: {found}))
pytest_drainwatch.pool.ClusterPool = Pool
pytest_drainwatch.trial.run_trial = run_trial
sys.exit(main(sys.argv[1:]))
"""


def given(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    doctor.register(parser.add_subparsers())
    return parser.parse_args(["doctor", "--trial", *words])


@pytest.fixture(autouse=True)
def nothing_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("DW_"):
            monkeypatch.delenv(name)


def test_every_option_is_a_place_or_is_not() -> None:
    assert set(OTHER) | set(PLACES) == {o.name for o in OPTIONS if not o.pytest_only}
    assert set(PLACES) == {*doctor.PLACE, doctor.VERSION}


def test_what_is_exported_for_other_runs_changes_no_control(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in OTHER.items():
        monkeypatch.setenv("DW_" + name.upper().replace("-", "_"), value)
    settings = doctor.place(given())
    for control in CONTROLS:
        assert settings.apply(control.scenario) == control.scenario


def test_where_it_runs_may_be_exported_or_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLACES.items():
        monkeypatch.setenv("DW_" + name.upper().replace("-", "_"), value)
    exported = doctor.place(given())
    assert exported.origins == dict.fromkeys(PLACES, "environment")
    assert str(exported.kubeconfig) == PLACES["kubeconfig"]
    assert exported.apply(CONTROLS[0].scenario).cluster.kube_version == "1.34"
    typed = doctor.place(given("--kube-version", "1.37", "--out", "here"))
    assert (typed.kube_version, str(typed.out)) == ("1.37", "here")


def test_one_version_at_a_time() -> None:
    with pytest.raises(OptionError, match="given 2 times"):
        doctor.place(given("--kube-version", "1.37", "--kube-version", "1.34"))
    assert main(["doctor", "--trial", "--cluster", "minikube"]) == 2


def run(
    folder: Path,
    *words: str,
    found: Sequence[str] = ("it is odd",),
    fault: str = "pass",
    stdout: int = subprocess.PIPE,
) -> tuple[int, str, str]:
    command: Sequence[str] = [sys.executable, "-c", PROGRAM.format(fault=fault, found=list(found))]
    done = subprocess.run(
        [*command, "doctor", "--trial", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.returncode, done.stdout or "", done.stderr


def test_a_control_that_is_not_as_expected_is_a_broken_promise(tmp_path: Path) -> None:
    good, odd = (f"{control.name}: {control.shows}" for control in CONTROLS[:2])
    code, told, _ = run(tmp_path)
    assert code == 1
    assert told.startswith(f"✓ {good}\n✗ {odd}\n    it is odd\n1 of 2 controls as expected; ")
    code, told, _ = run(tmp_path, found=[])
    assert code == 0
    assert told.startswith(f"✓ {good}\n✓ {odd}\n2 of 2 controls as expected; ")


def test_a_reader_that_left_is_nobodys_fault_and_the_cluster_is_closed(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        code, _, said = run(tmp_path, stdout=writes)
    finally:
        os.close(writes)
    assert (code, said) == (CUT_OFF, "closed\n")


def test_results_that_cannot_be_written_are_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, told, said = run(tmp_path, "--out", "file")
    assert (code, told) == (3, "")
    assert said.startswith("drainwatch: cannot use file for results: ")
    assert "closed" not in said


@pytest.mark.parametrize(
    ("keep", "fault", "said"),
    [
        ("never", "pass", "closed"),
        ("on-failure", "pass", "kept"),  # a control is not as expected
        ("on-failure", "raise pytest_drainwatch.trial.TrialVoid('not measured')", "kept"),
    ],
)
def test_the_cluster_of_a_failure_is_kept_on_failure(
    tmp_path: Path, keep: str, fault: str, said: str
) -> None:
    code, _, errors = run(tmp_path, "--keep", keep, fault=fault)
    assert code == (1 if fault == "pass" else 3)
    assert said in errors.splitlines()


def test_another_error_is_not_put_down_to_the_results(tmp_path: Path) -> None:
    code, _, said = run(tmp_path, fault="raise PermissionError(13, 'an odd one')")
    assert code == 3
    assert "an odd one" in said
    assert "for results" not in said
