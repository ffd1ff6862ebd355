"""The table of versions has those that the package asks for."""

from __future__ import annotations

import re
import tomllib

from pytest_drainwatch.options import KUBE_VERSIONS
from tests.docs.conftest import DOCS

PROJECT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ROWS = dict(
    re.findall(
        r"^\| ([\w ,-]+) \| ([^|]+) \|", (DOCS / "versions.md").read_text("utf-8"), re.MULTILINE
    )
)


def test_python_is_as_the_package_says() -> None:
    named = re.findall(r"3\.\d+", ROWS["Python"])
    prefix = "Programming Language :: Python :: "
    classified = [each.removeprefix(prefix) for each in PROJECT["classifiers"] if prefix in each]
    assert named == [each for each in classified if "." in each]
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_pytest_is_as_the_package_says() -> None:
    (asked,) = (each for each in PROJECT["dependencies"] if each.startswith("pytest>"))
    least, most = re.findall(r"\d+(?:\.\d+)?", ROWS["pytest"])
    assert asked == f"pytest>={least},<{int(most) + 1}"


def test_kubernetes_is_as_the_option_says() -> None:
    assert re.findall(r"\d\.\d+", ROWS["Kubernetes, embedded"]) == list(KUBE_VERSIONS)
