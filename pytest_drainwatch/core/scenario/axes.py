"""Families of scenarios: every combination of some axes, or arms that differ in one field."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pytest_drainwatch.core.scenario.app import Behavior
from pytest_drainwatch.core.scenario.scenario import Scenario, Trigger
from pytest_drainwatch.core.scenario.values import ScenarioError, member

TRIGGERS = (Trigger.DELETE, Trigger.EVICT, Trigger.SCALE)


def matrix(
    *,
    behavior: Iterable[str] = tuple(Behavior),
    trigger: Iterable[str] = TRIGGERS,
    base: Scenario | None = None,
) -> list[Scenario]:
    """Every combination of the axes over ``base``, in the order given.

    Meant for ``@pytest.mark.parametrize("scenario", matrix(...))``; the ids come
    from :attr:`Scenario.id`.
    """
    base = base or Scenario()
    return list(_combine(base, tuple(behavior), tuple(trigger)))


def _combine(
    base: Scenario, behaviors: tuple[str, ...], triggers: tuple[str, ...]
) -> Iterator[Scenario]:
    for behavior, trigger in itertools.product(behaviors, triggers):
        app = replace(base.app, behavior=member("behavior", behavior, Behavior))
        yield replace(base, app=app, trigger=member("trigger", trigger, Trigger))


def arms(base: Scenario, field: str, values: Mapping[str, object]) -> list[Scenario]:
    """Scenarios that differ from each other in ``field`` and in nothing else.

    ``field`` is ``"trigger"``, or a part and its field: ``"app.readiness_on_drain"``.
    ``values`` names each arm: ``{"fails": "fail", "keeps": "keep"}``; the arms are called
    ``<base's name>-<name>``. Raises :class:`ScenarioError` if there is no such field, if
    a value cannot be asked, or if two arms would be the same.
    """
    found = []
    for name, value in values.items():
        arm = _with(base, field, value)
        found.append(replace(arm, name=f"{base.id}-{name}", arm=name))
    check_arms(found)
    return found


def check_arms(asked: Iterable[Scenario]) -> None:
    """Refuse arms that do not all differ from each other in exactly one field, the same one.

    What tells two arms apart is what the difference of their outcomes is put down to.
    Raises :class:`ScenarioError`.
    """
    asked = list(asked)
    if len(asked) < 2:
        raise ScenarioError(f"{len(asked)} arm(s) compare nothing; expected two or more")
    told: set[str] = set()
    for one, other in itertools.combinations(asked, 2):
        apart = sorted(differences(one, other))
        told.update(apart)
        if len(apart) != 1 or len(told) != 1:
            raise ScenarioError(
                f"{one.id} and {other.id} differ in {', '.join(apart) or 'nothing'}; expected "
                f"{'that field alone in all arms: ' + min(told) if told else 'one field'}"
            )


def differences(one: Scenario, other: Scenario) -> frozenset[str]:
    """The fields in which two scenarios differ; their names do not count."""
    return frozenset(_differing(one, other, "")) - {"name", "arm"}


def _differing(one: Any, other: Any, prefix: str) -> Iterator[str]:
    for each in fields(one):
        a, b = getattr(one, each.name), getattr(other, each.name)
        # A hook is one value: three seconds of sleep or an exec are two hooks, not two fields.
        part = is_dataclass(a) and is_dataclass(b) and not prefix
        if part:
            yield from _differing(a, b, f"{each.name}.")
        elif a != b:
            yield prefix + each.name


def _with(base: Scenario, field: str, value: object) -> Scenario:
    part, _, name = field.rpartition(".")
    try:
        if not part:
            changed: dict[str, Any] = {name: value}
        else:
            changed = {part: replace(getattr(base, part), **{name: value})}
        return replace(base, **changed)
    except (AttributeError, TypeError) as error:
        raise ScenarioError(
            f"a scenario has no field {field!r}; expected one such as trigger, "
            f"app.readiness_on_drain, service.access or cluster.proxy_mode ({error})"
        ) from None
