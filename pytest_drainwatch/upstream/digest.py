"""What the ancestor's summary.json and aggregate.json hold; see :mod:`.document`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict

from pytest_drainwatch.core.repeats.metrics import Metric
from pytest_drainwatch.upstream.document import (
    EXACT,
    Behavior,
    Count,
    Counts,
    Environment,
    OmittedText,
    Trigger,
    no_null,
)


class ClockBasis(StrEnum):
    """Whether both ends of a figure were stamped on one clock."""

    SAME_CLOCK = "same-clock"
    CROSS_CLOCK = "cross-clock"


class Unit(StrEnum):
    """The unit of a statistic."""

    MS = "ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTrial:
    """A trial in summary.json. ``report_path`` is one of its container, not of the host."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    trial_id: str
    report_path: str
    drain_behavior: Behavior
    trigger: Trigger
    tcp: Counts
    udp: Counts
    trigger_to_sigterm_ms: int | None
    sigterm_to_ready_false_ms: int | None
    sigterm_to_last_flow_terminal_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSummary:
    """summary.json: the trials of one run."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    drainwatch_version: str
    git_commit: str
    environment: Environment
    trials: tuple[SummaryTrial, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Which build measured."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    drainwatch_version: str
    git_commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A published figure over the repeats of an arm."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    metric: Metric
    description: str
    clock_basis: ClockBasis
    unit: Unit
    observed_repeats: Count
    not_measured_repeats: Count
    min: int | None
    median: int | None
    max: int | None
    values: tuple[int | None, ...] | None
    caveat: OmittedText = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRepeat:
    """A trial in aggregate.json."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    trial_id: str
    report_path: str
    tcp: Counts
    udp: Counts
    tcp_mechanisms: tuple[str, ...] | None
    udp_mechanisms: tuple[str, ...] | None
    container_exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One arm of aggregate.json. Older files lack ``build``; empty lists are null."""

    __pydantic_config__: ClassVar[ConfigDict] = EXACT
    arm: str
    dir: str
    trials: Count
    drain_behavior: Behavior
    trigger: Trigger
    grace_period_seconds: int
    tcp_flows: Count
    udp_flows: Count
    environment: Environment
    build: Annotated[Build | None, BeforeValidator(no_null)] = None
    stats: tuple[Statistic, ...]
    repeats: tuple[ArmRepeat, ...]
    container_exit_codes: dict[str, int]
    disagreements: tuple[str, ...] | None
    has_disagreements: bool
    mechanism_variations: tuple[str, ...] | None
    has_mechanism_variation: bool
