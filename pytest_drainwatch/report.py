"""Reports and their JSON Schema: dataclasses in, validated JSON out, and back."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pytest_drainwatch.core.document import REPORT_SCHEMA, Report
from pytest_drainwatch.core.recording import Header


class ReportError(ValueError):
    """The text is not a report of ours; names the field and what was expected."""


def dumps(report: Report) -> str:
    """report.json: 2-space indent, trailing line feed, same report same bytes."""
    plain = _adapter(Report).dump_python(report, mode="json", exclude_none=False)
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def loads(text: str) -> Report:
    """Read a report. Raises :class:`ReportError`."""
    from pydantic import ValidationError

    try:
        report: Report = _adapter(Report).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise ReportError(
            f"not a pytest-drainwatch report: {where}: {first['msg']} "
            f"({error.error_count()} problem(s)); expected report.json as "
            "`drainwatch schema report` describes it"
        ) from error
    if report.schema_version > REPORT_SCHEMA:
        raise ReportError(
            f"report schema {report.schema_version} is newer than {REPORT_SCHEMA}, the newest "
            "this version reads; install a newer pytest-drainwatch"
        )
    return report


def schema(which: str) -> dict[str, Any]:
    """The JSON Schema of ``report`` or of ``recording`` (one line of it)."""
    if which == "report":
        return _titled(_adapter(Report).json_schema(mode="serialization"), "report.json")
    if which == "recording":
        from pytest_drainwatch.core.observation import Observation

        header = _adapter(Header).json_schema(mode="serialization")
        line = _adapter(Observation).json_schema(mode="serialization")
        # On disk an interval is [lo, hi] and empty fields are left out.
        line["$defs"].pop("Interval", None)
        line["properties"]["at"] = {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 2,
            "maxItems": 2,
        }
        line["required"] = ["source", "event", "at"]
        definitions = {**header.pop("$defs", {}), **line.pop("$defs", {})}
        both = {"anyOf": [header, line], "$defs": definitions}
        return _titled(both, "one line of recording.jsonl: the header first, then observations")
    raise ReportError(f"no schema {which!r}, expected one of: report, recording")


def _titled(body: dict[str, Any], title: str) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, "title": title}


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
