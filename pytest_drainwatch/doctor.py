"""``drainwatch doctor``: what this machine has and lacks; with ``--trial`` also whether the
instrument tells right from wrong here, by trials whose outcomes are known beforehand.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pytest_drainwatch.flags import add_flags, told_by
from pytest_drainwatch.options import OPTIONS, Option, OptionError
from pytest_drainwatch.output import BROKEN, CANNOT, DONE, USAGE, fail, write
from pytest_drainwatch.settings import Settings, from_environment, resolve

if TYPE_CHECKING:
    from pytest_drainwatch.controls import Control

# Of the options those that say where, and not what: the controls are what they are.
PLACE = (
    *("cluster", "kubeconfig", "context", "allow-context", "kind-image"),
    *("kube-bin", "probe-image"),
    *("namespace", "pull-secret", "address", "out", "keep"),
)
VERSION = "kube-version"


def register(subparsers: Any) -> None:
    """Add the command to an argparse subparsers object."""
    doctor = subparsers.add_parser(
        "doctor", help="say what this machine has and lacks; --trial: test the instrument on it"
    )
    doctor.add_argument(
        "--kube-version",
        "--dw-kube-version",
        action="append",
        metavar="V",
        help="Kubernetes minor version (1.37); may be repeated",
    )
    doctor.add_argument(
        "--trial",
        action="store_true",
        help="run the control trials: nothing may be lost without a trigger, and every outcome "
        "must be told where it is known (about 2 minutes)",
    )
    where = (option for option in OPTIONS if option.name in PLACE)
    add_flags(doctor, where, before="with --trial: ")
    doctor.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    if arguments.trial:
        return _try(arguments)
    from pytest_drainwatch.cluster import ClusterError, ClusterSettings
    from pytest_drainwatch.cluster.embedded import doctor

    try:
        checks = doctor.examine(arguments.kube_version or [ClusterSettings().kube_version])
    except ClusterError as error:
        return fail(CANNOT, str(error))
    for check in checks:
        write(check.line() + "\n")
    return DONE if all(check.good for check in checks) else CANNOT


def _try(arguments: argparse.Namespace) -> int:
    from pytest_drainwatch import interrupts
    from pytest_drainwatch.cluster import ClusterError
    from pytest_drainwatch.controls import CONTROLS
    from pytest_drainwatch.explain import void_text
    from pytest_drainwatch.pool import ClusterPool
    from pytest_drainwatch.results import claim_folder, new_run_id
    from pytest_drainwatch.showing.progress import PlainProgress
    from pytest_drainwatch.trial import TrialVoid, run_trial

    try:
        settings = place(arguments)
        asked = [settings.apply(control.scenario) for control in CONTROLS]
    except ValueError as error:
        return fail(USAGE, str(error))
    progress, run_id, good = PlainProgress(), new_run_id(), 0
    try:
        folders = [claim_folder(settings.out, run_id, scenario.id) for scenario in asked]
    except OSError as error:
        return fail(CANNOT, f"cannot use {settings.out} for results: {error.strerror or error}")

    def keep() -> bool:
        return settings.keeps(failed=good < len(CONTROLS))

    try:
        with (
            interrupts.raised(),
            ClusterPool(
                settings, settings.out / run_id / "cluster", progress.line, keep=keep
            ) as pool,
            pool.lease(asked[0].cluster) as cluster,
        ):
            for control, scenario, folder in zip(CONTROLS, asked, folders, strict=True):
                trial = run_trial(
                    cluster,
                    scenario,
                    folder=folder,
                    keep=settings.keeps,
                    progress=progress,
                    placement=settings.placement,
                )
                found = control.judge(trial.report.trial)
                good += not found
                for line in told(control, found):
                    write(line + "\n")
    except (ClusterError, TrialVoid) as error:
        return fail(CANNOT, void_text(f"void: {error}"))
    except KeyboardInterrupt:
        return fail(130, "interrupted; the recordings so far are kept")
    write(f"{good} of {len(CONTROLS)} controls as expected; {settings.out / run_id}\n")
    return DONE if good == len(CONTROLS) else BROKEN


def place(arguments: argparse.Namespace) -> Settings:
    """Where the controls run. Whatever else is exported for other runs changes none of them.

    Raises :class:`OptionError`.
    """
    versions = arguments.kube_version or []
    if len(versions) > 1:
        raise OptionError(f"--kube-version is given {len(versions)} times; --trial takes one")

    def from_command_line(option: Option) -> object:
        if option.name == VERSION:
            return versions[0] if versions else None
        return told_by(arguments)(option)

    def from_outside(option: Option) -> object:
        return from_environment(option) if option.name in (*PLACE, VERSION) else None

    return resolve({"command line": from_command_line, "environment": from_outside})


def told(control: Control, found: Sequence[str]) -> Iterator[str]:
    """What a control showed, a line each."""
    yield f"{'✗' if found else '✓'} {control.name}: {control.shows}"
    yield from (f"    {line}" for line in found)
