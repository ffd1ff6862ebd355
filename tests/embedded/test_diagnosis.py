"""Why a cluster died, in the words of its components."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.embedded.diagnosis import cause_of_death
from pytest_drainwatch.cluster.embedded.layout import Layout

INOTIFY = "failed to create fsnotify watcher: too many open files"


@pytest.mark.parametrize("component", ["kubelet", "containerd"])
@pytest.mark.parametrize(("said", "named"), [(INOTIFY, True), ("all is well", False)])
def test_a_host_without_inotify_instances_is_named(
    component: str, said: str, named: bool, tmp_path: Path
) -> None:
    """The kubelet dies of its own lack, and of containerd's, which it does not tell."""
    layout = Layout(state=tmp_path, logs=tmp_path)
    layout.ended.write_text(json.dumps({"component": "kubelet", "code": 1}))
    layout.log("kubelet").write_text("unknown service runtime.v1.RuntimeService\n")
    with layout.log(component).open("a") as log:
        log.write(said + "\n")
    told = cause_of_death(layout)
    assert "RuntimeService" in told
    assert ("max_user_instances" in told) is named
