"""Whether a page is what render/page/data.py says it is, and whether it can be true."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from pytest_drainwatch.render.page.data import At, Page, Trial


def check_page(page: Page) -> None:
    """Raises where a field is missing, is of another kind, or is one that nobody knows."""
    check(page, Page, "page")
    ids = [trial["id"] for trial in page["trials"]]
    assert len(set(ids)) == len(ids)
    for trial in page["trials"]:
        check_trial(trial)


def check_trial(trial: Trial) -> None:
    """The same of one trial; and no instant of it is impossible."""
    check(trial, Trial, "trial")
    for at in instants(trial):
        assert at[0] <= at[1], at
    ids = [band["id"] for lane in trial["lanes"] for band in lane["bands"]]
    assert len(set(ids)) == len(ids)
    if trial["hurt"] is not None and trial["hurt"]["band"] is not None:
        assert trial["hurt"]["band"] in ids
    for lane in trial["lanes"]:
        assert lane["marks"] or lane["bands"]
    lo, hi = trial["recorded"]
    assert trial["span"][0] < trial["span"][1]
    assert lo <= trial["span"][0]
    assert trial["span"][1] <= hi
    for flow in trial["flows"]:
        check_pieces(trial, flow["id"])
        assert flow["story"].endswith(".")
        for piece in flow["pieces"]:
            assert lo <= piece["at"][0] <= piece["at"][1] <= hi
            assert piece["by"] is None or 0 <= piece["by"] < len(trial["responders"])
    for tried in trial["attempts"]:
        assert all(0 <= run[2] < len(tried["results"]) for run in tried["runs"])


def check_pieces(trial: Trial, name: str) -> None:
    """A flow's pieces follow each other without a gap, and no two neighbours are equal."""
    (flow,) = [flow for flow in trial["flows"] if flow["id"] == name]
    for piece in flow["pieces"]:
        assert 0 <= piece["edge"] <= piece["at"][1] - piece["at"][0]
    for one, other in pairwise(flow["pieces"]):
        assert one["at"][1] == other["at"][0]
        assert (one["state"], one["by"]) != (other["state"], other["by"])


def instants(value: Any) -> Iterator[At]:
    """Every interval of a trial, wherever it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _INTERVALS and inner is not None:
                yield inner
            else:
                yield from instants(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from instants(inner)


_INTERVALS = frozenset({"at", "opens", "closes", "end", "span", "recorded"})


def check(value: Any, kind: Any, where: str) -> None:
    """Raises AssertionError where a value is not of the kind that data.py gives it."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        assert isinstance(value, dict), where
        assert value.keys() == hints.keys(), (where, value.keys() ^ hints.keys())
        for name, hint in hints.items():
            check(value[name], hint, f"{where}.{name}")
    elif origin is list:
        assert isinstance(value, list), where
        for number, each in enumerate(value):
            check(each, inner[0], f"{where}[{number}]")
    elif origin is tuple:
        assert isinstance(value, tuple), where
        assert len(value) == len(inner), where
        for each, hint in zip(value, inner, strict=True):
            check(each, hint, where)
    elif isinstance(kind, UnionType):
        if value is None and NoneType in inner:
            return
        (other,) = [each for each in inner if each is not NoneType]
        check(value, other, where)
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        assert value in kind, where
    elif kind is float:
        assert type(value) in (int, float), where
    else:
        assert isinstance(value, kind), (where, value)
        assert isinstance(value, bool) == (kind is bool), where
