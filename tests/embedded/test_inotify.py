"""Whether there are inotify instances left for one more cluster."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import doctor, inotify


@pytest.fixture
def only_us(tmp_path: Path) -> Path:
    """A /proc in which there is this process alone."""
    (tmp_path / "1").symlink_to("/proc/self")
    (tmp_path / "uptime").touch()
    return tmp_path


def test_counts_what_the_kernel_counts(only_us: Path) -> None:
    before = inotify.held(only_us)
    descriptor = ctypes.CDLL(None).inotify_init()
    assert descriptor >= 0
    try:
        assert inotify.held(only_us) == before + 1
        assert inotify.held() >= before + 1
    finally:
        os.close(descriptor)
    assert inotify.held(only_us) == before


@pytest.mark.parametrize("left", [0, inotify.cluster() - 1])
def test_too_few_left_is_refused_with_the_way_out(
    left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "held", lambda: 100)
    monkeypatch.setattr(inotify, "limit", lambda: 100 + left)
    with pytest.raises(ClusterError) as refused:
        inotify.check()
    assert f"hold 100 of {100 + left} inotify instances" in str(refused.value)
    assert "sudo sysctl fs.inotify.max_user_instances=512" in str(refused.value)
    line = doctor._inotify().line()
    assert line.startswith("✗ inotify: 100 of")
    assert line.endswith(inotify.REMEDY)


@pytest.mark.parametrize("limit", [100 + inotify.cluster(), None])
def test_enough_or_unknown_is_taken(limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "held", lambda: 100)
    monkeypatch.setattr(inotify, "limit", lambda: limit)
    inotify.check()
    assert doctor._inotify().good


def test_other_starts_are_counted_that_have_not_taken_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inotify, "held", lambda: 100)
    monkeypatch.setattr(inotify, "limit", lambda: 100 + 2 * inotify.cluster())
    inotify.check(starting=1)
    with pytest.raises(ClusterError, match="with 2 more being started"):
        inotify.check(starting=2)


def test_each_further_node_takes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "held", lambda: 100)
    monkeypatch.setattr(inotify, "limit", lambda: 100 + inotify.cluster(2))
    inotify.check(nodes=2)
    with pytest.raises(ClusterError, match=f"a cluster takes {inotify.cluster(3)}"):
        inotify.check(nodes=3)


@pytest.mark.parametrize("v2", [True, False])
def test_pods_take_some_where_containerd_watches_each_cgroup(
    v2: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").touch()
    monkeypatch.setattr(inotify, "_V2", tmp_path / ("there" if v2 else "not"))
    assert inotify.cluster() == inotify.COMPONENTS + (inotify.PODS_ON_V2 if v2 else 0)
    monkeypatch.setattr(inotify, "held", lambda: 100)
    monkeypatch.setattr(inotify, "limit", lambda: 100 + inotify.COMPONENTS)
    if v2:
        with pytest.raises(ClusterError, match=f"a cluster takes {inotify.cluster()}"):
            inotify.check()
    else:
        inotify.check()
