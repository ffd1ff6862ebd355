"""Repeats are tests of their own: ``r00``, ``r01``, … of each test that measures.

So each of them passes or fails for itself, ``-k r02`` and ``--lf`` select them, and workers
share them out. In which order they run is :mod:`pytest_drainwatch.planning.ordering`'s matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from pytest_drainwatch.session import RUN

PARAMETER = "dw_repeat"
# A test that asks for one of these measures a trial that its parameters describe...
DESCRIBED = frozenset({"trial", "dw_flows", "dw_probe", "dw_namespace"})
# ... and one that asks for one of those measures too, what they say or its body does.
MEASURING = DESCRIBED | {"trials", "drainwatch"}


def label(repeat: int) -> str:
    """What a repeat is called, in a test's id as in the results folder."""
    return f"r{repeat:02d}"


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make of a test that measures as many as were asked for; of one there is no parameter."""
    if not MEASURING.intersection(metafunc.fixturenames):
        return
    number = wanted(metafunc.config, metafunc.definition)
    if number == 1:
        return
    if PARAMETER not in metafunc.fixturenames:  # somebody's own fixture took the place of ours
        metafunc.fixturenames.append(PARAMETER)
    metafunc.parametrize(PARAMETER, range(number), ids=map(label, range(number)), indirect=True)


def repeat_of(item: pytest.Item) -> int:
    """Which of its test's repeats this is."""
    number = _params(item).get(PARAMETER, 0)
    return number if isinstance(number, int) else 0


def measures(item: pytest.Item) -> bool:
    """Whether the test asks for a fixture that measures."""
    return bool(MEASURING.intersection(getattr(item, "fixturenames", ())))


def is_described(item: pytest.Item) -> bool:
    """Whether the test measures one trial, which its parameters describe."""
    return bool(DESCRIBED.intersection(getattr(item, "fixturenames", ())))


def is_repeated(item: pytest.Item) -> bool:
    """Whether there are other repeats of its test."""
    return PARAMETER in _params(item)


def measures_unannounced(item: pytest.Item) -> bool:
    """Whether a test that measures after all (by ``request.getfixturevalue``) did not say so."""
    return not measures(item) and PARAMETER not in getattr(item, "fixturenames", ())


def problem_of(item: pytest.Item) -> str | None:
    """What the test's marker asks for and there is not, in words.

    A test that measures nothing may have a marker of that name from somebody else.
    """
    for marker in item.iter_markers("trial"):
        if not measures(item) and "repeat" not in marker.kwargs:
            continue
        others = [*map(repr, marker.args), *(name for name in marker.kwargs if name != "repeat")]
        if others:
            return f"@pytest.mark.trial takes repeat=N and nothing else, got: {', '.join(others)}"
        number = marker.kwargs.get("repeat", 1)
        if not _is_number(number):
            return f"@pytest.mark.trial(repeat=N) takes a whole number from 1 on, got: {number!r}"
        if number > 1 and not measures(item):
            return (
                f"@pytest.mark.trial(repeat={number}) is about what a test measures, and this one "
                f"asks for none of the fixtures that do: {', '.join(sorted(MEASURING))}"
            )
    return None


def once_only(config: pytest.Config, items: Iterable[pytest.Item]) -> Sequence[pytest.Item]:
    """Tests that were to be repeated and cannot be: pytest has no parameters for unittest's."""
    return [
        item
        for item in items
        if measures(item) and not is_repeated(item) and wanted(config, item) > 1
    ]


def wanted(config: pytest.Config, node: pytest.Item) -> int:
    """How often; the option overrides the test's own number. A bad one is problem_of()'s."""
    given = config.stash[RUN].settings.repeat
    if given is not None:
        return given
    marker = node.get_closest_marker("trial")
    number = marker.kwargs.get("repeat", 1) if marker else 1
    return number if _is_number(number) else 1


def _is_number(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 1


def _params(item: pytest.Item) -> dict[str, object]:
    return getattr(getattr(item, "callspec", None), "params", {})
