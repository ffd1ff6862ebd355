"""Images of packages: what they say, and archives that others wrote."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import archive, rootfs
from pytest_drainwatch.cluster.embedded.archive import Layer


def config_of(**said: str) -> dict[str, object]:
    document = json.loads(archive.image_config(["0" * 64], entrypoint=[], **said))
    return dict(document["config"])


def test_an_image_names_the_signal_that_ends_it() -> None:
    assert config_of(stop_signal="SIGQUIT")["StopSignal"] == "SIGQUIT"


def test_an_image_that_says_nothing_leaves_it_to_the_runtime() -> None:
    assert "StopSignal" not in config_of()


def tar_of(entries: list[tuple[str, str]]) -> io.BytesIO:
    """Files as (name, ""), hard links as (name, target)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, target in entries:
            entry = tarfile.TarInfo(name)
            if target:
                entry.type, entry.linkname = tarfile.LNKTYPE, target
                tar.addfile(entry)
            else:
                entry.size = 1
                tar.addfile(entry, io.BytesIO(b"x"))
    buffer.seek(0)
    return buffer


def test_a_hard_link_comes_after_its_file(tmp_path: Path) -> None:
    """`perl5` sorts before `perl5.36`, and is a link to it: unpacking must still work."""
    target = tmp_path / "layer.tar"
    source = tar_of([("./usr/bin/perl5.36", ""), ("./usr/bin/perl5", "./usr/bin/perl5.36")])
    archive.normalise(source, target, dropped="nothing")
    with tarfile.open(target) as tar:
        tar.extractall(tmp_path / "root", filter="data")
    assert (tmp_path / "root/usr/bin/perl5").read_bytes() == b"x"


def test_an_archive_gives_its_reference(tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    layer.write_bytes(archive.layer_bytes({"a": (b"1", 0o644)}))
    digest = archive.layer_digest(layer)
    target = tmp_path / "image.tar"
    config = archive.image_config([digest], entrypoint=[])
    archive.write_archive(target, "example/it:1", [Layer(path=layer, digest=digest)], config)
    assert archive.reference_of(target) == "example/it:1"


def archive_saying(folder: Path, manifest: object) -> Path:
    content = json.dumps(manifest).encode()
    target = folder / "image.tar"
    with tarfile.open(target, "w") as tar:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return target


@pytest.mark.parametrize(
    ("manifest", "names"),
    [([], 0), ([{"RepoTags": None}], 0), ([{"RepoTags": ["a:1", "b:1"]}], 2)],
)
def test_one_image_is_expected(tmp_path: Path, manifest: object, names: int) -> None:
    target = archive_saying(tmp_path, manifest)
    with pytest.raises(ClusterError, match=rf"{names} image names: expected one.*docker save"):
        archive.reference_of(target)


@pytest.mark.parametrize("manifest", [{}, 1, ["x"], [{}]])
def test_what_is_no_image_says_so(tmp_path: Path, manifest: object) -> None:
    target = archive_saying(tmp_path, manifest)
    with pytest.raises(ClusterError, match="image"):
        archive.reference_of(target)


def test_a_file_that_is_no_tar_says_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ClusterError, match=r"no image archive.*docker save"):
        archive.reference_of(tmp_path / "text")


@given(
    start=st.sampled_from(
        [b"", b"\x1f\x8b\x08\x00", b"BZh9", b"\xfd7zXZ\x00", b"manifest.json\x00"]
    ),
    rest=st.binary(max_size=2000),
)
def test_whatever_else_a_file_holds_says_so(
    tmp_path_factory: pytest.TempPathFactory, start: bytes, rest: bytes
) -> None:
    target = tmp_path_factory.getbasetemp() / "whatever.tar"
    target.write_bytes(start + rest)
    with pytest.raises(ClusterError, match="no image archive"):
        archive.reference_of(target)


def test_recipes_have_files_of_their_own() -> None:
    """Other packages are another layer; another purpose alone is not."""
    other = rootfs.Recipe(purpose="x's", packages=("hello",), hooks=(), about="soon")
    again = rootfs.Recipe(purpose="y's", packages=("hello",), hooks=(), about="later")
    assert rootfs._target("any", other) != rootfs._target("any", rootfs.PROBE)
    assert rootfs._target("any", other) == rootfs._target("any", again)
