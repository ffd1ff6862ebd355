"""``drainwatch attach``: what is refused before anything is reached, and what is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch import attach_command, cli, once
from pytest_drainwatch.core.scenario import Access, Http, Scenario, Tcp, Trigger, Udp, Workload
from pytest_drainwatch.output import DONE, USAGE
from pytest_drainwatch.settings import Settings

SECRET = "hunter2"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Settings, Scenario]]:
    """What would be measured."""
    found: list[tuple[Settings, Scenario]] = []

    def measure(settings: Settings, asked: Scenario) -> int:
        found.append((settings, asked))
        return DONE

    monkeypatch.setattr(once, "measure", measure)
    return found


@pytest.mark.parametrize(
    ("typed", "workload"),
    [
        (["deployment/web"], Workload.attach("deployment/web")),
        (
            ["app=web", "-n", "shop", "--port", "6379", "--send", r"PING\r\n", "--expect", "PONG"],
            Workload.attach(
                "app=web", namespace="shop", port=6379,
                protocol=Tcp(send=b"PING\r\n", expect="PONG"),
            ),
        ),
        (
            ["sts/dns", "--port", "dns", "--protocol", "udp", "--send", r"\x00\x01"],
            Workload.attach("sts/dns", port="dns", protocol=Udp(send=b"\0\1")),
        ),
        (
            ["ds/edge", "--protocol", "http", "--path", "/x", "--header", f"X-Token: {SECRET}",
             "--keepalive", "3", "--in-flight", "1", "--in-flight-path", "/slow",
             "--in-flight-lasts", "2s", "--identity-header", "X-Pod", "--service", "edge"],
            Workload.attach(
                "ds/edge",
                service="edge",
                protocol=Http(
                    path="/x", headers={"X-Token": SECRET}, keepalive=3, in_flight=1,
                    in_flight_path="/slow", in_flight_ns=2_000_000_000, identity_header="X-Pod",
                ),
            ),
        ),
    ],
)  # fmt: skip
def test_what_is_typed_is_asked(
    typed: list[str], workload: Workload, measured: list[tuple[Settings, Scenario]]
) -> None:
    assert cli.main(["attach", *typed, "--trigger", "evict", "--settle", "3s"]) == DONE
    ((settings, asked),) = measured
    assert asked.workload == workload
    assert asked.trigger is Trigger.EVICT
    assert (asked.settle_ns, asked.service.access) == (3_000_000_000, Access.NODE_PORT)
    assert settings.namespace is None, "--namespace is the workload's, not one to deploy into"


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        (["web"], "expected deployment/NAME"),
        (["deployment/web", "--protocol", "udp"], "udp has nothing to send"),
        (["deployment/web", "--protocol", "http", "--header", SECRET], "a header has no colon"),
        (["deployment/web", "--protocol", "http", "--in-flight", "1"], "in_flight_path"),
        (["deployment/web", "--send", r"\x"], "escapes"),
        (["deployment/web", "--expect", "x"], "sends nothing"),
        (["deployment/web", "--targets", "0"], "targets is 0"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(
    typed: list[str],
    why: str,
    measured: list[tuple[Settings, Scenario]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["attach", *typed]) == USAGE
    said = capsys.readouterr().err
    assert why in said
    assert "--dw-" not in said
    assert SECRET not in said
    assert not measured


def test_a_url_in_place_of_a_protocol_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["attach", "deployment/web", "--protocol", f"http:/x?token={SECRET}"])
    said = capsys.readouterr().err
    assert "argument --protocol: expected one of: tcp, udp, http" in said
    assert SECRET not in said


def test_the_environment_is_about_the_cluster_and_never_about_whom_to_attach_to(
    measured: list[tuple[Settings, Scenario]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DW_ATTACH", "deployment/other")
    monkeypatch.setenv("DW_CLUSTER", "existing")
    assert cli.main(["attach", "deployment/web"]) == DONE
    ((settings, asked),) = measured
    assert asked.workload == Workload.attach("deployment/web")
    assert settings.cluster == "existing"


def test_a_cluster_that_is_not_there_is_a_void_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = ["attach", "deployment/web", "--kubeconfig", str(tmp_path / "none")]
    assert cli.main([*typed, "--out", str(tmp_path)]) == 3
    assert "there is no kubeconfig" in capsys.readouterr().err


def test_what_is_about_the_probe_is_no_option_here() -> None:
    parser: Any = cli.build_parser()
    its_own = {"namespace", "path"}  # which mean something else here
    typed = [f"--dw-{name}" for name in attach_command.NOT_HERE]
    for flag in [*typed, *(f"--{name}" for name in attach_command.NOT_HERE - its_own)]:
        with pytest.raises(SystemExit):
            parser.parse_args(["attach", "deployment/web", f"{flag}=1"])
