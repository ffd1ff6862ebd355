"""The page about options says what options.py declares, and that says what holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import pytest

from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.options import OPTIONS, Option
from tests.docs.conftest import DOCS, Load

# Where a scenario has the value of an option; what has no words there is not among them.
OF_SCENARIO: dict[str, Callable[[Scenario], object]] = {
    "kube-version": lambda s: s.cluster.kube_version or "1.37",
    "proxy-mode": lambda s: str(s.cluster.proxy_mode or "iptables"),
    "grace-period": lambda s: s.app.grace_period_s,
    "drain": lambda s: s.app.drain_ns,
    "readiness-on-drain": lambda s: s.app.readiness_on_drain,
    "tcp-flows": lambda s: s.flows.tcp,
    "udp-flows": lambda s: s.flows.udp,
    "tcp-rate": lambda s: s.flows.tcp_rate_hz,
    "udp-rate": lambda s: s.flows.udp_rate_hz,
    "probe-interval": lambda s: s.flows.probe_interval_ns,
    "udp-probe-interval": lambda s: s.flows.udp_probe_interval_ns or 0,
    "settle": lambda s: s.settle_ns,
}


@pytest.fixture(scope="module")
def generator(load: Load) -> ModuleType:
    return load("make_options")


def test_the_page_is_generated_from_todays_options(generator: ModuleType) -> None:
    written = (DOCS / "options.md").read_text(encoding="utf-8")
    assert written == generator.page(), "docs/options.md is out of date: make docs"


def test_each_option_has_one_row(generator: ModuleType) -> None:
    rows = re.findall(r"^\| `--dw-([a-z-]+)` \|", generator.page(), re.MULTILINE)
    assert sorted(rows) == sorted(option.name for option in OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_each_cell_says_something(generator: ModuleType, option: Option) -> None:
    assert generator.meaning(option)
    assert generator.accepts(option)
    assert generator.default(option)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_words_that_are_listed_as_accepted_are(generator: ModuleType, option: Option) -> None:
    for word in re.findall(r"`([\w.-]+)`", generator.accepts(option)):
        option.parse(word)


@pytest.mark.parametrize("name", OF_SCENARIO)
def test_what_holds_without_it_is_what_a_scenario_has(generator: ModuleType, name: str) -> None:
    (option,) = (each for each in OPTIONS if each.name == name)
    told = generator.DEFAULT.search(option.help)
    assert told, f"--dw-{name}: its help does not say what holds where nobody says anything"
    assert option.parse(told[2]) == OF_SCENARIO[name](Scenario())
