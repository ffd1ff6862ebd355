"""pytest-kind's fixture asked for by name: its traps, with a `kind` that notes what it is told.

What a real kind does is in test_real.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

KIND = """#!/bin/sh
here={here}
echo "$*" >> $here/said
name=$(echo "$*" | sed -n 's/.*--name[ =]\\([^ ]*\\).*/\\1/p')
case "$1 $2" in
"get nodes") echo $name-control-plane ;;
"get clusters") cat $here/clusters 2>/dev/null || : ;;
"create cluster")
  case "$*" in *--config*) cat > $here/config ;; esac
  test -e $here/broken && {{ echo "no such image" >&2; echo $name >> $here/clusters; exit 1; }}
  echo $name >> $here/clusters ;;
"delete cluster") grep -vx "$name" $here/clusters > $here/left; mv $here/left $here/clusters ;;
esac
exit 0
"""
DOCKER = """#!/bin/sh
here={here}
case "$1 $2" in
"inspect "*) echo '[{{"Config": {{"Image": "node:1"}}, "Image": "sha256:one"}}]' ;;
"image inspect")
  for last; do :; done
  sed -n "s|^$last ||p" $here/images 2>/dev/null | grep . || exit 1 ;;
esac
"""
# What of pytest-kind is relied on: names of its options, of its fixture and of what that gives.
PYTEST_KIND = """
import subprocess
from pathlib import Path
import pytest

class Cluster:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind
        self.kubeconfig_path = Path(".pytest-kind", name, "kubeconfig")
    def delete(self):
        subprocess.run([self.kind, "delete", "cluster", "--name", self.name], check=True)

@pytest.fixture(scope="session")
def kind_cluster(request):
    option = request.config.getoption
    keep = option("keep_cluster")
    cluster = Cluster(option("cluster_name"), option("kind_bin") or "/downloaded/kind")
    listed = subprocess.run([cluster.kind, "get", "clusters"], stdout=subprocess.PIPE, text=True)
    if cluster.name not in listed.stdout.split():
        command = [cluster.kind, "create", "cluster", f"--name={cluster.name}"]
        subprocess.run([*command, f"--image={option('kind_image')}"], check=True)
    yield cluster
    if not keep:
        cluster.delete()

def pytest_addoption(parser):
    parser.addoption("--cluster-name", default="pytest-kind")
    parser.addoption("--keep-cluster", action="store_true")
    for name in ("--kubeconfig", "--kind-image", "--kind-bin", "--kind-kubectl-bin"):
        parser.addoption(name, default=None)
"""
SUITE = """
import pytest
from pytest_drainwatch.borrowing import borrow
from pytest_drainwatch.cluster import ClusterError
from pytest_drainwatch.cluster.kind.shape import Shape

KEEP, SHAPE = False, Shape()

@pytest.fixture(scope="session")
def given(request):
    return borrow(request, SHAPE, log=print, keep=lambda: KEEP)

def test_it(given, request):
    print("GIVEN", given.name, given.kubeconfig, request.config.getoption("kind_bin"))
"""


@pytest.fixture
def here(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `kind` and a `docker` on PATH, and a suite that borrows."""
    programs = pytester.mkdir("bin")
    for name, text in {"kind": KIND, "docker": DOCKER}.items():
        (programs / name).write_text(text.format(here=pytester.path))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin:/bin")
    monkeypatch.setenv("DW_STATE", str(pytester.mkdir("state")))
    pytester.makepyfile(stand_in=PYTEST_KIND)
    pytester.syspathinsert()
    pytester.makepyfile(test_borrowed=SUITE)
    return pytester.path


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # In a process of its own: how others' options are named in this one is nobody's business.
    return pytester.runpytest_subprocess(
        "-p", "stand_in", "-p", "no:kind", "-p", "no:cacheprovider", "-s", *arguments
    )


def said(here: Path) -> list[str]:
    return (here / "said").read_text().splitlines()


def edit(here: Path, old: str, new: str) -> None:
    suite = here / "test_borrowed.py"
    assert old in suite.read_text()
    suite.write_text(suite.read_text().replace(old, new))


def test_the_fixture_makes_it_with_the_kind_on_path_and_deletes_it(
    pytester: pytest.Pytester, here: Path
) -> None:
    result = run(pytester, "--kind-image", "node:1")
    result.assert_outcomes(passed=1)
    kubeconfig = here / ".pytest-kind" / "pytest-kind" / "kubeconfig"
    result.stdout.fnmatch_lines([f"*GIVEN pytest-kind {kubeconfig} {here / 'bin' / 'kind'}"])
    made = [line for line in said(here) if line.startswith("create")]
    assert made == ["create cluster --name=pytest-kind --image=node:1"]
    assert said(here)[-1].startswith("delete cluster")
    assert (here / "clusters").read_text() == ""


