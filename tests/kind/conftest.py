"""A machine with kind, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kind import lab


@pytest.fixture(scope="session")
def kind_place() -> Iterator[lab.Place]:
    """Where kind runs; every container in it is ours if it is the lab's."""
    try:
        with lab.place() as found:
            yield found
    except lab.NoKind as error:
        pytest.skip(str(error))
