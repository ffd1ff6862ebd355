"""`drainwatch setup`, `doctor` and `cluster`, without a cluster."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import doctor as doctor_command
from pytest_drainwatch.cluster import ClusterError, ClusterSettings, commands
from pytest_drainwatch.cluster.embedded import doctor, machine, provision
from pytest_drainwatch.cluster.embedded.doctor import Check


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DW_CACHE", str(tmp_path / "cache"))


def run(*argv: str) -> int:
    parser = argparse.ArgumentParser(prog="drainwatch")
    subparsers = parser.add_subparsers(required=True)
    commands.register(subparsers)
    doctor_command.register(subparsers)
    arguments = parser.parse_args(argv)
    return int(arguments.run(arguments))


def test_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cluster", "list") == 0
    assert "drainwatch cluster up" in capsys.readouterr().out
    assert run("cluster", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_down_without_a_cluster_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cluster", "down") == 3
    assert "no cluster named drainwatch is running" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "-x", "x" * 41])
def test_bad_name_is_a_usage_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("cluster", "up", f"--name={name}")
    assert ended.value.code == 2
    assert "no cluster name" in capsys.readouterr().err


@pytest.mark.parametrize("period", ["soon", "0.5ms", "-1s"])
def test_bad_sync_period_is_a_usage_error(period: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("cluster", "up", f"--min-sync-period={period}")
    assert ended.value.code == 2
    assert "--min-sync-period" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], ClusterSettings()),
        (
            ["--proxy-mode=nftables", "--min-sync-period=10s", "--nodes=2"],
            ClusterSettings(proxy_mode="nftables", min_sync_period_ms=10_000, nodes=2),
        ),
        (
            ["--dw-proxy-mode=ipvs", "--dw-kube-version=1.34"],
            ClusterSettings(proxy_mode="ipvs", min_sync_period_ms=0, kube_version="1.34"),
        ),
    ],
)
def test_up_asks_for_what_was_given(
    words: list[str], asked: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def start(settings: ClusterSettings, **_: Any) -> None:
        seen.append(settings)
        raise ClusterError("enough")

    monkeypatch.setattr("pytest_drainwatch.cluster.embedded.cluster.start_embedded", start)
    assert run("cluster", "up", *words) == 3
    assert seen == [asked]


@pytest.mark.parametrize("nodes", ["0", "two", "-1"])
def test_bad_number_of_nodes_is_a_usage_error(
    nodes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run("cluster", "up", f"--nodes={nodes}")
    assert caught.value.code == 2
    assert "expected a whole number" in capsys.readouterr().err


def test_no_verb_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        run("cluster")
    assert ended.value.code == 2


def test_doctor_ends_with_3_if_something_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Check(name="runc", good=True, seen="/usr/sbin/runc", remedy="drainwatch setup")
    bad = Check(name="ctr", good=False, seen="not on PATH", remedy="drainwatch setup")
    monkeypatch.setattr(doctor, "examine", lambda versions: (good, bad))
    assert run("doctor") == 3
    out = capsys.readouterr().out
    assert "✓ runc: /usr/sbin/runc\n" in out
    assert "✗ ctr: not on PATH  →  drainwatch setup\n" in out
    monkeypatch.setattr(doctor, "examine", lambda versions: (good,))
    assert run("doctor") == 0


def test_doctor_says_one_thing_to_who_is_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert [check.name for check in doctor.examine(["1.37"])] == ["rights"]


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="needs Linux")
def test_doctor_leads_to_setup_on_a_bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "check_rights", lambda: None)
    monkeypatch.setattr(machine, "find_program", lambda name: None)
    monkeypatch.setattr(machine, "_find_cni", lambda: None)
    checks = {check.name: check for check in doctor.examine(["1.37", "9.9"])}
    for name in ("containerd", "CNI plugins", "probe root file system"):
        assert (checks[name].good, checks[name].remedy) == (False, "drainwatch setup")
    assert not checks["Kubernetes 1.37"].good
    assert "expected one of 1.34, 1.37" in checks["Kubernetes 9.9"].seen


class Apt:
    """A machine that lacks packages, and its apt-get."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[list[str]] = []
        self.code = 0
        monkeypatch.setattr(machine, "missing_packages", lambda: ["containerd", "runc"])
        monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command[2:])
        return subprocess.CompletedProcess(command, self.code, stdout="E: no such thing")


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> Apt:
    return Apt(monkeypatch)


def install(agree: bool) -> None:
    provision._install(["containerd", "runc"], log=lambda line: None, agree=lambda question: agree)


def test_installs_what_was_agreed_to_and_removes_nothing(apt: Apt) -> None:
    install(agree=True)
    assert apt.commands[0] == ["update"]
    assert apt.commands[1][-2:] == ["containerd", "runc"]
    assert "--no-remove" in apt.commands[1]


def test_installs_nothing_without_agreement(apt: Apt) -> None:
    with pytest.raises(ClusterError, match="drainwatch setup --yes"):
        install(agree=False)
    assert apt.commands == []


def test_failed_install_is_quoted(apt: Apt) -> None:
    apt.code = 100
    with pytest.raises(ClusterError, match=r"(?s)could not install.*no such thing.*by hand"):
        install(agree=True)


def test_no_apt_names_the_programs(apt: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(ClusterError, match=r"missing: containerd.*no Debian"):
        install(agree=True)


def test_no_terminal_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert provision.ask("install") is False


def test_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "check_rights", lambda: None)
    monkeypatch.setattr(machine, "check_python", lambda: None)
    monkeypatch.setattr(machine, "missing_packages", list)
    (tmp_path / "file").touch()
    monkeypatch.setenv("DW_CACHE", str(tmp_path / "file" / "cache"))
    assert run("setup") == 3
    assert "can't be written: [Errno 20] Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [(), ("--for-tests",)])
def test_what_tests_need_comes_with_the_tests_only(
    flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(machine, "check_rights", lambda: None)
    monkeypatch.setattr(machine, "check_python", lambda: None)
    monkeypatch.setattr(machine, "check_programs", lambda: None)
    monkeypatch.setattr(machine, "missing_packages", lambda: ["runc"])
    monkeypatch.setattr(machine, "find_program", lambda name: None)
    monkeypatch.setattr(provision, "_install", lambda packages, **_: asked.extend(packages))
    monkeypatch.setattr(provision, "_make", lambda versions, log: None)
    assert run("setup", "--yes", *flags) == 0
    assert asked == ["runc", *(["tcpdump", "chromium", "haproxy"] if flags else [])]


@pytest.mark.parametrize("there", ["chromium", "google-chrome"])
def test_any_browser_that_will_do_is_enough(there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "find_program", lambda name: name if name == there else None)
    assert machine.missing_test_packages() == ["tcpdump", "haproxy"]
