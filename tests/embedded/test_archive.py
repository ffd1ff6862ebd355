"""Images: the same content is the same bytes, in the form that containerd takes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import archive, image, rootfs
from pytest_drainwatch.cluster.embedded.archive import Layer


def members(content: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {entry.name: entry for entry in tar}


def test_layer_is_sorted_and_nobodys_and_timeless() -> None:
    files = {"b/two": (b"2", 0o644), "a": (b"1", 0o755)}
    content = archive.layer_bytes(files)
    assert content == archive.layer_bytes(dict(reversed(files.items())))
    found = members(content)
    assert list(found) == ["a", "b", "b/two"]
    assert found["b"].isdir()
    assert found["a"].mode == 0o755
    assert {(e.mtime, e.uid, e.gid, e.uname) for e in found.values()} == {(0, 0, 0, "")}


def test_normalised_copy_drops_times_and_what_was_named(tmp_path: Path) -> None:
    def raw(mtime: int, order: list[str]) -> io.BytesIO:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name in order:
                entry = tarfile.TarInfo(name)
                entry.mtime, entry.size = mtime, 1
                tar.addfile(entry, io.BytesIO(b"x"))
            link = tarfile.TarInfo("./usr/bin/python3")
            link.type, link.linkname = tarfile.SYMTYPE, "python3.11"
            tar.addfile(link)
        buffer.seek(0)
        return buffer

    names = ["./usr/share/doc/x", "./etc/a", "./usr/bin/python3.11"]
    results = []
    for mtime, order in ((1, names), (2, names[::-1])):
        target = tmp_path / f"{mtime}.tar"
        archive.normalise(raw(mtime, order), target, dropped=r"usr/share/doc/")
        results.append(target.read_bytes())
    assert results[0] == results[1]
    found = members(results[0])
    assert "./usr/share/doc/x" not in found
    assert found["./usr/bin/python3"].linkname == "python3.11"


def test_archive_names_image_and_layers(tmp_path: Path) -> None:
    layer_file = tmp_path / "layer"
    layer_file.write_bytes(archive.layer_bytes({"pause": (b"p", 0o755)}))
    digest = archive.layer_digest(layer_file)
    config = archive.image_config([digest], entrypoint=["/pause"])
    target = tmp_path / "image.tar"
    archive.write_archive(
        target, "example/pause:1", [Layer(path=layer_file, digest=digest)], config
    )
    with tarfile.open(target) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        document = json.load(tar.extractfile(manifest[0]["Config"]))  # type: ignore[arg-type]
    assert manifest[0]["RepoTags"] == ["example/pause:1"]
    assert manifest[0]["Layers"] == [f"blobs/sha256/{digest}"]
    assert manifest[0]["Config"] == f"blobs/sha256/{hashlib.sha256(config).hexdigest()}"
    assert document["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_architecture_is_the_machines(
    machine: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert json.loads(archive.image_config([], entrypoint=[]))["architecture"] == name


class Probe:
    """A probe's source of a few bytes on a root file system of none."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DW_CACHE", str(folder / "cache"))
        self.source = folder / "probe.py"
        base = folder / "base.tar"
        base.write_bytes(archive.layer_bytes({"usr/bin/python3": (b"", 0o755)}))
        self.base = Layer(path=base, digest=archive.layer_digest(base))
        monkeypatch.setattr(image, "_probe_source", lambda: self.source)
        monkeypatch.setattr(image, "root_filesystem", lambda log: self.base)

    def build(self, text: str) -> image.Image:
        self.source.write_text(text)
        return image.probe_image(lambda line: None)


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Probe:
    return Probe(tmp_path, monkeypatch)


def test_another_probe_is_another_image_and_the_same_is_the_same(probe: Probe) -> None:
    first, second = probe.build("one"), probe.build("two")
    assert first.reference != second.reference
    assert probe.build("one") == first
    assert first.archive.exists()
    repository, _, tag = first.reference.rpartition(":")
    assert (repository, len(tag)) == ("docker.io/drainwatch/probe", 12)


def test_image_carries_probe_and_flow_agent(probe: Probe) -> None:
    built = probe.build("print('hello')")
    with tarfile.open(built.archive) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        layer = tar.extractfile(manifest[0]["Layers"][1])
        assert layer is not None
        found = members(layer.read())
    assert found["probe.py"].mode == 0o755
    assert "opt/drainwatch/pytest_drainwatch/__init__.py" in found
    assert "opt/drainwatch/pytest_drainwatch/core/recording.py" in found


def test_thin_image_is_the_same_image_without_its_base(probe: Probe) -> None:
    whole = probe.build("one")
    thin = image.probe_image(lambda line: None, thin=True)
    assert thin.reference == whole.reference
    assert thin.archive != whole.archive
    with tarfile.open(whole.archive) as all_of_it, tarfile.open(thin.archive) as rest:
        missing = set(all_of_it.getnames()) - set(rest.getnames())
        assert missing == {f"blobs/sha256/{probe.base.digest}"}
        assert set(rest.getnames()) < set(all_of_it.getnames())


def test_edits_do_not_fill_the_disk(probe: Probe) -> None:
    built = []
    for number in range(8):
        built.append(probe.build(f"edit {number}"))
        os.utime(built[-1].archive, (number, number))
    left = list(built[-1].archive.parent.glob("probe-*.tar"))
    assert len(left) < 6
    assert built[-1].archive in left


def test_missing_probe_source_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "pytest_drainwatch"
    monkeypatch.setattr("pytest_drainwatch.__file__", str(package / "__init__.py"))
    with pytest.raises(ClusterError, match=r"probe_image/probe\.py"):
        image._probe_source()


@pytest.mark.parametrize(
    ("name", "content", "serves"),
    [
        (
            "debian.sources",
            "Types: deb\nSuites: bookworm bookworm-updates\nComponents: main\n",
            True,
        ),
        ("sources.list", "deb http://mirror.example/debian bookworm main contrib\n", True),
        ("docker.list", "deb https://docker.example/debian bookworm stable\n", False),
        ("cloud.list", "deb https://cloud.example/apt cloud-sdk-bookworm main\n", False),
        ("off.list", "# deb http://mirror.example/debian bookworm main\n", False),
        ("debian.sources.save", "Suites: bookworm\nComponents: main\n", False),
    ],
)
def test_only_the_distributions_own_sources_are_used(
    name: str, content: str, serves: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    assert rootfs._serves(tmp_path / name, "bookworm") is serves
