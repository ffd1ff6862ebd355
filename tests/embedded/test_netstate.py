"""Looking into a network namespace with the real programs; here our own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.embedded import netstate
from pytest_drainwatch.core.mechanism.conntrack import parse

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """The file of a process id in a network namespace of its own."""
    with subprocess.Popen(["unshare", "--net", "sleep", "60"]) as process:
        own = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{process.pid}/ns/net").readlink() == own:
            time.sleep(0.01)
        pid = tmp_path / "node.pid"
        pid.write_text(f"{process.pid}\n")
        yield pid
        process.kill()


def test_an_empty_node(elsewhere: Path) -> None:
    seen = netstate.look(netstate.enter(elsewhere), "iptables", ["198.18.0.1", "198.18.0.2"])
    assert (seen.mode, seen.conntrack.problem, seen.rules.problem) == ("iptables", None, None)
    assert seen.conntrack.text == "", "what conntrack says beside its list is no entry"
    assert "KUBE" not in seen.rules.text
    for answer in (seen.conntrack, seen.rules):
        assert 0 < answer.asked_ns < answer.answered_ns <= time.monotonic_ns()


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        (None, "kube-proxy's mode is not known"),
        ("userspace", "kube-proxy's rules in userspace mode are not read yet"),
    ],
)
def test_rules_of_a_mode_that_is_not_known_are_not_read(
    elsewhere: Path, mode: str | None, told: str
) -> None:
    seen = netstate.look(netstate.enter(elsewhere), mode, ["198.18.0.1"])
    assert (seen.mode, seen.conntrack.problem, seen.rules.problem) == (mode, None, told)


def test_only_what_the_addresses_opened(elsewhere: Path) -> None:
    for source, port in (("198.18.0.1", 6001), ("198.18.0.2", 6002)):
        made = (
            f"conntrack -I -p udp -s {source} -d 198.18.0.8 --sport 5000 --dport 30257 "
            f"-r 10.244.0.2 -q 10.244.0.1 --reply-port-src 7002 --reply-port-dst {port} -t 60"
        )
        into = ["nsenter", f"--net=/proc/{elsewhere.read_text().strip()}/ns/net", "--"]
        subprocess.run([*into, *made.split()], check=True, capture_output=True)
    said = netstate.look(netstate.enter(elsewhere), "iptables", ["198.18.0.2"]).conntrack.text
    (entry,) = filter(None, map(parse, said.splitlines()))
    assert (entry.src, entry.sport, entry.to, entry.to_port) == (
        "198.18.0.2", 5000, "10.244.0.2", 7002
    )  # fmt: skip
    assert entry.id is not None


def test_many_entries_are_all_read_whole(elsewhere: Path) -> None:
    """conntrack says how many there were on stderr, unbuffered, amid the lines of its list."""
    into = ["nsenter", f"--net=/proc/{elsewhere.read_text().strip()}/ns/net", "--"]
    tell = (
        "conntrack -I -p udp -s 198.18.0.1 -d 198.18.0.8 --sport {0} --dport 30257 -r 10.244.0.2 "
        "-q 10.244.0.1 --reply-port-src 7002 --reply-port-dst {0} -t 60 || exit 1"
    )
    script = "; ".join(tell.format(port) for port in range(41_000, 41_060))
    subprocess.run([*into, "sh", "-c", script], check=True, capture_output=True)
    answer = netstate.look(netstate.enter(elsewhere), "iptables", ["198.18.0.1"]).conntrack
    assert answer.problem is None
    found = [parse(line) for line in answer.text.splitlines()]
    assert {entry.sport for entry in found if entry} == set(range(41_000, 41_060))
    assert all(entry is not None and entry.id is not None for entry in found)


def test_its_programs_make_way_for_what_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nsenter"
    program.write_text("#!/bin/sh\nnice\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    seen = netstate.look(netstate.enter(tmp_path / "pid"), "iptables", [])
    assert seen.rules.text == f"{min(mine + netstate.NICENESS, 19)}\n"


@pytest.mark.parametrize(("shown", "problem"), [("1", None), ("2", "1 entries read of 2")])
def test_a_listing_that_lacks_entries_is_no_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, problem: str | None
) -> None:
    """A program in conntrack's place, that shows one entry and says how many it showed."""
    program = tmp_path / "nsenter"
    program.write_text(
        "#!/bin/sh\necho 'udp 17 29 src=a dst=b'\n"
        f"echo 'conntrack v1: {shown} flow entries have been shown.' >&2\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    answer = netstate.look(netstate.enter(tmp_path / "pid"), "iptables", ["198.18.0.1"]).conntrack
    assert answer.text == "udp 17 29 src=a dst=b\n"
    if problem is None:
        assert answer.problem is None
    else:
        assert answer.problem is not None
        assert problem in answer.problem
        assert "incomplete" in answer.problem


def test_a_table_that_is_not_there(elsewhere: Path) -> None:
    seen = netstate.look(netstate.enter(elsewhere), "nftables", ["198.18.0.1"])
    assert seen.rules.problem is not None
    assert "nft list table ip kube-proxy" in seen.rules.problem
    assert "No such file" in seen.rules.problem
    assert seen.conntrack.problem is None


def test_a_mode_whose_rules_are_not_read(elsewhere: Path) -> None:
    seen = netstate.look(netstate.enter(elsewhere), "ipvs", ["198.18.0.1"])
    assert seen.rules.problem is not None
    assert "ipvs" in seen.rules.problem


def test_no_address_is_no_listing(elsewhere: Path) -> None:
    """An empty list of entries would say that there are none."""
    assert netstate.look(netstate.enter(elsewhere), "iptables", []).conntrack.problem is not None


@pytest.mark.parametrize("said", ["", "4194999\n"])
def test_a_node_that_is_gone(tmp_path: Path, said: str) -> None:
    pid = tmp_path / "node.pid"
    if said:
        pid.write_text(said)
    seen = netstate.look(netstate.enter(pid), "iptables", ["198.18.0.1"])
    assert seen.conntrack.problem is not None
    assert seen.rules.problem is not None


def test_programs_are_bounded_in_time_and_size(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(netstate, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(netstate, "MAX_BYTES", 1000)
    monkeypatch.setitem(netstate.RULES, "slow", ("sleep", "30"))
    monkeypatch.setitem(netstate.RULES, "endless", ("yes",))
    began = time.monotonic()
    slow = netstate.look(netstate.enter(elsewhere), "slow", ["198.18.0.1"]).rules
    endless = netstate.look(netstate.enter(elsewhere), "endless", ["198.18.0.1"]).rules
    assert time.monotonic() - began < 20
    assert slow.problem is not None
    assert "no end within 0.3 s" in slow.problem
    assert endless.problem is not None
    assert "more than 1000 bytes" in endless.problem
    assert len(endless.text) == 1000


def test_a_program_that_is_missing(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    seen = netstate.look(netstate.enter(elsewhere), "iptables", ["198.18.0.1"])
    assert seen.conntrack.problem is not None
    assert "cannot be run" in seen.conntrack.problem
