"""Each recipe of the cookbook does what it says, on a real cluster, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.conftest import DOCS

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROOT = DOCS.parent
EXAMPLES = DOCS / "examples"
# Of somebody's own service: it has to be there.
OF_THE_SHOP = {"test_keep_alive.py"}
OF_THE_PROBE = sorted({path.name for path in EXAMPLES.glob("test_*.py")} - OF_THE_SHOP)
CLUSTER, SHOP = "docs-cookbook", "shop"
READY_TIMEOUT_S = 60.0


def run(program: str, *arguments: object) -> str:
    """One of our programs, as it is typed; its output. Fails the test where it fails."""
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *map(str, arguments)],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if not key.startswith("DW_")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{program} {arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("example", OF_THE_PROBE)
def test_the_recipe_holds(example: str, tmp_path: Path) -> None:
    said = run("pytest", EXAMPLES / example, "--dw-cluster=embedded", "--dw-out", tmp_path)
    assert " passed" in said
    assert list(tmp_path.glob("*/*/r00/report.json"))


@pytest.fixture
def shop() -> Iterator[Path]:
    """A cluster that anybody could have, with the shop in it; its kubeconfig."""
    told = json.loads(run("drainwatch", "cluster", "up", "--name", CLUSTER, "--json"))
    try:
        _deploy(told["kubeconfig"])
        yield Path(told["kubeconfig"])
    finally:
        run("drainwatch", "cluster", "down", "--name", CLUSTER)


def test_a_shop_that_ends_as_it_should_fails_no_request(shop: Path, tmp_path: Path) -> None:
    given = ("--dw-kubeconfig", shop, "--dw-out", tmp_path)
    assert " passed" in run("pytest", EXAMPLES / "test_keep_alive.py", *given)


def _deploy(kubeconfig: str) -> None:
    """docs/examples/shop.yaml; without a registry its Python is that of the probe's image."""
    from kubernetes import client, config, utils
    from yaml import safe_load_all

    api = config.new_client_from_config(kubeconfig)
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    core.create_namespace({"metadata": {"name": SHOP}})
    (node,) = core.list_node().items
    names = [name for image in node.status.images for name in image.names or ()]
    image = next(name for name in names if "probe" in name)
    objects: list[dict[str, Any]] = list(safe_load_all((EXAMPLES / "shop.yaml").read_text()))
    for item in objects:
        if item["kind"] == "Deployment":
            (container,) = item["spec"]["template"]["spec"]["containers"]
            container["image"] = image
        utils.create_from_dict(api, item, namespace=SHOP)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while apps.read_namespaced_deployment("web", SHOP).status.ready_replicas != 2:
        assert time.monotonic() < deadline, f"shop/web: {core.list_namespaced_pod(SHOP)}"
        time.sleep(0.2)
    api.close()
