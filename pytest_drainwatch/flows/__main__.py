"""``python -m pytest_drainwatch.flows``."""

from __future__ import annotations

import sys

from pytest_drainwatch.flows.agent import main

if __name__ == "__main__":
    sys.exit(main())
