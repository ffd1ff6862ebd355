"""Of nothing there is no median: a benchmark refuses to measure that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench import agent, derive, import_cost, matrix, prober, startup
from bench.arguments import positive

Main = Callable[[list[str]], int]


@pytest.mark.parametrize(
    ("main", "option"),
    [
        (agent.main, "--rounds"),
        (derive.main, "--rounds"),
        (import_cost.main, "--rounds"),
        (matrix.main, "--workers"),
        (matrix.main, "--repeat"),
        (prober.main, "--rounds"),
        (prober.main, "--agents"),
        (startup.main, "--rounds"),
        (startup.main, "--clusters"),
    ],
)
@pytest.mark.parametrize("value", ["0", "-1", "few"])
def test_none_of_it_is_refused(
    main: Main, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option, value])
    assert ended.value.code == 2
    assert f"{option}: '{value}': expected a whole number from 1 on" in capsys.readouterr().err


def test_what_is_accepted() -> None:
    assert positive("3") == 3
