"""What a bearer token says of its own validity: never checked, and never shown (pure)."""

from __future__ import annotations

import base64
import binascii
import json
import time
from datetime import UTC, datetime


def expiry(header: str, now_s: float | None = None) -> str | None:
    """When the JWT of an ``Authorization`` header expires; None if it is none or does not say."""
    parts = header.rpartition(" ")[2].split(".")
    if len(parts) != 3:
        return None
    body = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        claims = json.loads(base64.urlsafe_b64decode(body))
        at_s = int(claims["exp"])
        stamp = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (binascii.Error, ValueError, KeyError, TypeError, OverflowError, OSError):
        return None
    over = at_s <= (time.time() if now_s is None else now_s)
    return f"the token {'expired' if over else 'is good until'} {stamp}"
