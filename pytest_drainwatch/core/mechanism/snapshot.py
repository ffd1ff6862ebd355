"""What the node's network was like at the moments that matter: recording -> snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.interval import Interval
from pytest_drainwatch.core.jsonvalue import integer, objects, text, texts
from pytest_drainwatch.core.mechanism import conntrack, rules
from pytest_drainwatch.core.mechanism.conntrack import Entry
from pytest_drainwatch.core.mechanism.occasion import Occasion
from pytest_drainwatch.core.mechanism.rules import Effect
from pytest_drainwatch.core.observation import Event, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at the node, on the harness's clock; None: that could not be read.

    ``entries`` are those of the flows' addresses, by transport and a flow's own address and
    port. ``left_out`` counts entries that were too many to record, so one that is not in
    ``entries`` may still have been there; so it may if they are not ``whole``.
    """

    occasion: Occasion
    entries_at: Interval | None
    entries: Mapping[tuple[str, str, int], Entry] | None
    left_out: int
    whole: bool
    rules_at: Interval | None
    mode: str | None
    effects: tuple[Effect, ...] | None
    problems: tuple[str, ...]

    @property
    def at(self) -> Interval:
        """From the first question to the last answer."""
        known = [at for at in (self.entries_at, self.rules_at) if at is not None]
        return Interval(min(at.lo for at in known), max(at.hi for at in known))

    def effect(self, proto: str, port: int) -> Effect | None:
        """What the rules do to new connections to that port; None: no rule is about it."""
        return next((e for e in self.effects or () if (e.proto, e.port) == (proto, port)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A look as a report shows it; times in ns since t = 0.

    ``rules`` say what kube-proxy would do with a new connection at that moment.
    ``problem`` says why a value is None.
    """

    occasion: Occasion
    at_ns: tuple[int, int]
    conntrack_entries: int | None
    proxy_mode: str | None
    rules: tuple[Effect, ...] | None
    problem: str | None = None


def looks_of(seen: Iterable[Observation]) -> tuple[Look, ...]:
    """The looks of a recording, in the order in which they were taken."""
    found: dict[Occasion, dict[Event, Observation]] = {}
    for o in seen:
        if o.event in (Event.CONNTRACK, Event.PROXY_RULES):
            occasion = _occasion(o)
            if occasion is not None:
                found.setdefault(occasion, {}).setdefault(o.event, o)
    return tuple(
        _look(occasion, parts.get(Event.CONNTRACK), parts.get(Event.PROXY_RULES))
        for occasion, parts in found.items()
    )


def shown(look: Look, t0_ns: int) -> Snapshot:
    """A look as a report shows it."""
    at = look.at.since(t0_ns)
    return Snapshot(
        occasion=look.occasion,
        at_ns=(at.lo, at.hi),
        conntrack_entries=None if look.entries is None else len(look.entries) + look.left_out,
        proxy_mode=look.mode,
        rules=look.effects,
        problem="; ".join(look.problems) or None,
    )


def _occasion(seen: Observation) -> Occasion | None:
    said = seen.data.get("occasion")
    return next((occasion for occasion in Occasion if occasion == said), None)


def _look(occasion: Occasion, tracked: Observation | None, proxied: Observation | None) -> Look:
    problems = [text(o.data.get("problem")) for o in (tracked, proxied) if o is not None]
    entries = effects = mode = None
    if tracked is not None and isinstance(tracked.data.get("entries"), list):
        known = conntrack.recorded(objects(tracked.data["entries"]))
        entries = {(entry.proto, entry.src, entry.sport): entry for entry in known}
    if proxied is not None:
        mode = text(proxied.data.get("mode")) or None
        if mode is not None and isinstance(proxied.data.get("rules"), list):
            left_out = integer(proxied.data.get("left_out"))
            effects = None if left_out else rules.effects(mode, texts(proxied.data["rules"]))
            if effects is None:
                problems.append("the rules were too long to be recorded whole")
    return Look(
        occasion=occasion,
        entries_at=tracked.at if tracked is not None else None,
        entries=entries,
        left_out=integer(tracked.data.get("left_out")) if tracked is not None else 0,
        whole=tracked is not None and not tracked.data.get("problem"),
        rules_at=proxied.at if proxied is not None else None,
        mode=mode,
        effects=effects,
        problems=tuple(problem for problem in problems if problem),
    )
