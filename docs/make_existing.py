"""Writes docs/existing.md from its words and the rights' declarations: ``make docs``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_drainwatch.core.scenario import Access, Controller, Trigger
from pytest_drainwatch.rights.needed import together
from pytest_drainwatch.rights.right import Right

TARGET = Path(__file__).with_name("existing.md")
NAMESPACE = "NAME"

WORDS = Path(__file__).with_name("existing_words.md")


def page() -> str:
    """The whole page."""
    own = _rights(Trigger, [Controller.DEPLOYMENT], own=True, attach=False)
    given = _rights([Trigger.DELETE], [Controller.DEPLOYMENT], own=False, attach=False)
    attach = _rights([Trigger.NONE], [Controller.DEPLOYMENT], own=False, attach=True)
    return "\n".join(
        [
            WORDS.read_text(),
            "### A Deployment in a namespace of the trial's own, all triggers\n",
            *_table(own),
            "### The same in a given namespace, trigger delete\n",
            *_table(given),
            "### Attached to a Deployment, without the trigger's own\n",
            *_table(attach),
        ]
    )


def _rights(
    triggers: Iterable[Trigger], controllers: list[Controller], *, own: bool, attach: bool
) -> tuple[Right, ...]:
    accesses = [Access.NODE_PORT, Access.LOAD_BALANCER]
    return together(list(triggers), controllers, accesses, own=own, attach=attach)


def _table(rights: Iterable[Right]) -> Iterator[str]:
    yield "| right | why | |"
    yield "|---|---|---|"
    for right in rights:
        optional = "optional" if right.optional else ""
        yield f"| {right.in_words(NAMESPACE)} | {right.why} | {optional} |"
    yield ""


if __name__ == "__main__":
    TARGET.write_text(page())
