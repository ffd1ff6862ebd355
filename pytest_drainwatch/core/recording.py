"""A recording: the header and the observations of one trial, as JSON lines.

The first line is the header, every further line one observation. A line is
complete or it is not there: a torn last line (the writer was killed) is dropped
and named in :attr:`Recording.damage`, anything else that cannot be read is an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer_or_none, nesting
from pytest_drainwatch.core.observation import Event, Observation, Source

RECORDING_SCHEMA = 1
# Ours need 6; readers of JSON give up at 200 or later, each at a depth of its own.
MAX_NESTING = 64
_TEXTS = ("drainwatch_version", "git_commit", "trial_id", "wall_clock_start", "clock", "test")


class RecordingError(ValueError):
    """The text is not a recording that this version can judge; says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What was true before anything happened.

    ``wall_clock_start`` is the only wall time of a trial (RFC 3339), ``clock``
    the id of the harness's clock, ``scenario`` the scenario's fields. ``test`` is the node
    id of the test that measured it, ``repeat`` which of its repeats this is, from 0 on;
    None: not known, as in recordings of older versions. ``simulated``: a model predicted what
    follows, and nothing of it was measured.
    """

    recording_schema: int = RECORDING_SCHEMA
    drainwatch_version: str
    git_commit: str
    trial_id: str
    wall_clock_start: str
    clock: str
    scenario: Mapping[str, object]
    environment: Mapping[str, object] = field(default_factory=dict)
    test: str | None = None
    repeat: int | None = None
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Recording:
    """A header and its observations, in the order in which they were written."""

    header: Header
    observations: tuple[Observation, ...]
    damage: str | None = None


def dump_header(header: Header) -> str:
    """The header as one JSON line, without the line feed; only a simulated one says so."""
    fields = {name: getattr(header, name) for name in Header.__slots__}
    fields["simulated"] = header.simulated or None
    return _dumps({name: value for name, value in fields.items() if value is not None})


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
        raw = _parse(line)
        lo, hi = (integer_or_none(stamp) for stamp in raw["at"])
        if lo is None or hi is None:
            raise ValueError(f"'at' holds two integers of 64 bits, got {raw['at']}")
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
        raw = _parse(line, _HEADER_DECODER)
        schema = raw["recording_schema"]
        if type(schema) is not int:
            raise ValueError(f"'recording_schema' is a number, got {schema!r}")
        if schema > RECORDING_SCHEMA:
            raise RecordingError(
                f"recording schema {schema!r} is newer than {RECORDING_SCHEMA}, the newest this "
                "version reads; install a newer pytest-drainwatch"
            )
        for name in ("scenario", "environment"):
            if not isinstance(raw.get(name, {}), dict):
                raise ValueError(f"{name!r} is not an object")
        for name in _TEXTS:
            _text(raw, name)
        if "repeat" in raw and (type(raw["repeat"]) is not int or raw["repeat"] < 0):
            raise ValueError(f"'repeat' is a number from 0 on, got {raw['repeat']!r}")
        if type(raw.get("simulated", False)) is not bool:
            raise ValueError(f"'simulated' is true or false, got {raw['simulated']!r}")
        return Header(**{name: raw[name] for name in Header.__slots__ if name in raw})
    except RecordingError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"line 1 is not a recording's header: {error!r}") from error


def _parse(line: str, decoder: json.JSONDecoder | None = None) -> Any:
    """The JSON of a line, if a report can repeat all of it. Raises :class:`ValueError`."""
    try:
        raw = (decoder or _DECODER).decode(line)
    except RecursionError:
        raise ValueError("its values are nested too deeply to be read") from None
    if line.count("[") + line.count("{") > MAX_NESTING and nesting(raw) > MAX_NESTING:
        raise ValueError(f"its values are nested more than {MAX_NESTING} deep")
    if "\\u" in line:
        try:
            _dumps(raw).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half a surrogate pair, which is no text") from None
    return raw


def _of_64_bits(digits: str) -> int:
    value = integer_or_none(int(digits))
    if value is None:
        raise ValueError(f"a number of {len(digits)} digits, which 64 bits do not hold")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no_number(digits)


def _no_number(said: str) -> NoReturn:
    raise ValueError(f"{said} is no number that JSON knows")


# Made once: a recording has a hundred thousand lines.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)
_HEADER_DECODER = json.JSONDecoder(
    parse_int=_of_64_bits, parse_float=_finite, parse_constant=_no_number
)


def _text(raw: Mapping[str, object], name: str) -> str:
    value = raw.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is not a string")
    return value


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
