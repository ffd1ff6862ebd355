"""What other tools get of a real run: two trials on a cluster, told by every reporter at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cluster.runs import ROOT
from tests.trace.checker import problems

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SUITE = """
import pytest
from pytest_drainwatch import App, Scenario, matrix
from pytest_drainwatch.core.interval import NS_PER_S

SHORT = Scenario(app=App(drain_ns=3 * NS_PER_S, grace_period_s=8), settle_ns=2 * NS_PER_S)

@pytest.mark.parametrize(
    "scenario", matrix(behavior=["drain", "exit-now"], trigger=["delete"], base=SHORT)
)
def test_nobody_is_cut_off(trial):
    assert trial.tcp.drained == trial.tcp.total
"""


def properties(element: ET.Element) -> dict[str, str]:
    return {p.attrib["name"]: p.attrib["value"] for p in element.iterfind("properties/property")}


def test_junit_json_markdown_and_traces_of_two_trials(tmp_path: Path) -> None:
    (tmp_path / "test_drain.py").write_text(SUITE)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--dw-cluster=embedded"),
            *("--dw-trace", "--dw-markdown=summary.md", "--junitxml=junit.xml"),
            *("--json-report", "--json-report-file=report.json"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    drain, reset = (properties(case) for case in ET.parse(tmp_path / "junit.xml").iter("testcase"))
    assert drain["dw.tcp"] == "10/10 announced-fin"
    assert "tcp: " not in drain["dw.hurt"]
    assert "dw.promise" not in drain
    assert reset["dw.hurt"].startswith("tcp: 10/10 rst")
    assert "handle SIGTERM" in reset["dw.try"]
    assert "10 open TCP connections were cut off" in reset["dw.window"]
    assert reset["dw.promise"] == "assert trial.tcp.drained == trial.tcp.total"
    run = json.loads((tmp_path / "report.json").read_text())["drainwatch"]
    assert [trial["outcome"] for trial in run["trials"]] == ["passed", "failed"]
    assert run["run"]["kubernetes"] == drain["dw.kubernetes"]
    assert (tmp_path / run["run"]["page"]).is_file()
    assert "10/10 rst" in (tmp_path / "summary.md").read_text()
    for told, arrow, times in ((drain, "FIN", 10), (reset, "RST", 10)):
        text = (tmp_path / told["dw.trace"]).read_text()
        assert problems(text) == []
        begun = [e["name"] for e in json.loads(text)["traceEvents"] if e["ph"] == "s"]
        assert begun.count(arrow) == times
