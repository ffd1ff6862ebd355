"""``python -m pytest_drainwatch``: the same as ``drainwatch``."""

from __future__ import annotations

import sys

from pytest_drainwatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
