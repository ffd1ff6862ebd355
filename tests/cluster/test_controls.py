"""The controls: trials whose outcome is known beforehand. What is tested is the instrument."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_drainwatch import Scenario, Trial
from pytest_drainwatch.controls import CONTROLS, Control

pytestmark = pytest.mark.cluster

# In both every flow survives, and the looser of their verdicts holds for either.
SURVIVORS = {"control-nothing", "control-survivor"}


SOON = {"control-nothing", "control-reset"}  # the others in `make test-all`


@pytest.mark.parametrize(
    "control",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in SOON else [pytest.mark.slow])
        for each in CONTROLS
    ],
)
def test_the_outcome_is_the_one_that_was_made(
    control: Control, drainwatch: Callable[[Scenario], Trial]
) -> None:
    """None but the one: every other control's verdict is another one here."""
    trial = drainwatch(control.scenario).report.trial
    assert not control.judge(trial)
    others = [other for other in CONTROLS if {control.name, other.name} != SURVIVORS]
    others.remove(control)
    alike = [other.name for other in others if not other.judge(trial)]
    assert not alike, "these controls cannot fail"
