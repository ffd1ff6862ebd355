"""What a trace is made of before it is written: spans on lanes, arrows between spans, counts.

Times are whole microseconds since t = 0, the format's unit, lo rounded down and hi rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_drainwatch.render.page.data import At, Tone

# A slice without width can neither be seen nor clicked, and no arrow can begin at it.
LEAST_US = 1

Args = Mapping[str, str | int | float | None]


class Colour(StrEnum):
    """Names of colours that chrome://tracing knows; Perfetto chooses its own by a slice's name."""

    GOOD = "good"
    WARN = "bad"  # it is an orange
    BAD = "terrible"
    UNKNOWN = "grey"


COLOURS = {
    Tone.GOOD: Colour.GOOD,
    Tone.WARN: Colour.WARN,
    Tone.BAD: Colour.BAD,
    Tone.UNKNOWN: Colour.UNKNOWN,
}


# Each is itself, however many look alike: an arrow leads to one of them.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """A slice: ``at_us`` are its ends. Those ``inside`` follow each other within it."""

    name: str
    kind: str
    at_us: At
    args: Args = field(default_factory=dict)
    colour: Colour | None = None
    inside: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A row of the picture, or several where spans overlap. Without spans it is not there."""

    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """From a cause to its effect; ``why`` names the evidence that carries the claim."""

    cause: Span
    effect: Span
    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The values of a counter's series from ``at_us`` on, until its next count."""

    name: str
    at_us: int
    values: Mapping[str, int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One trial. ``label`` stands beside its name, ``notes`` in the file's other data."""

    name: str
    label: str
    lanes: tuple[Lane, ...]
    arrows: tuple[Arrow, ...] = ()
    counts: tuple[Count, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def begins_us(self) -> int:
        """Its earliest time; t = 0 is always part of it."""
        spans = [span.at_us[0] for lane in self.lanes for span in lane.spans]
        return min([0, *spans, *(count.at_us for count in self.counts)])


def seen(at: At) -> At:
    """The same, wide enough to be a slice."""
    return at[0], max(at[1], at[0] + LEAST_US)
