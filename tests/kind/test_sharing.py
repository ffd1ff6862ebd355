"""Who is the last user of a cluster, however the others ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind.sharing import Share

ROOT = Path(__file__).parents[2]
USER = """
import sys
from pytest_drainwatch.cluster.kind.sharing import Share
share = Share(sys.argv[1])
with share.door(lambda: None):
    share.join()
print("joined", flush=True)
keep = sys.stdin.read() == "keep"
with share.door(lambda: None):
    print("last" if share.leave(keep=keep) else "not last")
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DW_STATE", str(tmp_path))


def nobody_waits() -> None:
    raise AssertionError("waited for somebody")


@contextmanager
def user(name: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", USER, name],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "joined\n"
        yield process


def said_at_its_end(process: subprocess.Popen[str], told: str = "") -> str:
    said, _ = process.communicate(told)
    return said.strip()


def test_the_last_one_is_told_so_and_nobody_else() -> None:
    with user("k") as first, user("k") as second, user("other") as elsewhere:
        assert said_at_its_end(first) == "not last"
        assert said_at_its_end(second) == "last"
        assert said_at_its_end(elsewhere) == "last"


def test_who_was_killed_is_no_user_any_more() -> None:
    with user("k") as killed, user("k") as last:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        assert said_at_its_end(last) == "last"


def test_what_one_wants_kept_the_last_one_does_not_remove() -> None:
    with user("k") as failed, user("k") as last:
        assert said_at_its_end(failed, "keep") == "not last"
        assert said_at_its_end(last) == "not last"
    with user("k") as another:  # nobody wants it kept for ever
        assert said_at_its_end(another) == "last"


def test_what_the_last_one_wants_kept_it_does_not_remove() -> None:
    with user("k") as one, user("k") as last:
        assert said_at_its_end(one) == "not last"
        assert said_at_its_end(last, "keep") == "not last"


def test_the_wish_of_users_that_are_all_gone_is_forgotten() -> None:
    with user("k") as failed, user("k") as killed:
        assert said_at_its_end(failed, "keep") == "not last"
        killed.kill()
        killed.wait()
    with user("k") as another, user("k") as last:
        assert said_at_its_end(another) == "not last"
        assert said_at_its_end(last) == "last"


def test_who_never_joined_or_left_already_is_not_the_last() -> None:
    share = Share("k")
    with share.door(nobody_waits):
        assert not share.leave()
        share.join()
        share.join()
        assert share.leave()
        assert not share.leave()


@pytest.mark.parametrize("name", ["", "../up", "a/b", "-x"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="--cluster-name"):
        Share(name)
