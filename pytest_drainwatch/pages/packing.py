"""Many flows as columns: each text once, each instant a number, so that the page can be mailed.

assets/data.js reads both this and what is not packed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pytest_drainwatch.render.page.data import Flow, Page, Trial

# A story is cut where its numbers are: what is between them is the same in all flows.
_NUMBERS = re.compile(r"([+-]?\d[\d.,–]*)")


def packed(page: Page) -> dict[str, Any]:
    """The same page as JSON values; flows whose steps are left out are many, and in columns."""
    return {**page, "trials": [_trial(trial) for trial in page["trials"]]}


def _trial(trial: Trial) -> dict[str, Any]:
    flows = trial["flows"]
    if not flows or any(flow["rows"] is not None for flow in flows):
        return {**trial}
    return {**trial, "flows": _Columns().of(flows)}


class _Columns:
    """Flows whose texts are numbers of a common list."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}

    def of(self, flows: Iterable[Flow]) -> dict[str, Any]:
        """``rows`` are as assets/data.js reads them."""
        rows = [self._row(flow) for flow in flows]
        return {"texts": list(self._texts), "rows": rows}

    def _row(self, flow: Flow) -> list[Any]:
        pieces: list[int | None] = []
        for piece in flow["pieces"]:
            lo, hi = piece["at"]
            state, tone = self._text(str(piece["state"])), self._text(str(piece["tone"]))
            pieces += [lo, hi - lo, piece["edge"], state, tone, piece["by"]]
        end = flow["end"]
        return [
            flow["id"],
            self._text(flow["proto"]),
            None if flow["role"] is None else self._text(flow["role"]),
            self._text(flow["outcome"]),
            self._text(flow["mechanism"]),
            self._text(str(flow["tone"])),
            None if end is None else [end[0], end[1] - end[0]],
            pieces,
            self._story(flow["story"]),
        ]

    def _story(self, story: str) -> list[int | str]:
        """Its parts: a number of the list, or a text that is in no other flow."""
        parts = _NUMBERS.split(story)
        return [part if n % 2 else self._text(part) for n, part in enumerate(parts)]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))
