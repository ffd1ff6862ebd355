"""Checking one field of what the agent is told: its name, its value, what it accepts."""

from __future__ import annotations

import ipaddress


class ConfigError(ValueError):
    """A configuration that cannot be run; names the field, its value and what it accepts."""


def check_address(name: str, value: object) -> int:
    """4 or 6. Raises :class:`ConfigError`, as all here do."""
    try:
        return ipaddress.ip_address(str(value)).version
    except ValueError:
        raise ConfigError(f"{name} is {value!r}; expected an IPv4 or IPv6 address") from None


def check_same_family(source_name: str, source: object, name: str, address: object) -> None:
    """Both of one version of IP; no source is of either."""
    if source is None:
        return
    if check_address(source_name, source) != check_address(name, address):
        raise ConfigError(
            f"{source_name} is {source!r} and {name} {address!r}; expected both IPv4 or both IPv6"
        )


def check_object(name: str, raw: object, accepted: set[str]) -> dict[str, object]:
    """A JSON object with no other fields than these."""
    if not isinstance(raw, dict):
        raise ConfigError(f"{name} is {raw!r}; expected an object")
    unknown = raw.keys() - accepted
    if unknown:
        raise ConfigError(
            f"{name} has the unknown field {min(map(str, unknown))!r}; "
            f"expected only {', '.join(sorted(accepted))}"
        )
    return dict(raw)


def check_present(name: str, known: dict[str, object], wanted: set[str]) -> None:
    """All these fields are there."""
    missing = wanted - known.keys()
    if missing:
        raise ConfigError(f"{name} lacks {', '.join(sorted(missing))}")


def check_number(
    name: str,
    known: dict[str, object],
    low: float,
    high: float,
    kinds: tuple[type, ...] = (int,),
    prefix: str = "",
) -> None:
    """The field, if it is there, is a number from ``low`` to ``high``."""
    if name not in known:
        return
    value = known[name]
    if type(value) not in kinds or not low <= value <= high:  # type: ignore[operator]
        kind = "a number" if float in kinds else "a whole number"
        raise ConfigError(f"{prefix}{name} is {value!r}; expected {kind} {low}..{high}")
