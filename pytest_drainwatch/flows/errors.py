"""What the agent says when it cannot go on."""

from __future__ import annotations


class AgentError(Exception):
    """The agent cannot do its task: what happened, what was expected, what to do next."""

    def __init__(self, what: str, expected: str, next_step: str) -> None:
        super().__init__(f"{what}; expected {expected}; {next_step}")
        self.what = what
        self.expected = expected
        self.next_step = next_step

    def told(self) -> dict[str, str]:
        """As a status line holds it."""
        return {"what": self.what, "expected": self.expected, "next": self.next_step}


class ClientLimit(AgentError):
    """This machine or process has run out of something: nothing about the workload."""


def first_of(group: BaseExceptionGroup[BaseException]) -> AgentError:
    """The first of nested exception groups: fleets dial in groups of their own."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return first_of(error)
        if isinstance(error, AgentError):
            return error
    raise group
