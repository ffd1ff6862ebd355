"""Which cluster is chosen, and what is said when none can be had."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_drainwatch.cluster import ClusterError, ClusterSettings, NotOnThisMachine, kind, opening
from pytest_drainwatch.cluster.embedded import machine
from pytest_drainwatch.cluster.opening import choose_provider, open_cluster
from pytest_drainwatch.cluster.possible import check_settings


@pytest.fixture(autouse=True)
def _no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_docker_answers", lambda: False)


def as_user(number: int, monkeypatch: pytest.MonkeyPatch, platform: str = "linux") -> None:
    monkeypatch.setattr("os.geteuid", lambda: number)
    monkeypatch.setattr(sys, "platform", platform)


@pytest.mark.parametrize("given", [{"kubeconfig": Path("k")}, {"context": "c"}])
def test_given_kubeconfig_means_existing(given: dict[str, object]) -> None:
    provider, why = choose_provider("auto", **given)  # type: ignore[arg-type]
    assert (provider, why) == ("existing", "a kubeconfig or context was given")


def test_root_on_linux_means_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(0, monkeypatch)
    assert choose_provider()[0] == "embedded"


def test_docker_kind_and_pytest_kind_mean_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(0, monkeypatch)
    monkeypatch.setattr(opening, "_docker_answers", lambda: True)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(kind, "has_pytest_kind", lambda: True)
    assert choose_provider()[0] == "kind"
    monkeypatch.setattr(kind, "has_pytest_kind", lambda: False)
    assert choose_provider() == ("embedded", "root on Linux, no pytest-kind")


def test_asked_for_is_taken_without_a_look() -> None:
    assert choose_provider("kind") == ("kind", "asked for")


@pytest.mark.parametrize(("user", "platform"), [(1000, "linux"), (0, "darwin")])
def test_no_way_names_the_three_ways_out(
    user: int, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_user(user, monkeypatch, platform)
    with pytest.raises(ClusterError, match=r"embedded.*--dw-cluster=kind.*--dw-cluster=existing"):
        choose_provider()


def test_unknown_provider_lists_the_known() -> None:
    with pytest.raises(ClusterError, match="'minikube': expected auto, embedded, kind, existing"):
        choose_provider("minikube")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ClusterSettings(provider="minikube"), "expected embedded, kind, existing"),
        (ClusterSettings(proxy_mode="userspace"), "expected one of iptables, nftables, ipvs"),
        (ClusterSettings(min_sync_period_ms=-1), "expected 0 or more"),
        (ClusterSettings(min_sync_period_ms=0), "in mode iptables reads as its default of 1000"),
        (ClusterSettings(proxy_mode="nftables", min_sync_period_ms=0), "expected 1 or more"),
        (ClusterSettings(nodes=0), "0 nodes are asked for: expected 1 or more"),
        (ClusterSettings(nodes=6), r"has 5 at most: expected 1 to 5 \(--dw-nodes\)"),
        (ClusterSettings(provider="existing", kubeconfig=Path("/none")), "no kubeconfig at /none"),
    ],
)
def test_bad_settings_are_refused_before_anything_starts(
    settings: ClusterSettings, message: str
) -> None:
    with pytest.raises(ClusterError, match=message):
        open_cluster(settings, why="a test", log=print)


@pytest.fixture
def ipvs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What tells that the kernel has ip_vs; the test makes it, or not."""
    monkeypatch.setattr(machine, "_IPVS", tmp_path / "ip_vs")
    monkeypatch.setattr(machine, "find_program", lambda name: f"/sbin/{name}")
    return tmp_path / "ip_vs"


def test_ipvs_where_the_kernel_lacks_it_is_not_on_this_machine(ipvs: Path) -> None:
    wanted = ClusterSettings(proxy_mode="ipvs", min_sync_period_ms=0)
    said = f"no {ipvs}.*modprobe ip_vs.*off by default in Kubernetes 1.40, removed in 1.43"
    with pytest.raises(NotOnThisMachine, match=said):
        open_cluster(wanted, why="a test", log=print)
    ipvs.touch()
    check_settings(wanted)


def test_ipvs_needs_its_program_too(ipvs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ipvs.touch()
    assert machine.lacks_ipvs() is None
    monkeypatch.setattr(machine, "find_program", lambda name: None)
    assert "ipset is not on PATH" in (machine.lacks_ipvs() or "")


def test_what_somebody_elses_kernel_has_is_not_looked_for_here(ipvs: Path) -> None:
    check_settings(ClusterSettings(provider="existing", proxy_mode="ipvs"))


@pytest.mark.parametrize("text", ["", "{}", "apiVersion: v1\nkind: Config\n", "\x00"])
def test_broken_kubeconfig_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ClusterError, match=f"{file} cannot be used"):
        open_cluster(ClusterSettings(provider="existing", kubeconfig=file), why="", log=print)


def test_existing_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        '{"apiVersion": "v1", "kind": "Config", "current-context": "far", "users": [],'
        ' "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],'
        ' "contexts": [{"name": "far", "context": {"cluster": "c", "user": ""}}]}'
    )
    with pytest.raises(ClusterError, match="can't be asked for its nodes"):
        open_cluster(ClusterSettings(provider="existing", kubeconfig=file), why="", log=print)


@pytest.mark.parametrize(
    ("user", "platform", "message"),
    [
        (1000, "linux", "needs root, this is user id 1000.*--dw-cluster=kind.*existing"),
        (0, "darwin", "needs Linux, this is darwin.*--dw-cluster=kind.*existing"),
    ],
)
def test_embedded_says_what_it_needs(
    user: int, platform: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_user(user, monkeypatch, platform)
    with pytest.raises(ClusterError, match=message):
        open_cluster(ClusterSettings(), why="a test", log=print)


def test_lacking_capabilities_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(0, monkeypatch)
    monkeypatch.setattr(machine, "_has_capability", lambda bit: bit != 21)
    with pytest.raises(ClusterError, match=r"lacks CAP_SYS_ADMIN .*--privileged"):
        machine.check_rights()


def test_missing_programs_lead_to_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "find_program", lambda name: None if name == "ctr" else name)
    monkeypatch.setattr(machine, "_find_cni", lambda: None)
    with pytest.raises(ClusterError, match=r"missing: ctr, CNI plugins.*drainwatch setup"):
        machine.check_programs()
    assert machine.missing_packages() == ["containerd", "containernetworking-plugins"]


def test_settings_are_keys() -> None:
    assert len({ClusterSettings(), ClusterSettings(), ClusterSettings(proxy_mode="nftables")}) == 2


def test_seam_is_light() -> None:
    import subprocess

    code = (
        "import sys, pytest_drainwatch.cluster, pytest_drainwatch.cluster.commands;"
        "print([m for m in ('kubernetes', 'cryptography', 'ssl', 'tarfile') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
