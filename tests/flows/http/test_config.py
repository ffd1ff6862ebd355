"""What may be asked over HTTP, what is refused, and that no secret is in what is said."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from pytest_drainwatch.core.interval import NS_PER_S
from pytest_drainwatch.core.scenario import Scenario, Workload
from pytest_drainwatch.core.scenario.http import Http
from pytest_drainwatch.core.scenario.values import ScenarioError
from pytest_drainwatch.flows.config import AgentConfig, parse_config, parse_trigger
from pytest_drainwatch.flows.fields import ConfigError
from pytest_drainwatch.flows.http.config import HttpConfig, parse_http

SECRET = "s3cret"


def test_a_scenario_reaches_the_agent_as_it_is(tmp_path: Path) -> None:
    http = Http(
        path="/healthz?x=1",
        headers={"Authorization": SECRET},
        keepalive=3,
        in_flight=2,
        in_flight_path="/slow",
        identity_header="X-Pod",
    )
    http.check()
    config = HttpConfig.of(http, address="192.0.2.1", port=8080)
    told = AgentConfig(record=str(tmp_path / "part"), http=config)
    line = json.dumps({k: v for k, v in asdict(told).items() if v is not None})
    assert parse_config(line) == told
    assert told.open_attempts >= config.lanes
    assert told.sends_per_s(dense=True) == 60


@pytest.mark.parametrize(
    ("odd", "word"),
    [
        ({"path": "healthz"}, "path"),
        ({"path": "/a b"}, "path"),
        ({"path": "/\r\nX: y"}, "path"),
        ({"method": "DELETE"}, "method"),
        ({"keepalive": 0, "idle": 0}, "no lane"),
        ({"in_flight": 1}, "in_flight_path"),
        ({"rate_hz": 0}, "rate_hz"),
        ({"timeout_ns": 1}, "timeout_ns"),
        ({"headers": {"Host": "a"}}, "Host"),
        ({"headers": {"A b": "c"}}, "A b"),
        ({"identity_header": "Set-Cookie"}, "identity_header"),
        ({"host": "a\r\nb"}, "host"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(odd: dict[str, object], word: str) -> None:
    with pytest.raises(ScenarioError, match=word):
        Http(**odd).check()  # type: ignore[arg-type]
    known = asdict(HttpConfig.of(Http(), address="192.0.2.1", port=80))
    with pytest.raises(ConfigError, match=word):
        parse_http({**known, **odd})


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Token": f"{SECRET}\r\nX: y"},
        {"Host": SECRET},
        {"Bad name": SECRET},
        [SECRET],
        [("X", SECRET, SECRET)],
    ],
)
def test_no_error_shows_the_value_of_a_header(headers: object) -> None:
    with pytest.raises(ScenarioError) as refused:
        Http(headers=headers).check()  # type: ignore[arg-type]
    assert SECRET not in str(refused.value)


def test_no_value_of_a_header_and_no_query_is_in_a_recordings_header() -> None:
    http = Http(path=f"/a?token={SECRET}", headers=(("X-Token", SECRET),))
    assert SECRET not in json.dumps(http.config())
    assert SECRET not in repr(http)
    assert SECRET not in repr(Scenario(workload=Workload.attach("deployment/a", protocol=http)))
    assert http.config()["header_names"] == ["X-Token"]


def test_requests_to_another_virtual_host_are_another_condition() -> None:
    """Else repeats of the two would be pooled, and runs compared as if they had asked alike."""
    assert Http(host="shop.example").config() != Http(host="pay.example").config()
    assert Http().config()["host"] is None


def test_a_path_that_is_refused_is_shown_without_its_query() -> None:
    with pytest.raises(ScenarioError) as refused:
        Http(path=f"a?{SECRET}").check()
    assert SECRET not in str(refused.value)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown field 'speed'"):
        parse_http({"address": "192.0.2.1", "port": 80, "speed": 1})


@pytest.mark.parametrize("odd", [0, -1, 1.5, True, "now", 2**63])
def test_a_trigger_time_that_cannot_be(odd: object) -> None:
    with pytest.raises(ConfigError, match="trigger_ns"):
        parse_trigger(odd)


def test_a_trigger_time() -> None:
    assert (parse_trigger(None), parse_trigger(NS_PER_S)) == (None, NS_PER_S)
