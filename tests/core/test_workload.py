"""Which workload is meant, what is said to it, and what of that may stand in a report."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.plan import dense_stretches
from pytest_drainwatch.core.scenario import (
    App,
    Behavior,
    Controller,
    Flows,
    Http,
    Scenario,
    ScenarioError,
    Tcp,
    Trigger,
    Udp,
    Workload,
    differences,
)
from pytest_drainwatch.core.scenario.workload import PROBE_ONLY
from pytest_drainwatch.options import OptionError
from pytest_drainwatch.settings import Settings, resolve

SECRET = "hunter2"


def attached(what: str = "deployment/web", **about: Any) -> Scenario:
    return Scenario(workload=Workload.attach(what, **about), trigger=Trigger.ROLLOUT)


@pytest.mark.parametrize(
    ("what", "kind", "name"),
    [
        ("deployment/web", Controller.DEPLOYMENT, "web"),
        ("Deploy/web", Controller.DEPLOYMENT, "web"),
        ("sts/db", Controller.STATEFUL_SET, "db"),
        ("daemonset/agent", Controller.DAEMON_SET, "agent"),
        ("app=web,app.kubernetes.io/part-of=shop", None, ""),
    ],
)
def test_whom_a_text_means(what: str, kind: Controller | None, name: str) -> None:
    workload = Workload.attach(what)
    workload.check()
    assert (workload.kind, workload.name) == (kind, name)
    assert workload.labels == ("" if kind else what)


@pytest.mark.parametrize(
    ("what", "about", "why"),
    [
        ("web", {}, "workload is 'web', expected deployment/NAME"),
        ("pod/web", {}, "expected deployment/NAME"),
        ("deployment/", {}, "expected deployment/NAME"),
        ("deployment/Web", {}, "expected deployment/NAME"),
        ("app=we b", {}, "expected deployment/NAME"),
        ("", {}, "expected deployment/NAME"),
        ("deployment/web", {"namespace": "A"}, "namespace is 'A'"),
        ("deployment/web", {"port": 0}, "port is 0"),
        ("deployment/web", {"port": 1.5}, "port is 1.5"),
        ("deployment/web", {"protocol": "quic"}, "protocol is 'quic', expected one of: tcp"),
        ("deployment/web", {"protocol": "tcp:/x"}, "protocol is 'tcp…', expected one of"),
        ("deployment/web", {"protocol": "udp"}, "udp has nothing to send"),
        ("deployment/web", {"protocol": Tcp(expect="x")}, "expects an answer and sends nothing"),
        ("deployment/web", {"protocol": Tcp(send="x", expect="(")}, "no regular expression"),
        ("deployment/web", {"protocol": Tcp(send="x", expect="y*")}, "matches what is empty"),
        ("deployment/web", {"protocol": Tcp(send="")}, "send has 0 bytes"),
        ("deployment/web", {"protocol": Tcp(send="x" * 5000)}, "send has 5000 bytes"),
        ("deployment/web", {"protocol": Http(path="x")}, "http path"),
    ],
)
def test_what_cannot_be_meant(what: str, about: dict[str, Any], why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        attached(what, **about)


@pytest.mark.parametrize(
    ("protocol", "tcp", "udp", "tried"),
    [
        (Tcp(), 10, 0, True),
        (Udp(send="x"), 0, 10, False),
        (Http(), 0, 0, False),
    ],
)
def test_a_scenario_has_the_flows_of_its_protocol(
    protocol: Tcp | Udp | Http, tcp: int, udp: int, tried: bool
) -> None:
    flows = attached(protocol=protocol).flows
    assert (flows.tcp, flows.udp, flows.udp_one_way) == (tcp, udp, 0)
    assert (flows.probe_interval_ns is not None) is tried


def test_without_flows_of_its_protocol_there_is_nothing_to_measure() -> None:
    with pytest.raises(ScenarioError, match="at least one flow"):
        Scenario(workload=Workload.attach("deployment/web"), flows=Flows(tcp=0, udp=5))


def test_a_report_says_whom_and_how_and_no_secret() -> None:
    protocols = (
        Tcp(send=SECRET, expect=SECRET),
        Udp(send=SECRET),
        Http(path=f"/x?token={SECRET}", headers={"Authorization": SECRET}),
    )
    for protocol in protocols:
        scenario = attached(namespace="shop", port="http", protocol=protocol)
        config = scenario.config()
        assert config["workload"] == "deployment/web"
        assert {config[name] for name in PROBE_ONLY} == {None}
        assert config["attached"]["namespace"] == "shop"  # type: ignore[index]
        assert SECRET not in str(config)
        if not isinstance(protocol, Http):  # whose path a test's output may show
            assert SECRET not in repr(scenario)


def test_it_is_named_after_its_workload() -> None:
    assert attached().id == "web-tcp-rollout"
    assert attached("app=web,tier=front").id == "web-front-tcp-rollout"


def test_of_an_unknown_end_everything_until_the_latest_kill_is_looked_at_closely() -> None:
    known = App(grace_period_s=10, behavior=Behavior.EXIT_NOW)
    scenario = Scenario(app=known, workload=Workload.attach("deployment/web"))
    (whole,) = dense_stretches(scenario)
    assert whole.lo < 0
    assert whole.hi > 12 * NS_PER_S
    assert len(dense_stretches(Scenario(app=known))) > 1


def test_a_workload_is_told_from_the_probe() -> None:
    assert "workload" in differences(attached(), Scenario(trigger=Trigger.ROLLOUT))


def settled(**given: str) -> Settings:
    told = {name.replace("_", "-"): value for name, value in given.items()}
    return resolve({"command line": lambda option: told.get(option.name)})


def test_options_put_a_workload_over_the_scenarios_of_a_run() -> None:
    settings = settled(
        attach="deployment/web",
        attach_namespace="shop",
        attach_port="6379",
        attach_send=r"PING\r\n",
        attach_expect=r"\+PONG",
    )
    asked = settings.apply(Scenario(trigger=Trigger.EVICT))
    assert asked.workload == Workload.attach(
        "deployment/web",
        namespace="shop",
        port=6379,
        protocol=Tcp(send=b"PING\r\n", expect=r"\+PONG"),
    )
    assert asked.trigger is Trigger.EVICT
    assert settled(attach="sts/x", attach_protocol="http:/healthz").apply(
        Scenario()
    ).workload == Workload.attach("sts/x", protocol=Http(path="/healthz"))
    assert SECRET not in repr(settled(attach="deployment/web", attach_send=SECRET))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"attach": "web"}, "expected deployment/NAME"),
        ({"attach_port": "80"}, "--dw-attach-port is about a workload"),
        ({"attach": "deployment/web", "drain": "5s"}, "--dw-drain is about the probe"),
        ({"attach": "deployment/web", "attach_send": r"\x"}, "escapes"),
        ({"attach": "deployment/web", "attach_protocol": "http", "attach_send": "x"}, "no send"),
    ],
)
def test_options_that_cannot_be_together(given: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        settled(**given)
