"""Predicted against measured, as values: what ``drainwatch fidelity --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_drainwatch.core.fidelity.fit import Fitted
from pytest_drainwatch.core.repeats.stats import Statistics

FIDELITY_SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One metric of one arm, in ns.

    ``measured`` is over the arm's trials. ``predicted`` is over as many predictions: for each
    trial one, simulated with latencies of which that trial is no part. ``error_ns`` is the
    difference of their medians (predicted minus measured), ``error_percent`` the same of the
    measured median; None where that is 0. ``inside``: the predicted median lies between the
    least and the greatest measured one; None: nothing was measured, so nothing is judged.
    ``replayed`` is over simulations with the latencies that each trial itself shows: how far
    their spread makes predictions differ. ``replay_error_ns`` is the greatest difference between
    a trial and its own replay: what is wrong in the model, and not in the fit.
    ``from_others_ns`` is predicted from the other arms alone; None: there are none. It says how
    far latencies of one scenario serve another one, and is not judged.
    """

    metric: str
    measured: Statistics
    predicted: Statistics
    error_ns: int | None
    error_percent: float | None
    inside: bool | None
    replayed: Statistics
    replay_error_ns: int | None
    from_others_ns: int | None = None

    @property
    def others_inside(self) -> bool | None:
        """Whether that would have been inside; None: there are none, or nothing to be inside of."""
        least, greatest = self.measured.minimum, self.measured.maximum
        if self.from_others_ns is None or least is None or greatest is None:
            return None
        return least <= self.from_others_ns <= greatest


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """Flows of one kind, over all trials of an arm: for how many the prediction came true.

    An outcome is compared flow by flow. A mechanism is compared as a count: which flows a
    kernel's few ICMP messages reach depends on who sends first after the end, to the ms.
    With several replicas kube-proxy draws lots for each flow, so how many flows a pod has is
    chance: then a flow came true that ended in a way foretold for any flow of its kind.
    ``strange`` are those mechanisms whose predicted count (the median of all predictions) lies
    outside of what the trials measured, from the least to the greatest.
    """

    group: str
    flows: int
    outcomes_equal: int
    mechanisms_equal: int
    measured: Mapping[str, int]
    predicted: Mapping[str, int]
    strange: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One scenario: what was predicted of its trials, and what was measured."""

    scenario: str
    trials: tuple[str, ...]
    figures: tuple[Figure, ...]
    fates: tuple[Fates, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One cluster's trials: what the latencies are, and how well they predict.

    ``conditions`` are what all its trials have in common. ``latencies`` are fitted to all of
    them; for a prediction they are fitted to others alone. ``simulate`` is the command that
    simulates requests there; None: kube-proxy's minSyncPeriod is not known.
    """

    conditions: Mapping[str, object]
    trials: int
    latencies: tuple[Fitted, ...]
    arms: tuple[Arm, ...]
    simulate: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """Trials of one scenario behind a load balancer, in ns; each is predicted from the others.

    ``sends``: until when after the trigger it sent new connections to the pod's node, of all
    scenarios with the same load balancer. ``failing``: from when the first new connection that
    failed was begun to the last one; 0: none did. ``verdicts_equal``: of how many trials it was
    foretold whether any would fail. ``replays_right``: of how many the model, given the trial's
    own times, has them fail for as long as was measured; ``replay_error_ns`` is the greatest
    difference.
    ``simulate`` is the command that simulates this, with what all trials show.
    """

    scenario: str
    trials: tuple[str, ...]
    sends: Statistics
    sends_predicted: Statistics
    failing: Statistics
    failing_predicted: Statistics
    verdicts_equal: int
    replay_error_ns: int
    replays_right: int
    simulate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The whole. ``holds``: every flow ended as predicted, and every predicted median lies
    within what was measured; ``broken`` names each that does not.
    """

    fidelity_schema: int
    drainwatch_version: str
    holds: bool
    broken: tuple[str, ...]
    clusters: tuple[Held, ...]
    load_balancers: tuple[Behind, ...] = ()
