"""What may go wrong when a run is over: it becomes a line, and the outcome stays as it was."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

ONE = "def test_it(trial): pass\n"
VOID = """
import pytest
from pytest_drainwatch import TrialVoid

@pytest.fixture
def dw_flows(dw_flows):
    raise TrialVoid("nothing here works")

def test_it(trial): pass
"""


def broken(suite: pytest.Pytester, module: str, name: str, does: str) -> None:
    """Something of ours that fails when it is called."""
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "\n@pytest.fixture(autouse=True)\n"
            "def broken(measured, request):\n"
            "    import importlib\n"
            f"    module = importlib.import_module('pytest_drainwatch.{module}')\n"
            "    patch = pytest.MonkeyPatch()\n"
            "    request.config.add_cleanup(patch.undo)\n"
            f"    def fail(*_, **__): {does}\n"
            f"    patch.setattr(module, {name!r}, fail)\n"
        )


def properties(suite: pytest.Pytester) -> dict[str, str]:
    """What junit has of the whole run."""
    found = ET.parse(suite.path / "r.xml").iterfind(".//testsuite/properties/property")
    return {each.attrib["name"]: each.attrib["value"] for each in found}


def test_ctrl_c_while_the_page_is_written_costs_no_word_about_the_run(
    suite: pytest.Pytester,
) -> None:
    broken(suite, "pages.writing", "write_run", "raise KeyboardInterrupt")
    suite.makepyfile(ONE)
    suite.makeini("[pytest]\ndw_keep_runs = 1\n")
    older = suite.path / "results" / "20200101T000000Z-1"
    (older / "a" / "r00").mkdir(parents=True)
    (older / "a" / "r00" / "report.json").write_text("{}")
    result = suite.runpytest("--dw-markdown=r.md")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "  drain-delete *report.json",
            "interrupted: no page is written, no job summary is written, no old run was removed",
            "*1 passed*",
        ]
    )
    assert len(list(suite.path.glob("results/2*/summary.json"))) == 1
    assert older.is_dir(), "who is in a hurry wants nothing removed"


@pytest.mark.parametrize("fails_on", ["regression", "never"])
def test_ctrl_c_while_runs_are_compared_is_no_pass(suite: pytest.Pytester, fails_on: str) -> None:
    suite.makepyfile(ONE)
    suite.runpytest("--dw-out=before").assert_outcomes(passed=1)
    broken(suite, "repeats.comparison", "against", "raise KeyboardInterrupt")
    result = suite.runpytest("--dw-baseline=before/latest", f"--dw-fail-on={fails_on}")
    assert result.ret == (0 if fails_on == "never" else pytest.ExitCode.TESTS_FAILED)
    result.stdout.fnmatch_lines(["no comparison: interrupted"])


def test_a_summary_that_cannot_be_written_costs_nobody_else_his_own(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(
        """
        def test_it(trial):
            (trial.folder.parents[1] / "summary.json").mkdir()
        """
    )
    result = suite.runpytest("--dw-markdown=r.md")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["page: *", "summary.json is not written: *"])
    said = (suite.path / "r.md").read_text()
    assert "1 of 1 trials measured" in said
    assert "page: results/" in said
    assert "summary: " not in said, "it is not there"


def test_a_page_that_is_not_there_is_named_by_nobody_who_writes_after_it(
    suite: pytest.Pytester,
) -> None:
    broken(suite, "pages.writing", "write_run", "raise OSError(28, 'No space left on device')")
    suite.makepyfile(ONE)
    result = suite.runpytest("--dw-markdown=r.md")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["no page is written: OSError: *No space left on device"])
    assert "page: " not in (suite.path / "r.md").read_text()


def test_a_void_run_has_no_page_and_names_none(suite: pytest.Pytester) -> None:
    suite.makepyfile(VOID)
    suite.runpytest(*("--junitxml=r.xml", "--json-report", "--json-report-file=r.json"))
    assert properties(suite).keys() == {"dw.run", "dw.summary"}
    run = json.loads((suite.path / "r.json").read_text())["drainwatch"]["run"]
    assert run.keys() == {"run", "summary"}
    assert (suite.path / run["summary"]).is_file()


def test_a_run_whose_trials_were_all_skipped_names_no_file(suite: pytest.Pytester) -> None:
    suite.makepyfile(f"import pytest\n@pytest.mark.skip\n{ONE}")
    suite.runpytest("--junitxml=r.xml").assert_outcomes(skipped=1)
    assert properties(suite) == {}


def test_a_fault_of_ours_harms_neither_junit_nor_json(suite: pytest.Pytester) -> None:
    broken(suite, "telling.facts", "of_run", "raise RuntimeError('a bug,\\nof ours')")
    suite.makepyfile(ONE)
    result = suite.runpytest(*("--junitxml=r.xml", "--json-report", "--json-report-file=r.json"))
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "junit has no properties of the run: RuntimeError: a bug, of ours",
            "the JSON report has nothing of the run: RuntimeError: a bug, of ours",
        ]
    )
    assert json.loads((suite.path / "r.json").read_text())["summary"]["passed"] == 1
    assert properties(suite) == {}


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("file/r.md", "*file is no folder;*"),
        (".", "this is a folder;*"),
        ("x" * 300, "File name too long;*"),
    ],
    ids=["below a file", "a folder", "too long"],
)
def test_a_job_summary_that_cannot_be_written_is_known_before_anything_is_measured(
    suite: pytest.Pytester, target: str, why: str
) -> None:
    (suite.path / "file").write_text("")
    suite.makepyfile(ONE)
    result = suite.runpytest(f"--dw-markdown={target}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --dw-markdown=*: {why} expected *"])
    assert not (suite.path / "results").exists()


def test_who_measures_nothing_need_not_be_able_to_write(suite: pytest.Pytester) -> None:
    (suite.path / "file").write_text("")
    suite.makeini("[pytest]\ndw_markdown = file/r.md\n")
    suite.makepyfile("def test_else(): pass\n")
    suite.runpytest().assert_outcomes(passed=1)
    suite.makepyfile(ONE)
    suite.runpytest("--collect-only").stdout.fnmatch_lines(["*1 test collected*"])
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dw-markdown=file/r.md (ini): *"])


def test_workers_are_not_started_for_it_in_vain(suite: pytest.Pytester) -> None:
    (suite.path / "file").write_text("")
    suite.makepyfile(ONE)
    result = suite.runpytest_subprocess("-n1", "--dw-markdown=file/r.md")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dw-markdown=file/r.md: *"])
    assert not list(suite.path.glob("results/2*/*/r00"))


@pytest.mark.parametrize("by", ["ini", "environment", "command line"])
def test_where_a_relative_path_leads(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """From the ini's folder, or from where pytest was called: and no test's chdir changes that."""
    below = suite.mkdir("below")
    (below / "test_it.py").write_text("import os\ndef test_it(trial): os.chdir('/')\n")
    if by == "ini":
        suite.makeini("[pytest]\ndw_markdown = out/r.md\n")
    elif by == "environment":
        monkeypatch.setenv("DW_MARKDOWN", "out/r.md")
    monkeypatch.chdir(below)
    suite.runpytest(*(["--dw-markdown=out/r.md"] if by == "command line" else []))
    assert ((suite.path if by == "ini" else below) / "out" / "r.md").is_file()


def test_without_a_terminal_all_is_written(suite: pytest.Pytester) -> None:
    suite.makepyfile(ONE)
    assert suite.runpytest("-p", "no:terminal", "--dw-markdown=r.md").ret == 0
    (run,) = suite.path.glob("results/2*")
    assert {"report.html", "summary.json"} <= {each.name for each in run.iterdir()}
    assert (suite.path / "r.md").is_file()


def test_maxfail_ends_it_and_what_was_not_begun_is_named(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from pytest_drainwatch import Scenario

        @pytest.mark.parametrize("scenario", [Scenario(name="a"), Scenario(name="b")])
        def test_it(trial):
            assert not trial.tcp.total
        """
    )
    result = suite.runpytest("-x", "--dw-markdown=r.md")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = (suite.path / "r.md").read_text()
    assert "1 of 2 trials measured" in said
    assert "- b r00" in said


