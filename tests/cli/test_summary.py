"""summary.json: what a run measured, and, by name, what it did not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_drainwatch import report
from pytest_drainwatch.cli import main
from pytest_drainwatch.core.observation import Event
from pytest_drainwatch.core.repeats.summary import Planned, State, Summary
from pytest_drainwatch.render.summary import lines
from pytest_drainwatch.repeats.summary import SummaryError, summarise
from pytest_drainwatch.results import folder_name
from tests.cli import folders
from tests.cli.folders import mark, measured, recorded, void, write_summary
from tests.upstream import example

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "20261130T101112Z-77"


def read(run: Path) -> dict[str, Any]:
    """The file, and it is as its schema says."""
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())
    jsonschema.validate(found, report.schema("summary"))
    return found


def states(found: Summary) -> list[tuple[str | None, State, str | None]]:
    return [(entry.folder, entry.state, entry.why) for entry in found.trials]


def test_a_run_that_measured_all_it_planned_is_complete(run: Path) -> None:
    for name in ("r00", "r01"):
        measured(run, name=name, test=f"a.py::test[{name}]")
    planned = [
        Planned(scenario="drain-delete", repeat=n, test=f"a.py::test[r{n:02d}]") for n in range(2)
    ]
    write_summary(run, planned)
    found = read(run)
    assert (found["summary_schema"], found["run_id"]) == (1, "20261130T101112Z-77")
    assert (found["complete"], found["incomplete_because"], found["refused"]) == (True, [], [])
    assert found["trials"][1] == {
        "scenario": "drain-delete",
        "repeat": 1,
        "attempt": 1,
        "test": "a.py::test[r01]",
        "folder": "drain-delete/r01",
        "state": "measured",
        "why": None,
    }
    (scenario,) = found["scenarios"]
    assert scenario["repeats"] == ["drain-delete/r00", "drain-delete/r01"]
    assert scenario["metrics"]["trigger_to_sigterm_ms"]["observed"] == 2
    assert scenario["tallies"]["target_flows_lost"]["median"] == [0, 0]
    assert scenario["outcomes"] == {"target tcp": {"drained-clean-close": 2}}


def test_a_schema_that_accepts_everything_would_prove_nothing(run: Path) -> None:
    measured(run)
    write_summary(run)
    good = read(run)
    for broken in (
        {**good, "complete": "yes"},
        {**good, "trials": [{**good["trials"][0], "state": "perhaps"}]},
        {name: value for name, value in good.items() if name != "refused"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, report.schema("summary"))


def test_each_way_of_not_measuring_is_told_apart(run: Path) -> None:
    measured(run, name="r00")
    recorded(run, "drain-delete", "r01", void("the flows never settled"))
    recorded(run, "drain-delete", "r02")  # as SIGKILL leaves it
    recorded(run, "drain-delete", "r03", mark(Event.INTERRUPTED, phase="observe", signal="SIGTERM"))
    (run / "drain-delete" / "r04").mkdir()
    found = summarise(run)
    assert states(found) == [
        ("drain-delete/r00", "measured", None),
        ("drain-delete/r01", "void", "the flows never settled"),
        (
            "drain-delete/r02",
            "unfinished",
            "its recording has no end and no void mark: its process was killed, or it is still "
            "being measured",
        ),
        ("drain-delete/r03", "unfinished", "interrupted in phase 'observe' by SIGTERM"),
        ("drain-delete/r04", "unfinished", "nothing was recorded"),
    ]
    assert not found.complete
    assert [why.split(":")[0] for why in found.incomplete_because] == [
        "drain-delete/r01 is void",
        "drain-delete/r02 is unfinished",
        "drain-delete/r03 is unfinished",
        "drain-delete/r04 is unfinished",
    ]
    (scenario,) = found.scenarios
    assert scenario.repeats == ("drain-delete/r00",)


def test_the_void_mark_of_a_probe_that_only_says_void_is_none(run: Path) -> None:
    recorded(run, "drain-delete", "r00", mark(Event.SETTLE_COMPLETE, note="void"))
    assert summarise(run).trials[0].state is State.UNFINISHED


@pytest.mark.parametrize("content", [b"", b'{"schema_version": 1, "tri', b"\xff\xfe", b"[]"])
def test_a_report_that_cannot_be_read_spoils_its_trial_alone(run: Path, content: bytes) -> None:
    measured(run, name="r00")
    (recorded(run, "drain-delete", "r01", test="a.py::t") / "report.json").write_bytes(content)
    found = write_summary(run)
    assert [entry.state for entry in found.trials] == ["measured", "unfinished"]
    assert "r01/report.json" in (found.trials[1].why or "")
    assert found.trials[1].test == "a.py::t"
    assert not found.complete
    assert len(found.incomplete_because) == len(found.unread) == 1, "it is said once"
    assert found.scenarios[0].repeats == ("drain-delete/r00",)


@pytest.mark.parametrize("first", ["", "{", '{"recording_schema": 99}', "null", "\x00" * 10])
def test_a_recording_that_cannot_be_read_is_a_trial_still(run: Path, first: str) -> None:
    folder = run / "drain-delete" / "r00"
    folder.mkdir(parents=True)
    (folder / "recording.jsonl").write_text(first)
    (entry,) = summarise(run).trials
    assert (entry.scenario, entry.repeat, entry.state) == ("drain-delete", 0, "unfinished")


def test_a_trial_that_is_being_written_is_not_finished(run: Path) -> None:
    folder = recorded(run)
    (folder / ".report.json.tmp").write_text("{")
    with (folder / "recording.jsonl").open("a") as file:
        file.write('{"source": "client", "event": "vo')  # torn
    (entry,) = summarise(run).trials
    assert entry.state is State.UNFINISHED


def test_planned_trials_that_never_ran_are_named(run: Path) -> None:
    measured(run, test="a.py::t[r00]")
    planned = [Planned(scenario="drain-delete", repeat=n, test=f"a.py::t[r0{n}]") for n in range(3)]
    planned.append(
        Planned(scenario="ipvs", repeat=0, test="a.py::ipvs", why_not="skipped: no ip_vs")
    )
    found = write_summary(run, planned)
    assert [(e.state, e.folder, e.test, e.why) for e in found.trials[1:]] == [
        ("not-run", None, "a.py::t[r01]", "planned, and never begun"),
        ("not-run", None, "a.py::t[r02]", "planned, and never begun"),
        ("not-run", None, "a.py::ipvs", "skipped: no ip_vs"),
    ]
    assert (
        "drain-delete r01 of a.py::t[r01] did not run: planned, and never begun"
        in read(run)["incomplete_because"]
    )


def test_a_killed_trial_ran(run: Path) -> None:
    recorded(run, test="a.py::t")
    (run / "other" / "r00").mkdir(parents=True)  # killed before it could say whose it is
    found = summarise(
        run,
        [
            Planned(scenario="drain-delete", repeat=0, test="a.py::t"),
            Planned(scenario="other", repeat=0, test="a.py::u"),
        ],
    )
    assert [entry.state for entry in found.trials] == ["unfinished", "unfinished"]


@pytest.mark.parametrize("id", ["drain delete", ".hidden", "a/b", "x"])
def test_a_trial_that_was_killed_before_its_first_line_is_listed_once(run: Path, id: str) -> None:
    """Its folder's name is all there is, and that is not quite the scenario's."""
    (run / folder_name(id) / "r00").mkdir(parents=True)
    planned = [Planned(scenario=id, repeat=n, test=f"a.py::t[{n}]") for n in range(2)]
    found = summarise(run, planned)
    assert [(e.state, e.repeat) for e in found.trials] == [("unfinished", 0), ("not-run", 1)]


def test_the_second_test_of_a_scenario_was_killed_before_its_first_line(run: Path) -> None:
    measured(run, name="r00", test="a.py::t")
    (run / "drain-delete" / "r00.2").mkdir()
    planned = [Planned(scenario="drain-delete", repeat=0, test=f"a.py::{t}") for t in "tuv"]
    found = summarise(run, planned)
    assert [(e.state, e.test) for e in found.trials] == [
        ("measured", "a.py::t"),
        ("unfinished", None),
        ("not-run", "a.py::v"),
    ]


def test_a_test_that_knows_itself_what_it_measures(run: Path) -> None:
    measured(run, test="a.py::t")
    planned = [Planned(scenario=None, repeat=0, test=f"a.py::{name}") for name in "tu"]
    assert summarise(run, planned[:1]).complete
    found = summarise(run, planned)
    assert found.incomplete_because == (
        "a trial r00 of a.py::u did not run: planned, and never begun",
    )


def test_of_arms_each_one_is_planned(run: Path) -> None:
    measured(run, "with", test="a.py::t")
    planned = [Planned(scenario=name, repeat=0, test="a.py::t") for name in ("with", "without")]
    assert [entry.scenario for entry in summarise(run, planned).trials] == ["with", "without"]
    assert not summarise(run, planned).complete


def test_attempts_all_count_and_are_named(run: Path) -> None:
    measured(run, name="r00", test="a.py::t")
    measured(run, name="r00.2", test="a.py::t")
    found = summarise(run, [Planned(scenario="drain-delete", repeat=0, test="a.py::t")])
    assert [(entry.repeat, entry.attempt) for entry in found.trials] == [(0, 1), (0, 2)]
    (scenario,) = found.scenarios
    assert scenario.repeats == ("drain-delete/r00", "drain-delete/r00.2")
    assert "r00.2 is attempt 2 at r00: all attempts count" in scenario.notes
    assert found.complete


def test_a_second_test_of_a_scenario_is_no_second_attempt(run: Path) -> None:
    measured(run, name="r00", test="a.py::t")
    measured(run, name="r00.2", test="a.py::u")
    (scenario,) = summarise(run).scenarios
    assert "r00.2 was measured by another test than r00: both count" in scenario.notes


def test_a_void_attempt_is_not_hidden_by_one_that_measured(run: Path) -> None:
    recorded(run, "drain-delete", "r00", void())
    measured(run, name="r00.2")
    assert not summarise(run).complete


def test_trials_that_are_no_repeats_are_refused_and_the_others_pooled(run: Path) -> None:
    measured(run, "good", "r00")
    measured(run, "good", "r01")
    measured(run, "mixed", "r00")
    other = replace(folders.WHOLE.trial, scenario="mixed", config={"grace_period_seconds": 9})
    folders.write(run / "mixed" / "r00.2", replace(folders.WHOLE, trial=other))
    found = write_summary(run)
    assert [scenario.id for scenario in found.scenarios] == ["good"]
    (refused,) = read(run)["refused"]
    assert refused["id"] == "mixed"
    assert "config.grace_period_seconds is" in refused["reason"]
    # All were measured: that is another matter.
    assert found.complete


def test_logs_of_clusters_are_no_trials(run: Path) -> None:
    measured(run)
    (run / "cluster" / "dw-1").mkdir(parents=True)
    (run / "cluster" / "dw-1" / "etcd.log").write_text("void")
    assert len(summarise(run).trials) == 1


def test_a_scenario_that_is_called_as_a_repeat_is(run: Path) -> None:
    measured(run, "r00", "r00")
    (run / "r01" / "r00").mkdir(parents=True)
    assert [entry.folder for entry in summarise(run).trials] == ["r00/r00", "r01/r00"]


def test_links_are_not_followed(run: Path) -> None:
    measured(run)
    (run / "again").symlink_to("drain-delete")
    assert len(summarise(run).trials) == 1


def test_a_run_without_a_folder(run: Path) -> None:
    with pytest.raises(SummaryError, match="no trial in this folder"):
        summarise(run)
    write_summary(run, [Planned(scenario="a", repeat=0, test="a.py::t")])
    assert read(run)["trials"][0]["state"] == "not-run"
    assert not list(run.glob(".*")), "nothing half-written is left"


# --- the end of a run ----------------------------------------------------------------------


def test_nothing_is_said_where_nothing_was_repeated_or_is_missing(run: Path) -> None:
    measured(run)
    assert lines(write_summary(run)) == []
    assert read(run)["complete"]


def test_what_was_repeated_is_shown_and_what_is_missing_named(run: Path) -> None:
    measured(run, name="r00")
    measured(run, name="r01")
    recorded(run, "drain-delete", "r02", void("no\nflows"))
    told = "\n".join(lines(write_summary(run)))
    assert "drain-delete" in told
    assert "incomplete: 1 of 3 trials were not measured" in told
    assert "drain-delete/r02 is void: no flows" in told


# --- the command ---------------------------------------------------------------------------


def test_aggregate_writes_a_summary_only_where_it_is_told_to(
    run: Path, tmp_path: Path, capsys: Captured
) -> None:
    measured(run)
    assert main(["aggregate", str(run)]) == 0
    assert not (run / "summary.json").exists()
    out = tmp_path / "else" / "summary.json"
    capsys.readouterr()
    assert main(["aggregate", str(run), "-o", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert read(out.parent)["complete"]
    # A summary beside the reports is no report.
    write_summary(run)
    assert main(["aggregate", str(run)]) == 0


def test_a_summary_of_what_cannot_be_pooled_is_written_and_an_error(
    run: Path, tmp_path: Path, capsys: Captured
) -> None:
    measured(run, name="r00")
    trial = replace(folders.WHOLE.trial, scenario="drain-delete")
    other = replace(folders.WHOLE, git_commit="else", trial=trial)
    folders.write(run / "drain-delete" / "r01", other)
    out = tmp_path / "summary.json"
    assert main(["aggregate", str(run), "-o", str(out)]) == 3
    assert "git_commit is" in capsys.readouterr().err
    assert "git_commit is" in read(tmp_path)["refused"][0]["reason"]


def test_a_report_that_cannot_be_read_is_an_error_of_the_command(
    run: Path, tmp_path: Path, capsys: Captured
) -> None:
    measured(run)
    (recorded(run, "drain-delete", "r01") / "report.json").write_text("{")
    assert main(["aggregate", str(run), "-o", str(tmp_path / "s.json"), "--markdown"]) == 3
    said = capsys.readouterr()
    assert "r01/report.json: not valid JSON" in said.err
    assert "1 of 2 trials measured" in said.out
    assert json.loads((tmp_path / "s.json").read_text())["complete"] is False


@pytest.mark.parametrize("name", ["missing", "file"])
def test_what_is_no_run_cannot_be_summarised(tmp_path: Path, name: str, capsys: Captured) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "summary.json"
    assert main(["aggregate", str(tmp_path / name), "-o", str(out)]) == 3
    assert "expected a run's folder" in capsys.readouterr().err
    assert not out.exists()


def test_the_ancestors_copy_of_a_single_trial_counts_once(tmp_path: Path) -> None:
    path = example.write(tmp_path / "arm-B", example.report())
    (tmp_path / "arm-B" / "report.json").write_bytes(path.read_bytes())
    (entry,) = summarise(tmp_path).trials
    assert (entry.scenario, entry.repeat, entry.state) == ("B", None, "measured")


def test_the_schema_can_be_printed(capsys: Captured) -> None:
    assert main(["schema", "summary"]) == 0
    printed = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["title"] == "summary.json"
