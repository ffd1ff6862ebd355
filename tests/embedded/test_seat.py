"""Addresses for a seat come from host-local's own store, and nobody's is taken."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.embedded import machine, seat

RANGE = IPv4Network("10.244.0.0/28")
OWN = IPv4Address("10.244.0.2")
SANDBOX = b"0123abcd\r\neth0"  # what host-local writes, its own line end included


def store(folder: Path, taken: set[IPv4Address]) -> Path:
    for address in taken:
        (folder / str(address)).write_bytes(b"another\r\neth0")
    (folder / str(OWN)).write_bytes(SANDBOX)
    return folder


@given(st.sets(st.sampled_from([a for a in RANGE.hosts() if a != OWN])))
def test_the_highest_free_addresses_are_reserved_for_the_pods_sandbox(
    taken: set[IPv4Address],
) -> None:
    free = [address for address in RANGE.hosts() if address not in {*taken, OWN}]
    with TemporaryDirectory() as folder:
        path = store(Path(folder), taken)
        if len(free) < seat.FURTHER:
            with pytest.raises(ClusterError, match="free addresses"):
                seat._reserve(path, OWN, RANGE)
        else:
            found = seat._reserve(path, OWN, RANGE)
            assert found == free[: -seat.FURTHER - 1 : -1]
            assert {(path / str(address)).read_bytes() for address in found} == {SANDBOX}
        for address in taken:
            assert (path / str(address)).read_bytes() == b"another\r\neth0"


def test_a_store_that_does_not_know_the_pod_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"host-local, with a file for 10\.244\.0\.2"):
        seat._reserve(tmp_path, OWN, RANGE)


def test_a_pod_that_does_not_run_has_no_seat() -> None:
    if not machine.filters_bridges():
        pytest.skip("this machine has no br_netfilter, which is looked at first")
    with pytest.raises(ClusterError, match="no process of pod no-such-uid runs in cluster c"):
        seat.take("no-such-uid", nodes={RANGE: Path("pid")}, cluster="c")


def test_where_replies_bypass_the_packet_filter_there_is_no_seat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "filters_bridges", lambda: False)
    with pytest.raises(ClusterError, match="modprobe br_netfilter"):
        seat.take("any", nodes={RANGE: Path("pid")}, cluster="c")
