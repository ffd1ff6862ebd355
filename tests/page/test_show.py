"""``drainwatch show --html``: where the page goes, and errors that leave nothing half written."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_drainwatch.cli import main
from tests.cli.folders import measured

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two trials."""
    measured(tmp_path / "run")
    measured(tmp_path / "run", "drain-evict")
    return tmp_path / "run"


def is_page(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n")


def test_the_page_of_a_run_lies_in_its_folder(run: Path, capsys: Captured) -> None:
    assert main(["show", "--html", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert is_page(run / "report.html")
    assert "Run run" in (run / "report.html").read_text()
    # Nothing that reads the folder stumbles over it.
    assert main(["aggregate", str(run)]) == 0
    assert main(["show", str(run)]) == 0


def test_the_page_of_one_report_lies_beside_it(run: Path, capsys: Captured) -> None:
    folder = run / "drain-delete" / "r00"
    assert main(["show", "--html", str(folder / "report.json")]) == 0
    assert is_page(folder / "report.html")
    assert not (run / "report.html").exists()


def test_it_goes_where_it_is_told_to(run: Path, tmp_path: Path, capsys: Captured) -> None:
    there = tmp_path / "new" / "page.html"
    both = [str(run / "drain-delete"), str(run / "drain-evict")]
    assert main(["show", "--html", *both, "-o", str(there)]) == 0
    assert is_page(there)
    capsys.readouterr()
    assert main(["show", "--html", str(run), "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert not (run / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--html", "{run}/missing"], 3, "No such file"),
        (["--html", "{run}/empty"], 3, "no report.json"),
        (["--html", "{run}/other.json"], 3, "not a pytest-drainwatch report"),
        (["--html", "{run}/binary"], 3, "binary"),
        (["--html", "{run}", "-o", "{run}/other.json/page.html"], 3, "page.html: cannot write it"),
        (["--html", "{run}/drain-delete", "{run}/drain-evict"], 2, "-o FILE"),
        (["--html", "{run}/drain-delete/r00", "--baseline", "{run}"], 3, "compared with a run"),
        (["--html", "{run}", "--baseline", "{run}"], 3, "hold the same reports"),
        (["{run}", "--baseline", "{run}"], 2, "expected --html"),
        (["{run}", "-o", "x"], 2, "expected --html"),
    ],
)
def test_errors_say_what_is_wrong_and_leave_nothing(
    run: Path, arguments: list[str], code: int, said: str, capsys: Captured
) -> None:
    (run / "empty").mkdir()
    (run / "other.json").write_text("{}")
    (run / "binary").write_bytes(b"\xff\xfe\x00")
    before = sorted(run.rglob("*"))
    assert main(["show", *(each.format(run=run) for each in arguments)]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert sorted(run.rglob("*")) == before


def test_an_older_page_stays_if_a_new_one_cannot_be_made(run: Path, capsys: Captured) -> None:
    page = run / "report.html"
    page.write_text("old")
    broken = run / "drain-delete" / "r01"
    broken.mkdir()
    (broken / "report.json").write_text("{")
    assert main(["show", "--html", str(run)]) == 3
    assert page.read_text() == "old"
