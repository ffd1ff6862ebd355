"""The shutdown budget: which part of the grace period goes where, and what is left.

One deadline for everything: the preStop hook counts against it, and then the
application's own wait, its drain, closing, flushing, and a reserve. A part that nobody
told stays unknown, and then so does what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pytest_drainwatch.core.advisor.hook import Lasts, lasts
from pytest_drainwatch.core.advisor.subject import Container, Subject
from pytest_drainwatch.core.advisor.told import Told
from pytest_drainwatch.core.pod.kubelet import kill_after, remaining_after, sigterm_after


class Name(StrEnum):
    """The parts, in the order in which they pass."""

    HOOK = "preStop hook"
    WAIT = "application's wait"
    DRAIN = "drain"
    CLOSE = "close"
    FLUSH = "flush"
    RESERVE = "reserve"


class Origin(StrEnum):
    """Where a number is from."""

    MANIFEST = "manifest"
    OPTION = "option"
    MEASURED = "measured"
    UNKNOWN = "not told"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part. ``ns`` None: not known; ``at_least``: it may take longer."""

    name: Name
    ns: int | None
    origin: Origin
    # The manifest's line, the option, or what is missing.
    because: str
    at_least: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownBudget:
    """A container's parts against its pod's grace period; all times in nanoseconds."""

    grace_ns: int
    # From the kubelet's beginning, by its own rule; None where the hook's length is not known.
    sigterm_ns: int | None
    kill_ns: int | None
    # From SIGTERM to SIGKILL at most: a hook of unknown length is taken as what it shows.
    remaining_ns: int
    parts: tuple[Part, ...]

    @property
    def known_ns(self) -> int:
        """The sum of the parts that are known: at least this is used."""
        return sum(part.ns or 0 for part in self.parts)

    @property
    def left_ns(self) -> int:
        """What the known parts leave of the grace period, for those in :attr:`unknown`.

        Negative: by so much they do not fit.
        """
        return self.grace_ns - self.known_ns

    @property
    def unknown(self) -> tuple[Part, ...]:
        """The parts that nobody told, and those that may take longer."""
        return tuple(part for part in self.parts if part.ns is None or part.at_least)

    def part(self, name: Name) -> Part:
        """The part of that name."""
        return next(part for part in self.parts if part.name is name)


def budget(subject: Subject, container: Container, told: Told) -> ShutdownBudget:
    """How the grace period of ``subject`` is spent in ``container``."""
    hook, grace_s = lasts(container.pre_stop), max(subject.grace_s, 1)
    ran_ns = sigterm_after(grace_s, hook.ns or 0)
    return ShutdownBudget(
        grace_ns=subject.grace_ns,
        sigterm_ns=ran_ns if hook.exact else None,
        kill_ns=kill_after(grace_s, ran_ns) if hook.exact else None,
        remaining_ns=remaining_after(grace_s, ran_ns),
        parts=tuple(_parts(container, told, hook)),
    )


def _parts(container: Container, told: Told, hook: Lasts) -> Iterator[Part]:
    if container.pre_stop is None:
        yield Part(name=Name.HOOK, ns=0, origin=Origin.MANIFEST, because="no preStop hook")
    else:
        yield Part(
            name=Name.HOOK,
            ns=hook.ns,
            at_least=not hook.exact and hook.ns is not None,
            origin=Origin.UNKNOWN if hook.ns is None else Origin.MANIFEST,
            because=f"{container.pre_stop.at}: {hook.shown}",
        )
    measured = told.drain_ns is None and told.shutdown_ns is not None
    for name, ns, option in (
        (Name.WAIT, told.wait_ns, "--wait"),
        (Name.DRAIN, told.drain_ns, "--drain"),
        (Name.CLOSE, told.close_ns, "--close"),
        (Name.FLUSH, told.flush_ns, "--flush"),
        (Name.RESERVE, told.reserve_ns, "--reserve"),
    ):
        if ns is not None:
            yield Part(name=name, ns=ns, origin=Origin.OPTION, because=option)
        elif measured and name is Name.DRAIN:
            because = told.shutdown_source or ""
            yield Part(name=name, ns=told.drained_ns, origin=Origin.MEASURED, because=because)
        elif measured and name is not Name.RESERVE:
            yield Part(name=name, ns=0, origin=Origin.MEASURED, because="measured with the drain")
        else:
            yield Part(name=name, ns=None, origin=Origin.UNKNOWN, because=f"no {option} given")