PROMISES = """
import pytest

def test_several_lines(trial):
    assert (
        trial.tcp.drained
        == trial.tcp.total + 1
    ), "all of them"

def cut_off(trial):
    __tracebackhide__ = True
    pytest.fail("cut")

def test_hidden(trial):
    cut_off(trial)

def test_a_mistake(trial):
    {}["nowhere"]

def test_long(trial):
    assert not trial.tcp.total, "%s"
""" % ("x" * 400)


def test_a_promise_is_a_whole_statement_and_a_mistake_is_none(suite: pytest.Pytester) -> None:
    suite.makepyfile(PROMISES)
    suite.runpytest("--junitxml=r.xml", "--dw-markdown=r.md").assert_outcomes(failed=4)
    found = {
        case.attrib["name"]: {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
        for case in ET.parse(suite.path / "r.xml").iter("testcase")
    }
    promises = {name: told.get("dw.promise") for name, told in found.items()}
    assert promises["test_several_lines"] == (
        'assert ( trial.tcp.drained == trial.tcp.total + 1 ), "all of them"'
    )
    assert promises["test_hidden"] == "cut_off(trial)"
    assert promises["test_a_mistake"] is None
    assert len(promises["test_long"] or "") == 300
    (row,) = re.findall(
        r"^\| test&#95;a&#95;mistake \|(.*?)\|", (suite.path / "r.md").read_text(), re.M
    )
    assert row.strip() == "none told: it failed otherwise"


def test_an_interrupted_run_says_what_it_has(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import os
        import signal
        import pytest
        from pytest_drainwatch import Scenario

        @pytest.mark.parametrize("scenario", [Scenario(name="a"), Scenario(name="b")])
        def test_it(trial):
            os.kill(os.getpid(), signal.SIGINT)
        """
    )
    result = suite.runpytest_subprocess("--dw-markdown=r.md")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["page: results/*"])
    assert "1 of 2 trials measured" in (suite.path / "r.md").read_text()
