"""The page of words says what the sample run says, and knows all outcomes and mechanisms."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from pytest_drainwatch import report
from pytest_drainwatch.core.document import TrialReport
from pytest_drainwatch.core.flow.classify import VERDICTS, Mechanism, Outcome
from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.pod.ending import EndedBy
from pytest_drainwatch.render.text import duration
from tests.docs.conftest import DOCS, Load

TEXT = (DOCS / "concepts.md").read_text(encoding="utf-8")
PAGE = " ".join(TEXT.split())


@pytest.fixture(scope="module")
def generator(load: Load) -> ModuleType:
    return load("make_termination")


@pytest.fixture(scope="module")
def sample(generator: ModuleType) -> TrialReport:
    return report.loads(generator.REPORT.read_text(encoding="utf-8")).trial


def test_the_picture_is_drawn_from_the_sample(generator: ModuleType) -> None:
    drawn = (DOCS / "termination.svg").read_text(encoding="utf-8")
    assert drawn == generator.page(), "docs/termination.svg is out of date: make docs"


def test_the_windows_are_those_of_the_sample(sample: TrialReport) -> None:
    (window,) = sample.windows
    (fallback,) = window.fallback_routable or ()
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| ([^|]+) \|$", TEXT, re.MULTILINE))
    assert rows["advertised"] == f"0 to {duration(window.advertised.closes_ns)}"
    assert rows["ready_routable"] == f"0 to {duration(window.ready_routable.closes_ns)}"
    begins, ends = duration(fallback.opens_ns), duration(fallback.closes_ns)
    assert rows["fallback_routable"] == f"from {begins} to {ends}"
    assert rows["dead_endpoint"].startswith(f"{duration(window.dead_endpoint.lasts_ns)} long")
    (tried,) = sample.new_connections
    failing = tried.observed_failing
    assert failing
    begun = " to ".join(f"{at / NS_PER_S:.2f}" for at in failing.begun_ns)
    assert rows["observed_failing"] == f"{begun} s, for {duration(failing.lasts_ns)}"
    assert f"refused: {failing.failures} of them, from {begun} s" in PAGE
    met = window.advertised.met
    assert met
    assert f"`{met.failed}/{met.attempts} failed`" in PAGE


def test_the_flows_are_those_of_the_sample(sample: TrialReport) -> None:
    held = [flow.continuity for flow in sample.flows if flow.proto == "udp"]
    sent = [each.sent for each in held if each and each.sent is not None and each.lost == 0]
    assert len(sent) == 10
    assert f"of {sum(sent):,} datagrams none was unanswered" in PAGE
    assert sample.summary.udp.mechanisms == {Mechanism.REHOMED: 10}
    assert sample.summary.tcp.drained == 10
    (first,) = (flow for flow in sample.flows if flow.id == "tcp-0001")
    assert first.terminal_ns
    begins, ends = first.terminal_ns
    # Outward: what is shown holds what is meant.
    lo, hi = (f"{us / 1_000_000:.6f} s" for us in (begins // 1_000, -(-ends // 1_000)))
    assert f"The FIN of `tcp-0001` above was read at {hi}" in PAGE
    assert f"no earlier than {lo}" in PAGE


def test_each_outcome_has_its_mechanisms() -> None:
    verdicts = {*VERDICTS.values(), (Outcome.READ_TIMEOUT, Mechanism.SILENCE)}
    rows = re.findall(r"^\| `([a-z-]+)` \| .*? \| (.*?) \|$", TEXT, re.MULTILINE)
    told = {outcome: set(re.findall(r"`([a-z-]+)`", by)) for outcome, by in rows}
    for outcome in Outcome:
        assert told[outcome] == {by for each, by in verdicts if each is outcome}


def test_the_ends_of_containers_that_it_names_are_some() -> None:
    named = re.search(r"\(`ended_by`: (.*?)…\)", PAGE)
    assert named
    assert set(re.findall(r"`([a-z-]+)`", named[1])) <= set(EndedBy)
