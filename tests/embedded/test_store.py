"""A store of unpacked images is shared by links, and its books are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.embedded import machine, store
from pytest_drainwatch.cluster.embedded.layout import Layout

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a store keeps owners, as root")


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr(machine, "carries_overlays", lambda folder: True)
    (tmp_path / "state").mkdir()
    return Layout(state=tmp_path / "state", logs=tmp_path)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    (made / "bolt").mkdir(parents=True)
    (made / "bolt" / "meta.db").write_text("book")
    layer = made / "snapshots" / "1" / "fs"
    (layer / "bin").mkdir(parents=True)
    (layer / "bin" / "python3.11").write_text("program")
    (layer / "bin" / "python3").symlink_to("python3.11")
    (layer / "lib").symlink_to("usr/lib")
    (layer / "tmp").mkdir()
    (layer / "tmp").chmod(0o1777)
    os.chown(layer / "tmp", 1, 2)
    return made


def test_files_are_linked_and_books_are_copied(made: Path, layout: Layout) -> None:
    assert store.begin_from(made, layout)
    root = layout.containerd
    program = "snapshots/1/fs/bin/python3.11"
    assert (root / program).samefile(made / program)
    (root / "bolt/meta.db").write_text("another cluster's")
    assert (made / "bolt/meta.db").read_text() == "book"
    assert (root / "snapshots/1/fs/bin/python3").readlink() == Path("python3.11")
    assert (root / "snapshots/1/fs/lib").readlink() == Path("usr/lib")
    status = (root / "snapshots/1/fs/tmp").stat()
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid) == (0o1777, 1, 2)


def test_end_of_a_cluster_leaves_the_store_whole(made: Path, layout: Layout) -> None:
    store.begin_from(made, layout)
    layout.remove_state()
    assert (made / "snapshots/1/fs/bin/python3.11").read_text() == "program"


def test_store_on_another_file_system_is_not_used(
    made: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    assert not store.begin_from(made, layout)
    assert not layout.containerd.exists()


def test_images_that_go_to_memory_begin_empty(
    made: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "carries_overlays", lambda folder: False)
    assert not store.begin_from(made, layout)
    assert store.image_store((), print) is None
