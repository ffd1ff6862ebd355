"""When the node's network is looked at."""

from __future__ import annotations

from enum import StrEnum

AFTER_EXIT_S = 5


class Occasion(StrEnum):
    """A moment that matters; each at most once a trial, and only if it came."""

    TRIGGER = "trigger"  # just before the trigger is sent
    READY_FALSE = "ready-false"  # the first target's endpoint is no longer ready
    EXIT = "exit"  # the first target pod's containers have ended, or it is gone
    AFTER_EXIT = "exit+5s"
    END = "end"  # the observation ended before exit+5s
