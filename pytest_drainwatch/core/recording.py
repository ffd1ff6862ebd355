"""A recording: the header and the observations of one trial, as JSON lines.

The first line is the header, every further line one observation. A line is
complete or it is not there: a torn last line (the writer was killed) is dropped
and named in :attr:`Recording.damage`, anything else that cannot be read is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.observation import Event, Observation, Source

RECORDING_SCHEMA = 1


class RecordingError(ValueError):
    """The text is not a recording that this version can judge; says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What was true before anything happened.

    ``wall_clock_start`` is the only wall time of a trial (RFC 3339), ``clock``
    the id of the harness's clock, ``scenario`` the scenario's fields.
    """

    recording_schema: int = RECORDING_SCHEMA
    drainwatch_version: str
    git_commit: str
    trial_id: str
    wall_clock_start: str
    clock: str
    scenario: Mapping[str, object]
    environment: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recording:
    """A header and its observations, in the order in which they were written."""

    header: Header
    observations: tuple[Observation, ...]
    damage: str | None = None


def dump_header(header: Header) -> str:
    """The header as one JSON line, without the line feed."""
    return _dumps({name: getattr(header, name) for name in Header.__slots__})


def dump_observation(seen: Observation) -> str:
    """An observation as one JSON line, without the line feed; empty fields are left out."""
    line: dict[str, object] = {
        "source": seen.source,
        "event": seen.event,
        "at": [seen.at.lo, seen.at.hi],
    }
    if seen.subject:
        line["subject"] = seen.subject
    if seen.clock:
        line["clock"] = seen.clock
    if seen.data:
        line["data"] = seen.data
    return _dumps(line)


def dumps(recording: Recording) -> str:
    """The whole recording as text."""
    lines = [dump_header(recording.header)]
    lines += [dump_observation(seen) for seen in recording.observations]
    return "".join(line + "\n" for line in lines)


def loads(text: str) -> Recording:
    """Read a recording. Raises :class:`RecordingError` naming the line."""
    lines = text.split("\n")
    torn = lines.pop()  # empty when the last line is complete
    if not lines:
        raise RecordingError("a recording starts with a header line, found none")
    header = _load_header(lines[0])
    seen = tuple(parse_observation(line, number) for number, line in enumerate(lines[1:], 2))
    damage = f"the last line is torn ({len(torn)} characters) and was dropped" if torn else None
    return Recording(header, seen, damage)


def parse_observation(line: str, number: int = 0) -> Observation:
    """Read one observation line. Raises :class:`RecordingError` with ``number``."""
    try:
        raw = json.loads(line)
        lo, hi = raw["at"]
        if type(lo) is not int or type(hi) is not int:
            raise ValueError(f"'at' holds two integers, got {raw['at']}")
        data = raw.get("data", {})
        if not isinstance(data, dict):
            raise ValueError("'data' is not an object")
        return Observation(
            source=Source(raw["source"]),
            event=Event(raw["event"]),
            at=Interval(lo, hi),
            subject=_text(raw, "subject"),
            clock=_text(raw, "clock"),
            data=data,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"line {number} is not an observation: {error!r}") from error


def merge(*parts: Iterable[Observation]) -> tuple[Observation, ...]:
    """Several sources in one order, by the instant at which each thing became known.

    Within a part the written order is kept: it is what its source saw happen.
    Ties between parts fall to the earlier part, so the result is reproducible.
    """
    keyed: list[tuple[int, int, int, Observation]] = []
    for number, part in enumerate(parts):
        known_ns: int | None = None
        for place, seen in enumerate(part):
            known_ns = seen.at.hi if known_ns is None else max(known_ns, seen.at.hi)
            keyed.append((known_ns, number, place, seen))
    return tuple(entry[3] for entry in sorted(keyed, key=lambda entry: entry[:3]))


def _load_header(line: str) -> Header:
    try:
        raw = json.loads(line)
        schema = raw["recording_schema"]
        if not isinstance(schema, int) or schema > RECORDING_SCHEMA:
            raise RecordingError(
                f"recording schema {schema!r} is newer than {RECORDING_SCHEMA}, the newest this "
                "version reads; install a newer pytest-drainwatch"
            )
        for name in ("scenario", "environment"):
            if not isinstance(raw.get(name, {}), dict):
                raise ValueError(f"{name!r} is not an object")
        return Header(**{name: raw[name] for name in Header.__slots__ if name in raw})
    except RecordingError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"line 1 is not a recording's header: {error!r}") from error


def _text(raw: Mapping[str, object], name: str) -> str:
    value = raw.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is not a string")
    return value


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
