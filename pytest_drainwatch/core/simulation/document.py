"""A simulated run as JSON values: what `drainwatch simulate --json` prints and the page exports."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.run import Simulated
from pytest_drainwatch.core.simulation.says import failures, says
from pytest_drainwatch.core.simulation.steps import steps

FORMAT = 1


def document(run: Simulated) -> dict[str, Any]:
    """Integers, texts, booleans, null, lists and objects, always in this order of keys."""
    totals = {str(outcome): count for outcome, count in run.totals.items()}
    return {
        "simulated": True,
        "format": FORMAT,
        "inputs": inputs_as_json(run.inputs),
        "says": list(says(run)),
        "requests": {
            "total": len(run.requests),
            "succeeded": len(run.requests) - len(run.failed),
            "failed": len(run.failed),
            **totals,
        },
        "life": _plain(run.life),
        "routes": [{"source": one.source, "until_ns": one.until_ns} for one in run.routes],
        "failures": [_plain(one) for one in failures(run)],
        "steps": [_plain(one) for one in steps(run)],
        "sent": [_plain(one) for one in run.requests],
    }


def dumped(run: Simulated) -> str:
    """The document as text; JSON.stringify(document, null, 2) gives the same in a browser."""
    return json.dumps(document(run), indent=2, ensure_ascii=False) + "\n"


def inputs_as_json(inputs: Inputs) -> dict[str, Any]:
    """Each input by its own name."""
    return _plain(inputs)


def _plain(one: Any) -> dict[str, Any]:
    """A dataclass's fields; enums are their text, and tuples lists."""
    return {
        name: list(value)
        if isinstance(value, tuple)
        else str(value)
        if isinstance(value, str)
        else value
        for name, value in asdict(one).items()
    }
