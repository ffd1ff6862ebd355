"""What HAProxy says of its servers, read from `show stat`."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

# A check that is under way has a star before its word.
PASSED = frozenset({"L4OK", "L6OK", "L7OK", "L7OKC"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStat:
    """A server as HAProxy sees it.

    ``up``: it gets new connections. ``check``: how its last health check went, in HAProxy's word;
    empty: none is over yet. ``sessions`` are open, ``given`` it was ever.
    """

    up: bool
    check: str
    sessions: int
    given: int

    @property
    def passed(self) -> bool:
        """Whether its last check went well."""
        return self.check in PASSED


def parse(text: str) -> Mapping[str, ServerStat]:
    """Each server by HAProxy's name. Raises ValueError for what is no such answer."""
    rows = csv.DictReader(io.StringIO(text.lstrip("# ")))
    try:
        return {row["svname"]: _server(row) for row in rows if row["svname"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an odd answer to `show stat`: {text[:80]!r}") from error


def _server(row: Mapping[str, str]) -> ServerStat:
    # "UP", "UP 1/2": it failed one of two checks and still gets connections; "DOWN 1/2" none yet.
    return ServerStat(
        up=row["status"].startswith("UP"),
        check=row["check_status"].removeprefix("* "),
        sessions=int(row["scur"]),
        given=int(row["stot"]),
    )
