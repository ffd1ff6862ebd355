"""Reports and their JSON Schema: dataclasses in, validated JSON out, and back."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NoReturn

from pytest_drainwatch.core.document import REPORT_SCHEMA, Report
from pytest_drainwatch.core.recording import Header

# Differences of 64-bit stamps have 20; what has more cannot be shown in milliseconds.
MAX_DIGITS = 40
SCHEMAS = ("report", "recording", "summary")


class ReportError(ValueError):
    """The text is not a report of ours; names the field and what was expected."""


def dumps(report: Report) -> str:
    """report.json: 2-space indent, trailing line feed, same report same bytes."""
    plain = _adapter(Report).dump_python(report, mode="json", exclude_none=False)
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def parse(text: str) -> Any:
    """The JSON of any report, ours or not. Raises :class:`ReportError` where it is none."""
    try:
        return json.loads(text, parse_int=_sane, parse_constant=_no_number)
    except RecursionError:
        why = "its values are nested too deeply to be read"
    except ValueError as error:
        why = str(error)
    raise ReportError(f"not valid JSON: {why}; was the file cut off or edited?")


def loads(text: str) -> Report:
    """Read a report. Raises :class:`ReportError`."""
    from pydantic import ValidationError

    said = parse(text)
    word = said.get("simulated", False) if isinstance(said, dict) else False
    if not isinstance(word, bool):  # "false" and 0 would be read as measured
        raise ReportError(
            f"not a pytest-drainwatch report: simulated: {json.dumps(word)[:40]}, expected true or "
            "false"
        )
    try:
        report: Report = _adapter(Report).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            # Its parser is stricter: nesting beyond 200, half a surrogate pair.
            why = first["msg"].removeprefix("Invalid JSON: ")
            raise ReportError(f"not valid JSON: {why}; was it edited?") from error
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
    """The JSON Schema of ``report``, of ``recording`` (one line of it) or of ``summary``."""
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
    if which == "summary":
        from pytest_drainwatch.core.repeats.summary import Summary

        return _titled(_adapter(Summary).json_schema(mode="serialization"), "summary.json")
    raise ReportError(f"no schema {which!r}, expected one of: {', '.join(SCHEMAS)}")


def _sane(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits, and nothing we measure has so many")
    return int(digits)


def _no_number(said: str) -> NoReturn:
    raise ValueError(f"{said} is no number that JSON knows")


def _titled(body: dict[str, Any], title: str) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, "title": title}


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
