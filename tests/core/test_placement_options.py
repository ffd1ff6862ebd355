"""Options that say where a trial's objects go and where its Service is reached."""

from __future__ import annotations

import pytest

from pytest_drainwatch.core.scenario import Scenario, ScenarioError, Trigger
from pytest_drainwatch.option_values import address, object_name, object_names
from pytest_drainwatch.options import OptionError
from pytest_drainwatch.placement import Address, Placement
from pytest_drainwatch.settings import Settings, resolve


def given(**values: str) -> Settings:
    return resolve({"command line": lambda option: values.get(option.name.replace("-", "_"))})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("lb.example.com", "lb.example.com", None),
        ("10.0.0.7:30080", "10.0.0.7", 30080),
        ("[fd00::7]:1", "fd00::7", 1),
        ("[fd00::7]", "fd00::7", None),
        (" node-1:65535 ", "node-1", 65535),
    ],
)
def test_addresses(text: str, host: str, port: int | None) -> None:
    found = address(text)
    assert found == Address(host=host, port=port)
    assert address(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", ":80", "http://x", "x/y", "x:0", "x:65536", "x:http", "fd00::7", "[x", "a b"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="expected a host and perhaps a port"):
        address(text)


@pytest.mark.parametrize("text", ["", "Team", "-a", "a-", "a_b", "a" * 64, "a/b"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="expected a name as Kubernetes has them"):
        object_name(text)


def test_names_have_commas_between_them() -> None:
    assert object_names("one, two") == ("one", "two")
    with pytest.raises(ValueError, match="expected a name"):
        object_names("one,")


def test_by_default_a_trial_places_itself() -> None:
    assert Settings().placement == Placement()


def test_what_is_given_becomes_the_placement() -> None:
    settings = given(namespace="team", pull_secret="a,b", address="10.0.0.7")
    assert settings.placement == Placement(
        namespace="team", pull_secrets=("a", "b"), address=Address(host="10.0.0.7")
    )


def test_a_pull_secret_is_of_a_namespace_that_is_given() -> None:
    with pytest.raises(OptionError, match="expected --dw-namespace=NAME beside it"):
        given(pull_secret="regcred")


def test_a_namespace_that_is_given_is_not_to_be_deleted() -> None:
    settings = given(namespace="team")
    with pytest.raises(ScenarioError, match=r"--dw-namespace=team.*is left as it was"):
        settings.apply(Scenario(trigger=Trigger.NAMESPACE_DELETE))
    assert settings.apply(Scenario(trigger=Trigger.DELETE)) == Scenario()
    assert Settings().apply(Scenario(trigger=Trigger.NAMESPACE_DELETE))
