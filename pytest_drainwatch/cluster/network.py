"""A look into a node's network stack: what was asked and what came back, unread."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one program said. Without ``problem`` the text is whole.

    ``asked_ns`` and ``answered_ns`` are of CLOCK_MONOTONIC.
    """

    asked_ns: int
    answered_ns: int
    text: str
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNetwork:
    """One look: the connections that the kernel tracks, and kube-proxy's rules in ``mode``.

    A ``mode`` of None is not known, and its rules are not read.
    """

    conntrack: Answer
    mode: str | None
    rules: Answer
