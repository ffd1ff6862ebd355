"""``drainwatch client http://…``: what a person sees, and what stays out of the recording."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_drainwatch.core.recording import loads
from tests.loopback.http_servers import SECRET, free_port, stdlib


def client(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_drainwatch", "client", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_requests_by_hand(tmp_path: Path) -> None:
    with stdlib() as server:
        url = f"http://127.0.0.1:{server.port}/?token={SECRET}"
        done = client(tmp_path, url, "--seconds", "0.7", "--identity-header", "X-Pod-Name")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    (kept,) = [line for line in lines if line.startswith("keepalive")]
    assert "requests of 5 lanes" in kept
    assert "served" in kept
    assert any(line.startswith("  by pod-a ") for line in lines)
    recording = (tmp_path / "client-recording.jsonl").read_text()
    assert loads(recording).observations
    assert SECRET not in recording


def test_nobody_there(tmp_path: Path) -> None:
    done = client(tmp_path, f"http://127.0.0.1:{free_port()}/", "--seconds", "0.5")
    assert done.returncode == 0
    assert "refused" in done.stdout
    assert "served again at no time" in done.stdout


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        f"http://me:{SECRET}@127.0.0.1/",
        f"http://me:{SECRET}@127.0.0.1:99999/",
        f"http://me:{SECRET}@[::1/",
        "http://127.0.0.1:99999/",
        f"https://127.0.0.1/?token={SECRET}",
    ],
)
def test_a_url_that_cannot_be_asked(tmp_path: Path, url: str) -> None:
    done = client(tmp_path, url)
    assert done.returncode == 2
    assert "expected http://HOST:PORT/path" in done.stderr
    assert SECRET not in done.stderr
