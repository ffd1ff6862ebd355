"""One trial from the shell, and its report as text."""

from __future__ import annotations

from pathlib import Path

from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.output import CANNOT, DONE, fail, write
from pytest_drainwatch.settings import Settings

INTERRUPTED = 130


def measure(settings: Settings, asked: Scenario) -> int:
    """Measure a scenario on the cluster that the settings name; returns the exit code."""
    from pytest_drainwatch import interrupts
    from pytest_drainwatch.cluster import ClusterError
    from pytest_drainwatch.explain import void_text
    from pytest_drainwatch.pool import ClusterPool
    from pytest_drainwatch.render.terminal import show
    from pytest_drainwatch.results import claim_folder, new_run_id
    from pytest_drainwatch.showing.progress import PlainProgress
    from pytest_drainwatch.trial import Trial, TrialVoid, run_trial
    from pytest_drainwatch.turns import TurnError, turn

    progress = PlainProgress(trial=asked.id)
    measured: list[Trial] = []

    def keep() -> bool:
        return settings.keeps(failed=not measured)

    run_id = new_run_id()
    try:
        folder = claim_folder(settings.out, run_id, asked.id)
    except OSError as error:
        return fail(CANNOT, f"cannot use {settings.out} for results: {error.strerror or error}")
    try:
        for flag in asked.flags:
            progress.line(f"note: {flag}")
        logs = settings.out / run_id / "cluster"
        with (
            interrupts.raised(),
            ClusterPool(settings, logs, progress.line, keep=keep) as pool,
            pool.lease(asked.cluster) as cluster,
            turn(cluster, waiting=progress.phase),
        ):
            progress.line(f"cluster {cluster.name} ({cluster.why}); results in {folder}")
            measured.append(
                run_trial(
                    cluster,
                    asked,
                    folder=folder,
                    keep=settings.keeps,
                    progress=progress,
                    placement=settings.placement,
                )
            )
    except (ClusterError, TrialVoid, TurnError) as error:
        return fail(CANNOT, void_text(f"void: {error}"))
    except KeyboardInterrupt:
        return fail(INTERRUPTED, "interrupted; the recording so far is kept")
    finally:
        progress.rest()
    page = _page(folder / "report.json", settings.out / run_id)
    write(show(measured[0].report) + f"report: {folder / 'report.json'}\n{page}\n")
    return DONE


def _page(report: Path, run: Path) -> str:
    """Write the run's page; one line that says where it is, or why there is none.

    The trial is measured and its report written: nothing that goes wrong here undoes that.
    """
    from pytest_drainwatch.pages.writing import FILE, write_trial

    try:
        write_trial(report, run / FILE)
    except Exception as error:
        return f"no page is written: {type(error).__name__}: {error}"
    return f"page: {run / FILE}"
