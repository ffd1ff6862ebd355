"""What junit, pytest-json-report and a Markdown job summary carry of a run: each by itself."""

from __future__ import annotations

import json
import re
import textwrap
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import ROOT

OTHER_FAMILY = pytest.param("xunit1", marks=pytest.mark.slow)
BESIDE = pytest.param(["-n2", "-p", "xdist"], marks=pytest.mark.slow, id="xdist")
ALL = (
    *("--junitxml=r.xml", "--json-report", "--json-report-file=r.json"),
    *("--dw-markdown=out/r.md", "--dw-trace"),
)

# The attributes and elements of junit-10.xsd, by which Jenkins' xUnit plugin checks a file, as
# far as pytest writes them. But for one: it knows no properties of test cases.
ALLOWED = {
    "testsuites": ({"name"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set[str](), {"property"}),
    "property": ({"name", "value"}, set[str]()),
    "testcase": (
        {"name", "classname", "time"},
        {"properties", "skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"message", "type"}, set[str]()),
    "error": ({"message", "type"}, set[str]()),
    "skipped": ({"message", "type"}, set[str]()),
}

TRACE = "results/2*/*/r00/trace.json"

VOID = """
import pytest
from pytest_drainwatch import TrialVoid

@pytest.fixture
def voided():
    raise TrialVoid("preflight check 'x' failed\\n  invariant: \\x1b[31my\\x00 & <z>")

def test_void(voided, trial): pass
"""


def properties(element: ET.Element | None) -> dict[str, str]:
    assert element is not None
    return {p.attrib["name"]: p.attrib["value"] for p in element.iterfind("properties/property")}


def cases(path: Path) -> dict[str, ET.Element]:
    return {case.attrib["name"]: case for case in ET.parse(path).iter("testcase")}


def check_schema(element: ET.Element) -> None:
    attributes, children = ALLOWED[element.tag]
    assert set(element.attrib) <= attributes, element.tag
    for child in element:
        assert child.tag in children, f"{child.tag} in {element.tag}"
        check_schema(child)


@pytest.mark.parametrize("workers", [[], ["-n2", "-p", "xdist"]], ids=["one", "xdist"])
def test_one_run_tells_everybody(drain_suite: pytest.Pytester, workers: list[str]) -> None:
    drain_suite.makepyfile(test_void=VOID)
    run = drain_suite.runpytest_subprocess if workers else drain_suite.runpytest
    run(*ALL, *workers).assert_outcomes(passed=1, failed=2, errors=1)
    check_junit(drain_suite.path)
    check_schema(ET.parse(drain_suite.path / "r.xml").getroot())
    check_json(drain_suite.path)
    check_job_summary(drain_suite.path)
    check_traces(drain_suite.path)


def check_junit(folder: Path) -> None:
    found = cases(folder / "r.xml")
    told = {name: properties(case) for name, case in found.items()}
    (passed, reset) = (
        told[f"test_connections_close_cleanly[{scenario}-delete]"]
        for scenario in ("drain", "exit-now")
    )
    assert passed["dw.scenario"] == "drain-delete"
    assert passed["dw.hurt"] == "nobody"
    assert "dw.promise" not in passed
    assert reset["dw.promise"] == "assert trial.tcp.drained == trial.tcp.total"
    assert reset["dw.hurt"].startswith("tcp: 1/1 rst")
    assert reset["dw.try"]
    for each in (passed, reset):
        assert (folder / each["dw.report"]).is_file()
        page, _, route = each["dw.page"].partition("#")
        assert (folder / page).is_file()
        assert route == f"/trial/{each['dw.scenario']}%2Fr00"
        assert float(each["dw.lasted_s"]) > 0
        assert each["dw.repeat"] == "r00"
    assert told["test_void"] == {}
    error = found["test_void"].find("error")
    assert error is not None
    assert "preflight check 'x' failed" in error.attrib["message"]
    suite = properties(ET.parse(folder / "r.xml").find("testsuite"))
    assert (folder / suite["dw.run"]).is_dir()
    assert (folder / suite["dw.summary"]).is_file()
    assert (folder / suite["dw.page"]).is_file()
    assert suite["dw.build"] == passed["dw.build"]
    assert suite["dw.kubernetes"] == passed["dw.kubernetes"]


def check_json(folder: Path) -> None:
    document = json.loads((folder / "r.json").read_text())
    tests = {test["nodeid"].rpartition("::")[2]: test for test in document["tests"]}
    reset = tests["test_connections_close_cleanly[exit-now-delete]"]
    (told,) = reset["metadata"]["drainwatch"]
    assert told["promise"] == "assert trial.tcp.drained == trial.tcp.total"
    assert told["hurt"].startswith("tcp: 1/1 rst")
    assert told["stalls"] == 0, "numbers stay numbers"
    assert {"dw.promise": told["promise"]} in reset["user_properties"]
    assert "drainwatch" not in tests["test_void"].get("metadata", {})
    run = document["drainwatch"]
    assert sorted(trial["scenario"] for trial in run["trials"]) == [
        *("drain-delete", "exit-now-delete", "ignore-delete")
    ]
    assert {trial["outcome"] for trial in run["trials"]} == {"passed", "failed"}
    summary = json.loads((folder / run["run"]["summary"]).read_text())
    # The void trial, of which no test could tell, is in the summary.
    assert [t["state"] for t in summary["trials"]].count("measured") == 3
    assert len(summary["trials"]) == 4
    assert (folder / run["run"]["page"]).is_file()


def check_job_summary(folder: Path) -> None:
    said = (folder / "out" / "r.md").read_text()
    assert "3 of 4 trials measured" in said
    rows = [line for line in said.splitlines() if "assert trial.tcp.drained" in line]
    assert len(rows) == 2
    assert all(len(re.findall(r"\|", row)) == 5 for row in rows)
    assert any("exit-now-delete" in row and "1/1 rst" in row for row in rows)
    assert "### Incomplete" in said
    assert re.search(r"page: results/\S+/report.html", said)


def check_traces(folder: Path) -> None:
    found = sorted(folder.glob(TRACE))
    assert [path.parent.parent.name for path in found] == [
        *("drain-delete", "exit-now-delete", "ignore-delete")
    ]
    for path in found:
        document: dict[str, Any] = json.loads(path.read_text())
        assert document["traceEvents"]
    told = [properties(case) for case in cases(folder / "r.xml").values()]
    named = {each["dw.trace"] for each in told if each}
    assert named == {str(path.relative_to(folder)) for path in found}


@pytest.mark.parametrize("family", ["xunit1", "legacy"])
def test_the_older_families_carry_the_same(drain_suite: pytest.Pytester, family: str) -> None:
    drain_suite.runpytest("--junitxml=r.xml", "-o", f"junit_family={family}", "-k", "exit-now")
    (case,) = cases(drain_suite.path / "r.xml").values()
    assert case.attrib["file"] == "test_termination.py"
    assert properties(case)["dw.hurt"].startswith("tcp: 1/1 rst")
    assert "dw.run" in properties(ET.parse(drain_suite.path / "r.xml").find("testsuite"))


def test_a_run_without_trials_tells_junit_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(record_property): pass")
    pytester.runpytest("--junitxml=r.xml", "-W", "ignore").assert_outcomes(passed=1)
    assert "dw." not in (pytester.path / "r.xml").read_text()
    pytester.runpytest("--json-report", "--json-report-file=r.json", "-W", "ignore")
    document = json.loads((pytester.path / "r.json").read_text())
    assert document["drainwatch"] == {"schema": 1, "trials": []}


def test_what_the_docs_say_satisfies_a_reader_that_knows_no_properties_of_tests(
    drain_suite: pytest.Pytester,
) -> None:
    page = (ROOT / "docs" / "integration.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```python\n( +# conftest.py\n.*?)```", page, re.DOTALL)
    with (drain_suite.path / "conftest.py").open("a") as conftest:
        conftest.write(textwrap.dedent(recipe))
    result = drain_suite.runpytest("--junitxml=r.xml")
    result.stdout.fnmatch_lines(["*drain-delete*1/1 announced-fin*"])
    found = ET.parse(drain_suite.path / "r.xml")
    check_schema(found.getroot())
    assert found.findall(".//testcase/properties") == []
    assert "dw.run" in properties(found.find("testsuite"))


HOSTILE = """
import pytest
from pytest_drainwatch import Scenario

@pytest.mark.parametrize("scenario", [Scenario(name="a")])
def test_hostile(trial, monkeypatch):
    assert not trial.tcp.drained, "\\x1b[31m \\x00 \\ufffe ]]> & <failure> | ` \\n# heading"
"""


@pytest.mark.parametrize("family", ["xunit2", OTHER_FAMILY])
def test_no_character_breaks_the_xml(suite: pytest.Pytester, family: str) -> None:
    suite.makepyfile(HOSTILE)
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\n@pytest.fixture(autouse=True)\n"
            "def odd(monkeypatch):\n"
            "    from importlib import import_module\n"
            "    terminal = import_module('pytest_drainwatch.render.terminal')\n"
            "    monkeypatch.setattr(terminal, 'counts', lambda _: '\\x1b\\x00\\ufffe]]>&<a>')\n"
        )
    suite.runpytest("--junitxml=r.xml", "-o", f"junit_family={family}").assert_outcomes(failed=1)
    (case,) = cases(suite.path / "r.xml").values()
    assert properties(case)["dw.tcp"] == "#x1B#x00#xFFFE]]>&<a>"


FLAKY = """
import pytest
from pytest_drainwatch import Scenario

@pytest.mark.parametrize("scenario", [Scenario(name="one")])
def test_flaky(trial):
    assert len(list(trial.folder.parent.iterdir())) == 2, "the first time"
"""


@pytest.mark.parametrize("workers", [[], BESIDE])
def test_run_again_each_attempt_tells_of_itself_alone(
    suite: pytest.Pytester, workers: list[str]
) -> None:
    suite.makepyfile(FLAKY)
    suite.runpytest_subprocess("--reruns=1", *ALL, *workers)
    (case,) = cases(suite.path / "r.xml").values()
    told = properties(case)
    assert told["dw.report"].endswith("one/r00.2/report.json")
    assert "dw.promise" not in told, "the second attempt held it"
    names = [p.attrib["name"] for p in case.iterfind("properties/property")]
    assert len(names) == len(set(names))
    document = json.loads((suite.path / "r.json").read_text())
    attempts = document["drainwatch"]["trials"]
    assert [(t["attempt"], t["outcome"]) for t in attempts] == [(1, "failed"), (2, "passed")]
    assert "promise" in attempts[0]
    assert "promise" not in attempts[1]
    assert "test&#95;flaky&#91;one&#93; (attempt 1)" in (suite.path / "out" / "r.md").read_text()


def test_several_trials_of_a_test_have_a_number(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from pytest_drainwatch import App, Scenario

        def test_two(drainwatch):
            first = drainwatch(Scenario())
            drainwatch(Scenario(app=App(behavior="exit-now")))
            assert not first.tcp.drained
        """
    )
    suite.runpytest("--junitxml=r.xml").assert_outcomes(failed=1)
    told = properties(cases(suite.path / "r.xml")["test_two"])
    assert (told["dw.scenario"], told["dw2.scenario"]) == ("drain-delete", "exit-now-delete")
    assert told["dw.promise"] == "assert not first.tcp.drained"


@pytest.mark.parametrize("style", ["native", "no"])
def test_the_promise_is_told_whatever_tracebacks_are_shown(
    drain_suite: pytest.Pytester, style: str
) -> None:
    drain_suite.runpytest("--junitxml=r.xml", f"--tb={style}", "-k", "exit-now")
    (case,) = cases(drain_suite.path / "r.xml").values()
    assert properties(case)["dw.promise"] == "assert trial.tcp.drained == trial.tcp.total"


def test_a_step_of_github_is_added_to_and_only_when_asked(
    drain_suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = drain_suite.path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    drain_suite.runpytest("-k", "drain", f"--dw-markdown={step}")
    assert step.read_text().startswith("before\n## What happened")
    step.write_text("before\n")
    other = drain_suite.path / "other.md"
    other.write_text("before\n")
    drain_suite.runpytest("-k", "drain", f"--dw-markdown={other}")
    assert other.read_text().startswith("## What happened")
    assert step.read_text() == "before\n"


def test_a_job_summary_that_can_no_longer_be_written_is_a_line(suite: pytest.Pytester) -> None:
    suite.makepyfile("def test_it(trial, request): (request.config.rootpath / 'r.md').mkdir()")
    result = suite.runpytest("--dw-markdown=r.md")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["no job summary is written: *r.md*"])


def test_with_a_baseline_the_job_summary_says_what_it_says(drain_suite: pytest.Pytester) -> None:
    drain_suite.runpytest("-k", "drain", "--dw-repeat=2", "--dw-out=before")
    drain_suite.runpytest(
        *("-k", "drain", "--dw-repeat=2", "--dw-markdown=r.md"),
        *("--dw-baseline=before/latest", "--dw-fail-on=never"),
    )
    said = (drain_suite.path / "r.md").read_text()
    assert "### Against the baseline" in said
    assert said.count("<pre>") == said.count("</pre>") == 1


@pytest.mark.parametrize(("said", "written"), [("yes", True), ("no", False)])
def test_an_ini_can_ask_for_traces(
    drain_suite: pytest.Pytester, said: str, *, written: bool
) -> None:
    drain_suite.makeini(f"[pytest]\ndw_trace = {said}\n")
    drain_suite.runpytest("-k", "drain")
    assert bool(list(drain_suite.path.glob(TRACE))) is written


def test_a_trace_that_cannot_be_made_harms_no_trial(drain_suite: pytest.Pytester) -> None:
    with (drain_suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\n@pytest.fixture(autouse=True)\n"
            "def broken(monkeypatch):\n"
            "    def fail(*_, **__): raise RuntimeError('a bug in drawing')\n"
            "    import pytest_drainwatch.render.trace.trials as trials\n"
            "    monkeypatch.setattr(trials, 'picture', fail)\n"
        )
    result = drain_suite.runpytest("--dw-trace", "-k", "drain")
    result.assert_outcomes(passed=1, deselected=2)
    result.stdout.fnmatch_lines(["no trace of drain-delete: cannot be written: a bug in drawing"])


def test_a_bad_word_for_traces_is_a_usage_error(drain_suite: pytest.Pytester) -> None:
    drain_suite.makeini("[pytest]\ndw_trace = perhaps\n")
    result = drain_suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *--dw-trace=perhaps (ini): expected yes or no*"])
