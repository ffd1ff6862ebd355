"""Lines of ``conntrack -L`` -> entries.

An entry has two tuples. The first is the packet as the client sent it; the second is
the reply as it is expected, so its source is where the packet is really led to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.jsonvalue import integer_or_none, text

# A trial has tens of flows; ten thousand would not fit into a recording's line.
MAX_ENTRIES = 512

_PROTO = re.compile(r"\b(tcp|udp)\s+\d+\s+(?:\d+\s+)?([A-Z_0-9]{4,})?")
_ID = re.compile(r"\bid=(\d+)")
_FIELD = re.compile(r"\b(src|dst|sport|dport)=(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One tracked connection: who sent to whom, and where it is led ``to``.

    ``state`` is TCP's; UDP has none. Without ``replied`` no answer was seen yet. One ``id``
    at two looks is one and the same entry, which was not made anew between them.
    """

    proto: str
    src: str
    sport: int
    dst: str
    dport: int
    to: str
    to_port: int
    state: str | None = None
    assured: bool = False
    replied: bool = True
    id: int | None = None

    def fields(self) -> dict[str, object]:
        """As a recording holds it."""
        return {name: getattr(self, name) for name in Entry.__slots__}


def parse(line: str) -> Entry | None:
    """The entry of a line; None for what is none, or is neither TCP nor UDP."""
    head = _PROTO.search(line)
    pairs = _FIELD.findall(line)
    if head is None or [name for name, _ in pairs] != ["src", "dst", "sport", "dport"] * 2:
        return None
    (src, dst, sport, dport), (to, _, to_port, _) = (
        [value for _, value in half] for half in (pairs[:4], pairs[4:])
    )
    if not all(port.isdecimal() for port in (sport, dport, to_port)):
        return None
    return Entry(
        proto=head[1],
        src=src,
        sport=int(sport),
        dst=dst,
        dport=int(dport),
        to=to,
        to_port=int(to_port),
        state=head[2],
        assured="[ASSURED]" in line,
        replied="[UNREPLIED]" not in line,
        id=int(said[1]) if (said := _ID.search(line)) else None,
    )


def entries_of(
    listing: str, sources: Collection[str], ports: Collection[tuple[str, int]]
) -> tuple[list[Entry], int]:
    """The entries from ``sources`` to ``ports`` (transport, port), and how many are left out."""
    found = [
        entry
        for line in listing.splitlines()
        if (entry := parse(line)) is not None
        and entry.src in sources
        and (entry.proto, entry.dport) in ports
    ]
    found.sort(key=lambda entry: (entry.proto, entry.src, entry.sport))
    return found[:MAX_ENTRIES], max(0, len(found) - MAX_ENTRIES)


def recorded(raw: Iterable[Mapping[str, object]]) -> tuple[Entry, ...]:
    """The entries of a recording; what is none counts as absent."""
    return tuple(entry for item in raw if (entry := _recorded(item)) is not None)


def _recorded(raw: Mapping[str, object]) -> Entry | None:
    addresses = [text(raw.get(name)) for name in ("proto", "src", "dst", "to")]
    ports = [integer_or_none(raw.get(name)) for name in ("sport", "dport", "to_port")]
    if not all(addresses) or None in ports:
        return None
    proto, src, dst, to = addresses
    sport, dport, to_port = (port or 0 for port in ports)
    return Entry(
        proto=proto,
        src=src,
        sport=sport,
        dst=dst,
        dport=dport,
        to=to,
        to_port=to_port,
        state=text(raw.get("state")) or None,
        assured=raw.get("assured") is True,
        replied=raw.get("replied") is True,
        id=integer_or_none(raw.get("id")),
    )