def test_a_shape_is_made_before_the_fixture_looks(pytester: pytest.Pytester, here: Path) -> None:
    edit(here, "Shape()\n", "Shape(nodes=2, image='node:2')\n")
    run(pytester).assert_outcomes(passed=1)
    made = [line for line in said(here) if line.startswith("create")]
    assert len(made) == 1
    assert "--image node:2 --config -" in made[0]
    assert '"worker"' in (here / "config").read_text()
    assert (here / "clusters").read_text() == ""


def test_a_lost_kubeconfig_is_written_again_before_the_fixture_reads_it(
    pytester: pytest.Pytester, here: Path
) -> None:
    (here / "clusters").write_text("pytest-kind\n")
    result = run(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*pytest-kind is there already, and is used"])
    assert any(line.startswith("export kubeconfig --name pytest-kind") for line in said(here))
    assert not any(line.startswith("create") for line in said(here))


@pytest.mark.parametrize(
    ("asked", "images", "used"),
    [
        ("node:2", "node:1 sha256:one\nnode:2 sha256:two\n", False),
        ("node:2", "", False),
        ("node:1", "node:1 sha256:moved\n", False),
        ("node:1", "node:1 sha256:one\n", True),
        ("node:1", "", True),
        ("docker.io/node:1@sha256:d", "docker.io/node:1@sha256:d sha256:one\n", True),
    ],
)
@pytest.mark.parametrize("option", ["--kind-image", "ours"])
def test_a_cluster_that_is_there_must_be_of_the_node_image_that_is_asked_for(
    pytester: pytest.Pytester, here: Path, asked: str, images: str, used: bool, option: str
) -> None:
    (here / "clusters").write_text("pytest-kind\n")
    (here / "images").write_text(images)
    if option == "ours":
        edit(here, "Shape()\n", f"Shape(image={asked!r})\n")
        result = run(pytester)
    else:
        result = run(pytester, option, asked)
    result.assert_outcomes(passed=used, errors=not used)
    if not used:
        told = f"*is there already, of node image node:1*and {asked} is asked for: expected*"
        result.stdout.fnmatch_lines([f"{told}kind delete cluster --name pytest-kind*"])
        assert (here / "clusters").read_text() == "pytest-kind\n"


@pytest.mark.parametrize("arguments", [("--keep-cluster",), ()])
def test_what_is_to_be_kept_is_not_deleted(
    pytester: pytest.Pytester, here: Path, arguments: tuple[str, ...]
) -> None:
    if not arguments:
        edit(here, "KEEP, SHAPE = False", "KEEP, SHAPE = True")
    run(pytester, *arguments).assert_outcomes(passed=1)
    assert (here / "clusters").read_text() == "pytest-kind\n"


@pytest.mark.parametrize("shape", ["Shape()", "Shape(nodes=3)"])
def test_what_a_failed_attempt_leaves_is_removed(
    pytester: pytest.Pytester, here: Path, shape: str
) -> None:
    edit(here, "Shape()\n", f"{shape}\n")
    (here / "broken").touch()
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ClusterError: *create cluster*"])
    assert (here / "clusters").read_text() == ""


def test_a_fixture_of_ones_own_has_the_name_that_the_option_says(
    pytester: pytest.Pytester, here: Path
) -> None:
    pytester.makeconftest(
        "import types, pytest\n@pytest.fixture(scope='session')\ndef kind_cluster():\n"
        "    return types.SimpleNamespace(name='mine', kubeconfig_path='k', delete=print)\n"
    )
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*gave cluster mine: expected pytest-kind, which is what*"])
    run(pytester, "--cluster-name", "mine").assert_outcomes(passed=1)


def test_pytest_kinds_kubeconfig_option_is_explained(pytester: pytest.Pytester, here: Path) -> None:
    result = run(pytester, "--kubeconfig", "mine.yaml")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*note: --kubeconfig is pytest-kind's*--dw-kubeconfig mine.yaml"])


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("kind", "kind is not on PATH: expected the program*--kind-bin FILE*--dw-cluster=embedded"),
        ("docker", "docker* Expected a Docker daemon that answers*systemctl start docker*"),
    ],
)
def test_what_is_missing_is_named(
    pytester: pytest.Pytester, here: Path, missing: str, told: str
) -> None:
    program = here / "bin" / missing
    if missing == "kind":
        program.unlink()
    else:
        program.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*ClusterError: *{told}*"])


def test_without_pytest_kind_it_says_what_to_install(pytester: pytest.Pytester, here: Path) -> None:
    result = pytester.runpytest_subprocess("-p", "no:kind", "-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pip install 'pytest-drainwatch?kind?'*"])
