"""Running clusters and leftovers, told apart by locks alone."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import (
    addresses,
    cgroups,
    diagnosis,
    links,
    reaper,
    records,
    slots,
)
from pytest_drainwatch.cluster.embedded.layout import Layout
from pytest_drainwatch.cluster.embedded.plan import Plan


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DW_STATE", str(tmp_path / "state"))


def make(name: str, *, owner: int | None = None) -> tuple[Layout, int]:
    layout, lock = records.new_layout(name, None)
    records.Record(
        name=name,
        created=1.0,
        owner=owner,
        reaper=2**22,
        kube_version="1.37",
        proxy_mode="iptables",
        node_address="198.18.0.8",
        kubeconfig=str(layout.kubeconfig),
        logs=str(layout.logs),
    ).write(layout)
    return layout, lock


def write_plan(layout: Layout, link: str = "dwh255") -> None:
    Plan(
        state=str(layout.state),
        logs=str(layout.logs),
        link=link,
        sources=(),
        cgroup=f"/drainwatch/{layout.state.name}",
        nodes=(),
    ).write(layout.plan)


def test_only_locked_clusters_run() -> None:
    _, alive = make("alive")
    _, dead = make("dead")
    os.close(dead)
    assert [record.name for record in records.running()] == ["alive"]
    assert records.leftovers() == ["dead"]
    os.close(alive)


def test_name_in_use_is_refused() -> None:
    _, lock = make("one")
    with pytest.raises(ClusterError, match=r"one is running.*drainwatch cluster down --name one"):
        records.new_layout("one", None)
    os.close(lock)


def test_sweep_names_and_removes_the_dead_only(monkeypatch: pytest.MonkeyPatch) -> None:
    cleared: list[str] = []

    def clear(plan: Plan, *, link: bool) -> list[Path]:
        cleared.append(plan.cgroup)
        return []

    monkeypatch.setattr(reaper, "clear", clear)
    alive, lock = make("alive")
    dead, dead_lock = make("dead")
    unborn, unborn_lock = records.new_layout("unborn", None)  # died before its plan was written
    write_plan(dead)
    os.close(dead_lock)
    os.close(unborn_lock)
    said: list[str] = []
    records.sweep(said.append)
    assert cleared == ["/drainwatch/dead"]
    assert [line.split()[3] for line in said] == ["dead", "unborn"]
    assert not dead.state.exists()
    assert not unborn.state.exists()
    assert alive.state.exists()
    os.close(lock)


def test_sweep_keeps_what_still_holds_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "clear", lambda plan, *, link: [Path("/sys/fs/cgroup/busy")])
    dead, lock = make("dead")
    write_plan(dead)
    os.close(lock)
    said: list[str] = []
    records.sweep(said.append)
    assert "/sys/fs/cgroup/busy" in said[-1]
    assert dead.state.exists()


@pytest.mark.parametrize("taken", [False, True])
def test_the_link_of_whoever_has_a_dead_ones_slot_by_now_stays(
    taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once went with the dead one: the other cluster's nodes had lost their address."""
    monkeypatch.setattr(slots, "SLOTS", 10_000)  # nobody's
    monkeypatch.setattr(addresses, "SLOTS", 10_000)
    link = f"dwh{9_000 + os.getpid() % 900}"
    removed: list[str] = []
    monkeypatch.setattr(links, "remove", removed.append)
    monkeypatch.setattr(cgroups, "remove", lambda cgroup, found: [])
    dead, lock = make("dead")
    write_plan(dead, link)
    os.close(lock)
    with slots.nobodys(link) if taken else nullcontext():
        records.sweep(lambda line: None)
    assert removed == ([] if taken else [link])
    assert not dead.state.exists()


def test_stop_refuses_what_is_not_there_or_not_ours() -> None:
    with pytest.raises(ClusterError, match="expected one of none"):
        records.stop("nobody")
    _, lock = make("owned", owner=os.getpid())
    with pytest.raises(ClusterError, match=f"belongs to process {os.getpid()}"):
        records.stop("owned")
    os.close(lock)


def test_stop_signals_a_reaper_only(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signalled.append(pid))
    reaper.ask_to_stop(os.getpid())  # a process id that was used again
    assert signalled == []


def test_logs_of_an_earlier_cluster_of_that_name_are_gone() -> None:
    layout, lock = make("one")
    layout.ended.write_text("{}")
    os.close(lock)
    again, lock = records.new_layout("one", None)
    assert not again.ended.exists()
    os.close(lock)


def test_old_logs_are_pruned() -> None:
    for number in range(15):
        layout, lock = make(f"c{number}")
        os.utime(layout.logs, (number, number))
        os.close(lock)
        layout.remove_state()
    records.sweep(lambda line: None)
    left = {path.name for path in layout.logs.parent.iterdir()}
    assert left == {f"c{number}" for number in range(5, 15)}


@pytest.mark.parametrize(
    ("code", "words"),
    [(7, "ended with exit code 7"), (-9, "was killed by signal 9"), (None, "ended")],
)
def test_cause_of_death_quotes_the_grave_lines(
    code: int | None, words: str, tmp_path: Path
) -> None:
    layout = Layout(state=tmp_path, logs=tmp_path)
    layout.ended.write_text(json.dumps({"component": "kubelet", "code": code}))
    layout.log("kubelet").write_text(
        "I0102 03:04:05.000000 1 a.go:1] all is well\n"
        'E0102 03:04:06.000000 1 b.go:2] "Failed to run kubelet" err="no cgroups"\n'
    )
    message = diagnosis.cause_of_death(layout)
    assert f"kubelet {words}. Its last lines" in message
    assert "no cgroups" in message
    assert "all is well" not in message
    assert str(layout.log("kubelet")) in message


def test_cause_of_death_without_any_word(tmp_path: Path) -> None:
    message = diagnosis.cause_of_death(Layout(state=tmp_path, logs=tmp_path))
    assert message.startswith("node ended. Its last lines:\n  (no log)")


def test_slow_start_says_what_is_missing(tmp_path: Path) -> None:
    layout = Layout(state=tmp_path, logs=tmp_path)
    layout.log("node").write_text("  0.010 s  etcd started\n")
    ready = {"type": "Ready", "reason": "KubeletNotReady", "message": "cni plugin not initialized"}
    node: dict[str, object] = {"status": {"conditions": [ready]}}
    said = diagnosis.progress(layout, "n", node, "[+]ping ok\n[-]etcd failed: reason withheld\n")
    assert "cni plugin not initialized" in said
    assert "[-]etcd failed" in said
    assert "etcd started" in said
    assert "node n has not registered" in diagnosis.progress(layout, "n", None, "")


def test_state_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DW_STATE", str(tmp_path / "file" / "state"))
    for attempt in (lambda: records.new_layout("one", None), lambda: records.sweep(print)):
        with pytest.raises(ClusterError, match=r"can't be written.*DW_STATE"):
            attempt()


def test_unwritable_logs_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClusterError, match=r"can't be written: .*file"):
        records.new_layout("one", tmp_path / "file")
    assert not list(records.clusters_dir().iterdir())
