"""Scripts of commands played to a balancer, as the tests of this folder write them."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_drainwatch.core.balancer.grammar import carry_out
from pytest_drainwatch.core.balancer.machine import Balancer, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What came of a script: the balancer after it, every line it answered, every error."""

    balancer: Balancer
    answers: list[str]
    errors: list[str]

    def in_flight(self, name: str) -> int:
        return self.balancer.backend(name).in_flight


def play(script: str, balancer: Balancer | None = None) -> Played:
    """Each line, or each command between semicolons; errors leave the state as it was."""
    balancer = balancer or Balancer()
    answers: list[str] = []
    errors: list[str] = []
    for line in script.replace(";", "\n").splitlines():
        try:
            balancer, said = carry_out(balancer, line)
            answers += said
        except Refused as error:
            errors.append(str(error))
    return Played(balancer=balancer, answers=answers, errors=errors)


def answers(script: str, balancer: Balancer | None = None) -> list[str]:
    """The answers to a script in which nothing is refused."""
    played = play(script, balancer)
    assert not played.errors
    return played.answers
