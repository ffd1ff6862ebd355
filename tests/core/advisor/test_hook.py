"""How long a preStop hook takes, as far as its manifest shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.core.advisor.hook import FOREVER_NS, lasts, shell_script
from pytest_drainwatch.core.advisor.subject import Action, Hook
from tests.core.advisor.subjects import S, at, executed, slept


@pytest.mark.parametrize(
    ("hook", "ns", "exact"),
    [
        (None, 0, True),
        (slept(7), 7 * S, True),
        (executed("sleep", "5"), 5 * S, True),
        (executed("/bin/sleep", "0.5"), S // 2, True),
        (executed("sleep", "2m"), 120 * S, True),
        (executed("sh", "-c", "sleep 5"), 5 * S, True),
        (executed("/bin/bash", "-ec", "sleep 5; sleep 1"), 6 * S, True),
        (executed("sh", "-e", "-c", "exec sleep 5"), 5 * S, True),
        (executed("sh", "-c", "sleep 5 && nginx -s quit"), 5 * S, False),
        (executed("sleep", "infinity"), FOREVER_NS, False),
        (executed("sh", "-c", "sleep $N"), None, False),
        (executed("sleep", "5", "5"), None, False),
        (executed("sleep", "five"), None, False),
        (executed("sleep"), None, False),
        (executed("sh", "-c"), None, False),
        (executed("sh", "drain.sh"), None, False),
        (executed(), None, False),
        (Hook(action=Action.HTTP_GET, at=at(1)), None, False),
        (Hook(action=Action.TCP_SOCKET, at=at(1)), None, False),
    ],
)
def test_only_a_sleep_shows_its_length(hook: Hook | None, ns: int | None, exact: bool) -> None:
    found = lasts(hook)
    assert (found.ns, found.exact) == (ns, exact)


@given(
    st.lists(st.integers(0, 3600), min_size=1, max_size=4), st.sampled_from(["; ", " && ", "\n"])
)
def test_sleeps_one_after_the_other_add_up(seconds: list[int], between: str) -> None:
    script = between.join(f"sleep {each}" for each in seconds)
    found = lasts(executed("sh", "-c", script))
    assert (found.ns, found.exact) == (sum(seconds) * S, True)


@given(st.lists(st.text(max_size=20), max_size=5))
def test_no_command_is_too_strange(command: list[str]) -> None:
    found = lasts(executed(*command))
    assert found.ns is None or found.ns >= 0
    assert found.exact is False or found.ns is not None


def test_a_shell_is_told_its_script_by_dash_c() -> None:
    assert shell_script(("bash", "-lc", "run")) == "run"
    assert shell_script(("bash", "--login", "-c", "run")) == "run"
    assert shell_script(("bash", "run.sh", "-c", "no")) is None
    assert shell_script(("python", "-c", "pass")) is None
