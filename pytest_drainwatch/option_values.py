"""How the text of an option is read; each raises ValueError with what it accepts."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_drainwatch.placement import Address

# Verdicts on which a run may be failed.
FAIL_ON = ("regression", "insufficient-evidence")

# A number with more digits is nobody's, and too long for Python to print (4300).
_DIGITS = r"\d{1,1000}"
_DURATION = rf"({_DIGITS}(?:\.{_DIGITS})?)(ms|s|m|)"


def parse_duration_ns(text: str) -> int:
    """``25``, ``25s``, ``500ms`` or ``2m`` in nanoseconds; a bare number is seconds."""
    from pytest_drainwatch.core.interval import NS_PER_MS, NS_PER_S

    unit_ns = {"ms": NS_PER_MS, "s": NS_PER_S, "m": 60 * NS_PER_S, "": NS_PER_S}
    match = re.fullmatch(_DURATION, text.strip())
    if match is None:
        raise ValueError("expected a duration such as 25, 25s, 500ms or 2m")
    exact_ns = Decimal(match[1]) * unit_ns[match[2]]
    ns = round(exact_ns)
    if exact_ns and not ns:
        # 0 has a meaning of its own, which must be asked for.
        raise ValueError("expected 0, or a duration of at least a nanosecond")
    return ns


def seconds(text: str) -> int:
    """A duration as whole seconds."""
    from pytest_drainwatch.core.interval import NS_PER_S

    ns = parse_duration_ns(text)
    if ns % NS_PER_S:
        raise ValueError("expected whole seconds, as Kubernetes stores them")
    return ns // NS_PER_S


def milliseconds(text: str) -> int:
    """A duration as whole milliseconds."""
    from pytest_drainwatch.core.interval import NS_PER_MS

    ns = parse_duration_ns(text)
    if ns % NS_PER_MS:
        raise ValueError("expected whole milliseconds")
    return ns // NS_PER_MS


def count(text: str) -> int:
    """A number of things."""
    if not re.fullmatch(_DIGITS, text.strip()):
        raise ValueError("expected a whole number of 0 or more")
    return int(text)


def count_from_one(text: str) -> int:
    """A number of things, of which there must be one."""
    if not count(text):
        raise ValueError("expected a whole number of 1 or more")
    return int(text)


def verdicts(text: str) -> frozenset[str]:
    """Which verdicts of a comparison fail a run, with commas between them; ``never``: none."""
    if text.strip() == "never":
        return frozenset()
    asked = [word.strip() for word in text.split(",")]
    return frozenset(one_of(*FAIL_ON)(word) for word in asked)


def fields(text: str) -> frozenset[str]:
    """Names with commas between them."""
    found = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch(r"[\w.-]+", word) for word in found):
        raise ValueError(
            "expected conditions with commas between them, such as kubernetes_version,cpu_count"
        )
    return frozenset(found)


def object_name(text: str) -> str:
    """The name of a namespace or another object of Kubernetes."""
    if len(text) > 63 or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", text):
        raise ValueError("expected a name as Kubernetes has them: a-z, 0-9 and -, 63 at most")
    return text


def object_names(text: str) -> tuple[str, ...]:
    """Names of objects with commas between them."""
    return tuple(object_name(word.strip()) for word in text.split(","))


def address(text: str) -> Address:
    """A host and perhaps a port: ``lb.example.com``, ``10.0.0.7:30080``, ``[fd00::7]:30080``."""
    from pytest_drainwatch.placement import Address

    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\]]+))(?::(\d{1,5}))?", text.strip())
    port = int(match[3]) if match and match[3] else None
    if match is None or (port is not None and not 0 < port < 65536):
        raise ValueError(
            "expected a host and perhaps a port, such as lb.example.com, 10.0.0.7:30080 or "
            "[fd00::7]:30080; no scheme and no path"
        )
    return Address(host=match[1] or match[2], port=port)


def escaped(text: str) -> bytes:
    r"""What is typed as ``PING\r\n``, with the escapes that Python has, as bytes."""
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise ValueError(r"expected text with escapes such as \r, \n or \x00") from None


def port(text: str) -> int | str:
    """A port by number or name."""
    return int(text) if text.isdecimal() else text


def yes_or_no(text: str) -> bool:
    """Whether something is wanted, in the words that pytest's own ini options take."""
    said = text.strip().lower()
    if said in ("1", "yes", "true", "on"):
        return True
    if said in ("0", "no", "false", "off"):
        return False
    raise ValueError("expected yes or no (1, true, on; 0, false, off)")


def one_of(*accepted: str) -> Callable[[str], str]:
    """What reads one of some words."""

    def parse(text: str) -> str:
        if text not in accepted:
            raise ValueError(f"expected one of: {', '.join(accepted)}")
        return text

    return parse


def proxy_mode(text: str) -> str:
    """One of kube-proxy's modes."""
    from pytest_drainwatch.core.scenario import ProxyMode

    return one_of(*ProxyMode)(text)


def path(text: str) -> Path:
    """A file or folder; ``~`` is one's home."""
    if not text.strip():
        raise ValueError("expected a path")
    return Path(text).expanduser()
