"""The cluster of pytest-kind's own fixture `kind_cluster`, asked for by name.

pytest-kind is under the GPL, and nothing of it is imported here: its options are read where
pytest has them, its fixture is asked for as any test would. What it does not do by itself is done
around it:

- it would download a kind (0.17.0) that cannot make a Kubernetes of today, unless told of another;
- it passes no configuration, so a cluster of a certain shape is made before it looks;
- it takes a cluster that is there by a kubeconfig that may not be there any more;
- each worker of xdist would make the same cluster, and the first to end delete it for all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind import image
from pytest_drainwatch.cluster.kind.cluster import Given
from pytest_drainwatch.cluster.kind.containers import images_of
from pytest_drainwatch.cluster.kind.programs import Kind, check_docker, find_kind
from pytest_drainwatch.cluster.kind.shape import Shape
from pytest_drainwatch.cluster.kind.sharing import Share

FIXTURE = "kind_cluster"
# Where pytest-kind keeps a cluster's kubeconfig, below the current directory.
_FOLDER = Path(".pytest-kind")
_PROGRAMS = {"kind_bin": "kind", "kind_kubectl_bin": "kubectl"}


def borrow(
    request: pytest.FixtureRequest,
    shape: Shape,
    *,
    log: Callable[[str], None],
    keep: Callable[[], bool],
) -> Given:
    """The fixture's cluster. It ends with the session: when its last user here has gone.

    Args:
        request: of a session-scoped fixture.
        shape: what the cluster is made like, if it is not there yet.
        log: takes one line at a time.
        keep: whether the cluster stays; asked when the fixture would delete it.

    Raises:
        ClusterError: it could not be made; says what is missing.
    """
    name = request.config.getoption("cluster_name", default=None)
    if name is None:
        raise ClusterError(
            "pytest-kind is not installed, or switched off: expected its fixture kind_cluster."
            " Install it (pip install 'pytest-drainwatch[kind]', no -p no:kind), or choose another"
            " cluster: --dw-cluster=embedded, --dw-cluster=existing"
        )
    kind = find_kind(request.config.getoption("kind_bin"))
    shape = _shape_and_programs(request.config, shape)
    check_docker()
    kubeconfig = _kubeconfig(request.config, name, log)
    share = Share(name)
    with share.door(lambda: log(f"waiting for another process that makes kind cluster {name}")):
        with _undone_if_it_fails(kind, name, kubeconfig):
            _prepare(kind, name, kubeconfig, shape, log)
            cluster = _ask(request, name)
        share.join()
    _end_with_the_last(cluster, share, keep)
    return Given(name=name, kubeconfig=Path(cluster.kubeconfig_path).absolute(), kind=kind)


def _shape_and_programs(config: pytest.Config, shape: Shape) -> Shape:
    """Have pytest-kind use what is on PATH instead of what it would download.

    The node image may be named by its option or by ours.
    """
    for option, program in _PROGRAMS.items():
        if getattr(config.option, option, "") is None:
            setattr(config.option, option, shutil.which(program))
    shape = replace(shape, image=config.getoption("kind_image") or shape.image)
    config.option.kind_image = shape.image
    return shape


@contextmanager
def _undone_if_it_fails(kind: Kind, name: str, kubeconfig: Path) -> Iterator[None]:
    """Remove what an interrupted or failed attempt leaves of a cluster that was not there."""
    before = kind.clusters()
    try:
        yield
    except BaseException:
        if name not in before:
            kind.clear(name, kubeconfig)
        raise


def _kubeconfig(config: pytest.Config, name: str, log: Callable[[str], None]) -> Path:
    """Where pytest-kind will look for the cluster's kubeconfig."""
    given = config.getoption("kubeconfig")
    if given:
        log(
            f"note: --kubeconfig is pytest-kind's: access to kind cluster {name} is written to"
            f" {given}. For a cluster that is there already: --dw-kubeconfig {given}"
        )
    return Path(given) if given else _FOLDER / name / "kubeconfig"


def _prepare(
    kind: Kind, name: str, kubeconfig: Path, shape: Shape, log: Callable[[str], None]
) -> None:
    """Make what pytest-kind cannot make, and find again what it has lost."""
    lives = name in kind.clusters()
    if lives or shape.config():
        kubeconfig.parent.mkdir(parents=True, exist_ok=True)
    if lives:
        _refuse_another_image(kind, name, shape.image)
        log(f"kind cluster {name} is there already, and is used")
        try:
            kind.export(name, kubeconfig)
        except ClusterError as error:
            raise ClusterError(
                f"kind cluster {name} is there and cannot be used: {error} If it is half made, by"
                f" a run that was killed: kind delete cluster --name {name}"
            ) from error
    else:
        log(f"making kind cluster {name} (about half a minute)")
        if shape.config():
            kind.create(name, kubeconfig, shape)


def _refuse_another_image(kind: Kind, name: str, asked: str | None) -> None:
    """Raise ClusterError if the cluster's nodes are not of the node image that is asked for."""
    if asked is None:
        return
    wanted = image.daemon_id(asked)
    for has, identity in images_of(kind.nodes(name)):
        # The same image may have several names, and a name may have moved to another image.
        if identity != wanted if wanted else has != asked:
            then = " as it was then" if has == asked else ""
            raise ClusterError(
                f"kind cluster {name} is there already, of node image {has}{then}, and {asked} is"
                " asked for: expected a cluster that is what the question is about. To have it made"
                f" anew: kind delete cluster --name {name}; or make another one (--cluster-name"
                " NAME), or ask about this one (no --kind-image, no --dw-kind-image)"
            )


def _ask(request: pytest.FixtureRequest, name: str) -> Any:
    try:
        cluster = request.getfixturevalue(FIXTURE)
    except pytest.FixtureLookupError as error:
        raise ClusterError(
            f"there is no fixture {FIXTURE}: expected pytest-kind's. Install it: pip install"
            " 'pytest-drainwatch[kind]'"
        ) from error
    except Exception as error:  # whatever pytest-kind, kind or a fixture of the user's raises
        raise ClusterError(
            f"the fixture {FIXTURE} gave no cluster: {_one_line(error)}. Expected kind to make"
            f" cluster {name}; what it said is among the captured output. Try: kind create cluster"
            f" --name {name}"
        ) from error
    if cluster.name != name:
        raise ClusterError(
            f"the fixture {FIXTURE} gave cluster {cluster.name}: expected {name}, which is what"
            " --cluster-name says. Give your own fixture's cluster that name"
        )
    return cluster


def _end_with_the_last(cluster: Any, share: Share, keep: Callable[[], bool]) -> None:
    """Have the fixture's end delete the cluster only if nobody uses it any more."""
    delete = cluster.delete

    def delete_if_last() -> None:
        with share.door(lambda: None):
            if share.leave(keep=keep()):
                delete()

    cluster.delete = delete_if_last


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
