"""Files: whole or not there, and a failure that names the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.recording import dump_observation, loads
from pytest_drainwatch.recorder import Recorder, RecorderError, write_atomic
from pytest_drainwatch.results import claim_folder
from pytest_drainwatch.workload.namespace import is_dead, owner
from tests.core import story as s

HEADER = s.recording().header
SEEN = s.client(Event.FLOW_FIN, "tcp-0001", s.at(5))


@pytest.mark.parametrize("folder", ["", ".", "/", ".."])
def test_a_folder_is_no_file(folder: str) -> None:
    with pytest.raises(RecorderError, match="cannot write"):
        write_atomic(Path(folder), "text")


def test_a_recording_holds_both_parts(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl", HEADER)
    recorder(s.accepted())
    part = tmp_path / "part.jsonl"
    part.write_text(dump_observation(SEEN) + "\n")
    merged = recorder.finish(part)
    assert merged.observations == (SEEN, s.accepted())
    assert loads((tmp_path / "r.jsonl").read_text()) == merged
    assert not part.exists()
    recorder(SEEN)  # a late frame of a watch changes nothing
    assert loads((tmp_path / "r.jsonl").read_text()) == merged


def test_what_goes_wrong_after_the_merge_is_added_and_loses_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl", HEADER)
    part = tmp_path / "part.jsonl"
    part.write_text(dump_observation(SEEN) + "\n")
    recorder.finish(part)
    recorder.finish(part, s.accepted())
    assert loads((tmp_path / "r.jsonl").read_text()).observations == (SEEN, s.accepted())


@pytest.mark.parametrize("torn", [b'{"torn', b'{"torn \xc3'])
def test_a_torn_or_missing_part_is_an_error_unless_the_trial_is_void(
    tmp_path: Path, torn: bytes
) -> None:
    part = tmp_path / "part.jsonl"
    recorder = Recorder(tmp_path / "r.jsonl", HEADER)
    with pytest.raises(RecorderError, match="is lost"):
        recorder.finish(part)
    part.write_bytes(dump_observation(SEEN).encode() + b"\n" + torn)
    with pytest.raises(RecorderError, match="ends within a line"):
        recorder.finish(part)
    assert recorder.finish(part, salvage=True).observations == (SEEN,)


def test_a_killed_writer_leaves_complete_lines(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl", HEADER)
    recorder(SEEN)
    assert loads((tmp_path / "r.jsonl").read_text()).observations == (SEEN,)
    recorder.close()


def test_a_full_disk_is_said_once_and_kept(tmp_path: Path) -> None:
    full = tmp_path / "r.jsonl"
    full.symlink_to("/dev/full")
    with pytest.raises(RecorderError, match="No space left"):
        Recorder(full, HEADER)
    recorder = Recorder(tmp_path / "ok.jsonl", HEADER)
    recorder.close()
    recorder._file = Path("/dev/full").open("w")  # noqa: SIM115
    with pytest.raises(RecorderError, match="df -h"):
        recorder(SEEN)
    assert "No space left" in (recorder.problem or "")
    recorder.close()


def test_an_unwritable_folder_names_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecorderError, match=str(tmp_path / "file")):
        Recorder(tmp_path / "file" / "r.jsonl", HEADER)
    with pytest.raises(RecorderError, match=str(tmp_path / "file")):
        write_atomic(tmp_path / "file" / "report.json", "{}")


def test_an_atomic_write_leaves_no_half(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(path, "new \udc80")
    assert path.read_text() == "old"


def test_a_link_stays_a_link_and_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    """As root /dev/stdout could be replaced by a file."""
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("file")
    write_atomic(link, "by its link")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "by its link"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomic(pipe, "into it")
        assert os.read(reader, 100) == b"into it"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_folders_never_collide(tmp_path: Path) -> None:
    first = claim_folder(tmp_path, "run", "drain-delete")
    second = claim_folder(tmp_path, "run", "drain-delete")
    assert (first.name, second.name) == ("r00", "r00.2")
    assert (tmp_path / "latest").resolve() == (tmp_path / "run").resolve()
    assert claim_folder(tmp_path, "run", "a/../b").parent.parent == tmp_path / "run"


@pytest.mark.parametrize("scenario", ["..", ".", "", "../../x", "...", "/etc", ".hidden", "a\0b"])
def test_no_scenario_id_leaves_its_run_or_hides_in_it(tmp_path: Path, scenario: str) -> None:
    claimed = claim_folder(tmp_path, "run", scenario)
    assert claimed.resolve().parent.parent == tmp_path.resolve() / "run"
    assert not claimed.parent.name.startswith(".")


def test_only_a_process_that_is_surely_gone_is_dead() -> None:
    """Case C64: leftovers are ours by owner, and another machine's are never touched."""
    mine = owner()
    boot, pid, started, pid_namespace = mine.split("/")
    assert int(pid) == os.getpid()
    assert not is_dead(mine)
    assert is_dead(f"{boot}/{pid}/{int(started) - 1}/{pid_namespace}")  # the pid was used again
    assert is_dead(f"{boot}/4194305/1/{pid_namespace}")
    assert not is_dead(f"another-boot/4194305/1/{pid_namespace}")
    assert not is_dead("")
    assert not is_dead("nonsense")
