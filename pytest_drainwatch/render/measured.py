"""What measured trials say of a figure, in words (pure)."""

from __future__ import annotations

from fractions import Fraction

from pytest_drainwatch.core.advisor.measured import Figure, Name
from pytest_drainwatch.core.interval import NS_PER_S

_WHAT = {
    Name.PROPAGATION: "new connections came to a pod after its deletion for",
    Name.SHUTDOWN: "the application took from SIGTERM to its end",
}


def says(figure: Figure) -> str:
    """What was measured, and what limit that gives, or how many trials would give one."""
    limit, values = figure.limit, figure.values_ns
    if not values:
        return f"not measured: no trial tells how long {_WHAT[figure.name].removesuffix(' for')}"
    spread = seconds(values[0])
    if len(values) > 1:
        spread += f" to {seconds(values[-1])}"
    seen = f"{_WHAT[figure.name]} {spread} ({_trials(len(values))})"
    if figure.bounds_only:
        seen += f"; in {figure.bounds_only} of them none failed, and that long at most"
    wanted = f"{asked(limit.quantile)} of all such trials with {asked(limit.wanted)} confidence"
    if limit.value is None:
        return (
            f"{seen}; too few for {wanted}, which needs {limit.needed}: "
            f"the greatest covers that with {percent(limit.confidence)}"
        )
    which = "the greatest" if limit.rank == 1 else f"number {limit.rank} from above"
    return f"{seen}; at most {seconds(limit.value)} in {wanted} ({which})"


def left_out(figure: Figure) -> tuple[str, ...]:
    """The trials that say nothing of it, by reason."""
    return tuple(f"{_trials(count)} left out: {why}" for why, count in figure.left_out.items())


def seconds(ns: int) -> str:
    """Rounded up to a hundredth of a second: a limit must not fall."""
    return f"{-(-ns // (NS_PER_S // 100)) / 100:.2f} s"


def percent(share: Fraction) -> str:
    """Rounded down to a tenth of a percent: a confidence must not rise."""
    return f"{int(share * 1000) / 10:g} %"


def asked(share: Fraction) -> str:
    """A share that somebody asked for: as it was asked for."""
    return f"{float(share * 100):g} %"


def _trials(count: int) -> str:
    return f"{count} trial{'s' * (count != 1)}"
