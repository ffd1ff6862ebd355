"""Options: what they accept, where a value came from, what overrides what."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S
from pytest_drainwatch.core.scenario import App, ClusterNeeds, Flows, ProxyMode, Scenario
from pytest_drainwatch.option_values import fields, parse_duration_ns
from pytest_drainwatch.options import Option, OptionError
from pytest_drainwatch.settings import Settings, idle, resolve


def given(**values: str) -> Settings:
    return resolve({"command line": lambda option: values.get(option.name.replace("-", "_"))})


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("25", 25 * NS_PER_S),
        ("25s", 25 * NS_PER_S),
        ("500ms", NS_PER_S // 2),
        ("1.5", 1_500_000_000),
        ("2m", 120 * NS_PER_S),
        ("0.000001ms", 1),
        ("0.0", 0),
        ("0ms", 0),
    ],
)
def test_durations(text: str, ns: int) -> None:
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("repeat", "0"),
        ("keep_runs", "0"),
        ("fresh_cluster", "always"),
        ("fail_on", "improvement"),
        ("fail_on", "never,regression"),
        ("drain", "-5"),
        ("drain", "5 hours"),
        ("drain", "nan"),
        ("grace_period", "1.5"),
        ("grace_period", "99999"),
        ("tcp_flows", "ten"),
        ("tcp_flows", "-1"),
        ("udp_flows", "1e9"),
        ("udp_rate", "0"),
        ("cluster", "minikube"),
        ("kube_version", "1.12"),
        ("proxy_mode", "userspace"),
        ("min_sync_period", "0"),
        ("min_sync_period", "0.5ms"),
        ("min_sync_period", "2000m"),
        ("probe_interval", "10us"),
        ("probe_interval", "0.0000001ms"),  # not 0, which means none
        ("udp_probe_interval", "0.00000000049"),
        ("settle", "0." + 400 * "0" + "1"),
        ("drain", "9" * 400),
        ("min_sync_period", "0.0000001ms"),
        ("probe_interval", "500m"),
        ("udp_probe_interval", "-1"),
        ("keep", "sometimes"),
        ("settle", "1e3"),
        ("observe_timeout", "1ms"),
    ],
)
def test_a_bad_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=name.replace("_", ".")):
        given(**{name: value})


def test_the_message_names_option_value_origin_and_what_is_accepted() -> None:
    with pytest.raises(OptionError) as caught:
        given(keep="sometimes")
    assert str(caught.value) == (
        "--dw-keep=sometimes (command line): expected one of: never, on-failure, always"
    )


def test_a_request_that_cannot_be_read_is_not_shown() -> None:
    with pytest.raises(OptionError, match="--dw-attach-send") as caught:
        given(attach="deployment/web", attach_send=r"AUTH hunter2\x4")
    assert "hunter2" not in str(caught.value)
    assert "escapes" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https:/x?token=hunter2", "http//me:hunter2@there/", "tcp:hunter2", "/x?hunter2"]
)
def test_of_a_protocol_that_is_none_no_more_than_its_first_word_is_shown(url: str) -> None:
    with pytest.raises(OptionError, match="expected one of: tcp, udp, http") as caught:
        given(attach="deployment/web", attach_protocol=url)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(OptionError, match="'grpc'"):
        given(attach="deployment/web", attach_protocol="grpc")
    assert "hunter2" not in repr(given(attach="app=x", attach_protocol="http:/x?t=hunter2"))


def test_no_flows_at_all_is_refused() -> None:
    with pytest.raises(OptionError, match="at least one flow"):
        given(tcp_flows="0", udp_flows="0")


def test_a_cluster_of_ones_own_excludes_a_kubeconfig() -> None:
    with pytest.raises(OptionError, match="--dw-cluster=embedded"):
        given(cluster="embedded", kubeconfig="/tmp/config")
    assert given(cluster="existing", kubeconfig="/tmp/config").kubeconfig == Path("/tmp/config")


def test_the_command_line_wins_over_ini() -> None:
    def command_line(option: Option) -> object:
        return {"drain": "7s"}.get(option.name)

    def ini(option: Option) -> object:
        return {"drain": "9s", "settle": "3"}.get(option.name, "")

    settings = resolve({"command line": command_line, "ini": ini})
    assert (settings.drain, settings.settle) == (7 * NS_PER_S, 3 * NS_PER_S)
    assert settings.origins == {"drain": "command line", "settle": "ini"}


def test_a_kubeconfig_typed_now_wins_over_a_cluster_exported_earlier() -> None:
    def command_line(option: Option) -> object:
        return {"kubeconfig": "/tmp/config"}.get(option.name)

    def environment(option: Option) -> object:
        return {"cluster": "embedded"}.get(option.name)

    settings = resolve({"command line": command_line, "environment": environment})
    assert settings.cluster == "existing"
    with pytest.raises(OptionError, match="makes a cluster of its own"):
        resolve({"environment": environment, "command line": command_line})


def test_given_values_override_a_scenario_and_others_do_not() -> None:
    short = Scenario(app=App(drain_ns=5 * NS_PER_S, grace_period_s=10))
    assert given().apply(short) == short
    changed = given(grace_period="30", tcp_flows="3").apply(short)
    assert (changed.app.grace_period_s, changed.app.drain_ns) == (30, 5 * NS_PER_S)
    assert changed.flows.tcp == 3


def test_needs_of_a_scenario_hold_until_an_option_overrides_them() -> None:
    old = Scenario(cluster=ClusterNeeds(kube_version="1.34", min_sync_period_ms=100))
    assert given().apply(old).cluster == old.cluster
    assert given(proxy_mode="nftables").apply(old).cluster == ClusterNeeds(
        kube_version="1.34", proxy_mode=ProxyMode.NFTABLES, min_sync_period_ms=100
    )
    changed = given(kube_version="1.37", min_sync_period="10s").apply(old).cluster
    assert changed == ClusterNeeds(kube_version="1.37", min_sync_period_ms=10_000)


def test_ipvs_may_have_a_period_of_0() -> None:
    asked = given(proxy_mode="ipvs", min_sync_period="0").apply(Scenario())
    assert asked.cluster.min_sync_period_ms == 0


def test_an_interval_of_0_turns_a_prober_off_and_none_given_leaves_it() -> None:
    both = Scenario(flows=Flows(probe_interval_ns=NS_PER_MS, udp_probe_interval_ns=NS_PER_S))
    assert given().apply(both) == both
    off = given(probe_interval="0", udp_probe_interval="0ms").apply(both).flows
    assert (off.probe_interval_ns, off.udp_probe_interval_ns) == (None, None)
    sparse = given(probe_sparse_every="7").apply(both).flows
    assert (sparse.probe_sparse_every, both.flows.probe_sparse_every) == (7, None)
    slower = given(probe_interval="20ms").apply(both).flows
    assert (slower.probe_interval_ns, slower.udp_probe_interval_ns) == (20 * NS_PER_MS, NS_PER_S)


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("never", set()),
        ("regression", {"regression"}),
        ("regression, insufficient-evidence", {"regression", "insufficient-evidence"}),
    ],
)
def test_which_verdicts_fail_a_run(text: str, verdicts: set[str]) -> None:
    assert given(fail_on=text, baseline="before").fail_on == verdicts
    assert given().fail_on == {"regression"}


@pytest.mark.parametrize("name", ["fail_on", "across"])
def test_what_is_about_a_baseline_needs_one(name: str) -> None:
    asked = {name: "regression"}
    with pytest.raises(OptionError, match=r"none was given; expected --dw-baseline=DIR beside it"):
        given(**asked)
    in_an_ini = resolve({"ini": lambda option: asked.get(option.name.replace("-", "_"))})
    assert idle(in_an_ini) == [name.replace("_", "-")]
    assert idle(given(baseline="before", **asked)) == []


@pytest.mark.parametrize("text", ["", ",", "a,,b", "a b", "--dw/x"])
def test_conditions_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected conditions with commas"):
        fields(text)


def test_conditions_that_may_differ() -> None:
    asked = given(across="environment.kubernetes_version, cpus", baseline="before")
    assert asked.across == {"environment.kubernetes_version", "cpus"}


@pytest.mark.parametrize("where", [{"cluster": "existing"}, {"kubeconfig": "/some/where"}])
def test_a_cluster_that_is_not_ours_is_never_started_anew(where: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="--dw-fresh-cluster=trial asks for new clusters"):
        given(fresh_cluster="trial", **where)
    assert given(fresh_cluster="session", **where).fresh_cluster == "session"
    assert given(fresh_cluster="trial", cluster="embedded").fresh_cluster == "trial"
