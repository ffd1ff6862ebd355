"""Cgroup roots on every kind of machine, on folders that stand in for the kernel's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.embedded import cgroups
from pytest_drainwatch.cluster.embedded.cgroups import Hierarchy, Part

V1 = "30 24 0:26 / /sys/fs/cgroup/{0} rw - cgroup cgroup rw,{0}"
V2 = "40 24 0:36 / {0} rw shared:1 - cgroup2 cgroup2 rw"
OTHER = "1 1 0:2 / /proc rw - proc proc rw"


@pytest.mark.parametrize(
    ("mounts", "flavour"),
    [
        ([V1.format("cpu"), V1.format("memory")], "v1"),
        ([V2.format("/sys/fs/cgroup")], "v2"),
        ([V1.format("cpu"), V2.format("/sys/fs/cgroup/unified")], "hybrid"),
        ([], None),
    ],
)
def test_flavour_is_read_from_the_mounts(mounts: list[str], flavour: str | None) -> None:
    assert cgroups.flavour(cgroups.hierarchies("\n".join([OTHER, *mounts]))) == flavour


def test_v1_cpuset_is_filled_from_above(tmp_path: Path) -> None:
    root = tmp_path / "cpuset"
    own = root / "drainwatch" / "one"
    own.mkdir(parents=True)
    for folder, cpus in ((root, "0-1"), (root / "drainwatch", "\n"), (own, "")):
        (folder / "cpuset.cpus").write_text(cpus)
        (folder / "cpuset.mems").write_text("0" if cpus == "0-1" else "")
    hierarchy = Hierarchy(root=root, version=1, controllers=frozenset({"rw", "cpuset"}))
    cgroups.create("/drainwatch/one", (hierarchy,))
    assert (own / "cpuset.cpus").read_text() == "0-1"
    assert (own / "cpuset.mems").read_text() == "0"


def fake_v2(root: Path, offered: str, active: str) -> Path:
    own = root / "drainwatch" / "one"
    own.mkdir(parents=True)
    for folder in (root, root / "drainwatch", own):
        (folder / "cgroup.controllers").write_text(offered)
        (folder / "cgroup.subtree_control").write_text(active)
    return own


def test_v2_hands_controllers_down_to_the_last_folder(tmp_path: Path) -> None:
    own = fake_v2(tmp_path, "cpuset cpu io memory pids rdma", "memory")
    cgroups.create("/drainwatch/one", (Hierarchy(root=tmp_path, version=2),))
    for folder in (tmp_path, own.parent, own):
        assert (folder / "cgroup.subtree_control").read_text() == "+cpuset +cpu +io +pids"


def test_v2_leaves_alone_what_is_active_already(tmp_path: Path) -> None:
    everything = "cpuset cpu io memory pids"
    own = fake_v2(tmp_path, everything, everything)
    cgroups.create("/drainwatch/one", (Hierarchy(root=tmp_path, version=2),))
    assert (own / "cgroup.subtree_control").read_text() == everything


def test_v2_folder_that_will_not_hand_down_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_v2(tmp_path, "cpu memory", "")

    def busy(self: Path, text: str) -> int:
        raise OSError(16, "Device or resource busy", str(self))

    monkeypatch.setattr(Path, "write_text", busy)
    with pytest.raises(OSError, match="cgroupns=host"):
        cgroups.create("/drainwatch/one", (Hierarchy(root=tmp_path, version=2),))


def test_removal_takes_children_first_and_spares_neighbours(tmp_path: Path) -> None:
    (tmp_path / "drainwatch/one/kubepods/pod1").mkdir(parents=True)
    (tmp_path / "drainwatch/two").mkdir()
    found = (Hierarchy(root=tmp_path, version=1),)
    assert cgroups.remove("/drainwatch/one", found) == []
    assert [path.name for path in (tmp_path / "drainwatch").iterdir()] == ["two"]
    assert cgroups.remove("/drainwatch/two", found) == []
    assert not (tmp_path / "drainwatch").exists()


def test_what_would_not_go_is_returned(tmp_path: Path) -> None:
    busy = tmp_path / "drainwatch/one"
    busy.mkdir(parents=True)
    (busy / "file").touch()  # as good as a process: rmdir refuses
    left = cgroups.remove("/drainwatch/one", (Hierarchy(root=tmp_path, version=1),), patience_s=0.1)
    assert left == [busy]


CPU = Hierarchy(root=Path(), version=1, controllers=frozenset({"rw", "cpu", "cpuacct"}))
MEMORY = Hierarchy(root=Path(), version=1, controllers=frozenset({"rw", "memory"}))
BARE_V2 = Hierarchy(root=Path(), version=2)


def on(tmp_path: Path, *kinds: Hierarchy) -> tuple[Hierarchy, ...]:
    """Hierarchies of these kinds, each with a folder for the one cluster."""
    found = tuple(replace(kind, root=tmp_path / str(n)) for n, kind in enumerate(kinds))
    for hierarchy in found:
        (hierarchy.root / "drainwatch/one").mkdir(parents=True)
    return found


def test_components_join_a_folder_beside_the_pods_where_processor_time_is_shared(
    tmp_path: Path,
) -> None:
    cpu, memory, bare = on(tmp_path, CPU, MEMORY, BARE_V2)
    cgroups.join("/drainwatch/one", Part.NODE, (cpu, memory, bare))
    cgroups.join("/drainwatch/one", Part.CONTROL_PLANE, (cpu, memory, bare), 17)
    system = cpu.root / "drainwatch/one/system"
    assert (system / "node/cgroup.procs").read_text() == "0"
    assert (system / "control-plane/cgroup.procs").read_text() == "17"
    shares = {part: int((system / part / "cpu.shares").read_text()) for part in Part}
    assert shares[Part.NODE] > shares[Part.CONTROL_PLANE] == 1024
    assert not (memory.root / "drainwatch/one/system").exists()
    assert not (bare.root / "drainwatch/one/system").exists()


def test_where_a_folder_holds_folders_or_processes_those_are_in_the_parts(tmp_path: Path) -> None:
    (pure,) = on(tmp_path, BARE_V2)
    system = pure.root / "drainwatch/one/system"
    system.mkdir()
    for folder in (system, system.parent):
        (folder / "cgroup.controllers").write_text("cpu memory")
        (folder / "cgroup.subtree_control").write_text("")
    cgroups.join("/drainwatch/one", Part.NODE, (pure,))
    assert (system / "node/cgroup.procs").read_text() == "0"
    assert not (system / "cgroup.procs").exists()
    for folder in (system, system.parent):
        assert (folder / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_weights_are_in_units_of_an_ordinary_groups(tmp_path: Path) -> None:
    cpu, memory = on(tmp_path / "v1", CPU, MEMORY)
    cgroups.weigh("/drainwatch/one", 3, (cpu, memory))
    assert (cpu.root / "drainwatch/one/cpu.shares").read_text() == "3072"
    assert list((memory.root / "drainwatch/one").iterdir()) == []
    (pure,) = on(tmp_path / "v2", BARE_V2)
    cgroups.weigh("/drainwatch/one", 3, (pure,))
    assert (pure.root / "drainwatch/one/cpu.weight").read_text() == "300"
