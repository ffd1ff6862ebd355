"""Progress as a person sees it: a real pytest, and the shell's commands, on a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_drainwatch.showing.picture import cells
from tests.plugin.conftest import CONFTEST
from tests.showing.terminal import CONTROL, Terminal, run

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="pseudo terminals as Linux has them"
)

SUITE = f"""
import os
import sys
sys.path.insert(0, {str(ROOT)!r})
import pytest
from pytest_drainwatch.showing.progress import PytestProgress
from tests.showing.acted import act

@pytest.fixture
def measured(request):
    print("captured in set-up")
    if "[0]" in request.node.name or os.environ.get("ACT") == "always":
        act(PytestProgress(request.config, "drain-delete[r00]"))

@pytest.mark.parametrize("number", range(2))
def test_it(measured, number):
    print("captured in the body")
    assert number == 0
"""
DURATION = re.compile(r"\d+\.\d\ds")
RESULT = re.compile(r"(?:test_acted.py|test_acted.py::test_it\S*) +(?:\.F|PASSED|FAILED) .*\d+%\]")


@pytest.fixture
def on(tmp_path: Path) -> Callable[..., Terminal]:
    """Run the suite above with these arguments."""
    (tmp_path / "test_acted.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")

    def on(
        *arguments: str,
        terminal: Terminal | None = None,
        expected: pytest.ExitCode = pytest.ExitCode.TESTS_FAILED,
        **how: object,
    ) -> Terminal:
        terminal = terminal or Terminal()
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
        code = run([*command, *arguments], terminal, cwd=tmp_path, **how)  # type: ignore[arg-type]
        assert code == expected, terminal.all
        return terminal

    return on


def final(terminal: Terminal) -> str:
    return DURATION.sub("?s", terminal.all)


def ever(terminal: Terminal, text: str) -> bool:
    return any(text in seen for seen in terminal.seen)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "more",
    [[], pytest.param(["-s"], marks=SLOW), pytest.param(["--capture=tee-sys"], marks=SLOW)],
    ids=str,
)
def test_a_picture_while_it_lasts_and_pytests_own_output_when_it_is_over(
    on: Callable[..., Terminal], more: list[str]
) -> None:
    live = on(*more)
    for text in (
        "drainwatch: drain-delete[r00]  settle  ",
        "of about 1 s",
        "TCP 10 alive, 0 ended · UDP 10 alive, 0 ended · new connections 500, 0 failed",
        "+0.00 s  trigger: delete",
        "SIGTERM: uid-old",
        "TCP 0 alive, 10 ended · UDP 6 alive, 4 moved, 0 ended · new connections 500, 54 failed",
        "s  first TCP flow ended",
        "█",
    ):
        assert ever(live, text), text
    assert any("test_acted.py" in seen and "observe" in seen for seen in live.seen), (
        "the picture stands below pytest's own line"
    )
    simple = on(*more, env={"TERM": "dumb", "PY_COLORS": "1"}, terminal=Terminal())
    assert final(live) == final(simple), "not a trace is left of it"
    assert not ever(simple, "observe")
    assert "█" not in live.all


def test_with_v_phases_and_events_stay(on: Callable[..., Terminal]) -> None:
    shown = on("-v").all.splitlines()
    for pattern in (
        r"drainwatch: settle, about 0 s",
        r"drainwatch: observe, about 1 s",
        r"drainwatch: +\+0\.00 s  trigger: delete",
        r"drainwatch: +by \+0\.\d s  first TCP flow ended",
        r"test_acted\.py::test_it\[0\] PASSED +\[ 50%\]",
        r"test_acted\.py::test_it\[1\] FAILED +\[100%\]",
    ):
        assert any(re.fullmatch(pattern, line) for line in shown), (pattern, shown)
    assert not any("TCP 10 alive" in line for line in shown)


@pytest.mark.parametrize(
    "more",
    [
        ["-q"],
        pytest.param(["-p", "no:terminal"], marks=SLOW),
        pytest.param(["-o", "log_cli=true", "--log-cli-level=INFO"], marks=SLOW),
    ],
    ids=["q", "no terminal", "logs live"],
)
def test_where_no_picture_belongs_there_is_none(
    on: Callable[..., Terminal], more: list[str]
) -> None:
    terminal = on(*more)
    assert not ever(terminal, "TCP 10 alive")
    assert b"\x1b7" not in terminal.raw


@pytest.mark.parametrize(
    ("env", "letters", "color"),
    [
        ({"PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}, False, False),
        pytest.param({}, True, True, marks=SLOW),
        pytest.param({"NO_COLOR": "1"}, True, False, marks=SLOW),
        pytest.param({"PY_COLORS": "0"}, True, False, marks=SLOW),
        pytest.param({"PYTHONIOENCODING": "ascii", "FORCE_COLOR": "1"}, False, True, marks=SLOW),
        pytest.param({"LANG": "C"}, False, True, marks=SLOW),
    ],
    ids=str,
)
def test_colours_and_letters_are_as_the_terminal_has_them(
    on: Callable[..., Terminal], env: dict[str, str], letters: bool, color: bool
) -> None:
    terminal = on(env=env)
    pictures = [part.split(b"\x1b8")[0] for part in terminal.raw.split(b"\x1b7")[1:]]
    assert pictures
    drawn = b"".join(pictures).decode()
    assert ("█" in drawn) is letters
    assert ("[####" in drawn) is not letters
    assert drawn.isascii() is not letters
    assert bool(re.search(r"\x1b\[\d+m", drawn)) is color


@pytest.mark.parametrize("told", [True, pytest.param(False, marks=SLOW)], ids=["COLUMNS", "narrow"])
def test_no_line_is_wider_than_a_narrow_terminal(on: Callable[..., Terminal], told: bool) -> None:
    terminal = on(
        terminal=Terminal(100 if told else 40, 10), env={"COLUMNS": "40" if told else None}
    )
    assert all(cells(line) < 40 for line in pictured(terminal))
    assert ever(terminal, "observe ")


@SLOW
def test_a_terminal_that_is_resized_is_drawn_on_as_it_is_then(on: Callable[..., Terminal]) -> None:
    terminal = Terminal(100, 30)
    at: list[int] = []

    def smaller(_: object) -> None:
        if not at and "observe" in terminal.shown:
            terminal.resize(50, 12)
            at.append(len(terminal.raw))

    on(terminal=terminal, while_it_runs=smaller)
    assert at
    after = terminal.raw[at[0] :].split(b"\x1b7")[2:]  # the first may have been under way
    assert after
    lines = [line for part in after for line in drawn_in(part.split(b"\x1b8")[0])]
    assert lines
    assert all(cells(line) < 50 for line in lines)


def test_a_terminal_that_nobody_reads_does_not_hold_a_trial_up(
    on: Callable[..., Terminal], tmp_path: Path
) -> None:
    """Held as by Ctrl-S from the first picture until the trial is over."""
    terminal = Terminal()
    (tmp_path / "conftest.py").write_text(
        "import pytest, pathlib\n"
        "@pytest.fixture(autouse=True)\n"
        "def over(measured): pathlib.Path('over').touch()\n"
    )
    held: list[float] = []

    def look(_: object) -> None:
        if not held and "settle" in terminal.shown:
            terminal.hold()
            held.append(time.monotonic())
        elif held and (tmp_path / "over").exists():
            terminal.release()

    on("-v", terminal=terminal, while_it_runs=look, timeout_s=30)
    assert held
    shown = terminal.all
    assert "drainwatch: observe, about 1 s" in shown, "what was said meanwhile comes later"
    assert "PASSED" in shown


@SLOW
def test_an_interrupt_leaves_nothing_of_it(on: Callable[..., Terminal]) -> None:
    terminal = Terminal()

    def interrupt(process: subprocess.Popen[bytes]) -> None:
        if "observe" in terminal.shown:
            process.send_signal(signal.SIGINT)

    on(terminal=terminal, expected=pytest.ExitCode.INTERRUPTED, while_it_runs=interrupt)
    assert "KeyboardInterrupt" in terminal.all
    assert "alive" not in terminal.all


def pictured(terminal: Terminal) -> list[str]:
    parts = [part.split(b"\x1b8")[0] for part in terminal.raw.split(b"\x1b7")[1:]]
    found = [line for part in parts for line in drawn_in(part)]
    assert found
    return found


def drawn_in(part: bytes) -> list[str]:
    return [line for line in re.split("[\r\n]+", CONTROL.sub("", part.decode())) if line]


@SLOW
def test_under_xdist_each_worker_has_a_line(on: Callable[..., Terminal]) -> None:
    terminal = on("-n2", env={"ACT": "always"})
    both = [
        seen
        for seen in terminal.seen
        if re.search(r"^gw0 drain-delete\[r00\] \w+, .* TCP", seen, re.MULTILINE)
        and re.search(r"^gw1 drain-delete\[r00\] \w+, .* TCP", seen, re.MULTILINE)
    ]
    assert both, terminal.seen
    assert all(cells(line) < 100 for line in pictured(terminal))
    simple = on("-n2", env={"TERM": "dumb", "PY_COLORS": "1"}, terminal=Terminal())
    assert not ever(simple, "TCP")
    assert sorted(final(terminal)) == sorted(final(simple)), "in whatever order they ended"


@SLOW
def test_under_xdist_no_line_is_torn(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(root=str(ROOT)))
    (tmp_path / "test_measured.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_it(n, trial): pass\n"
    )
    terminal = Terminal()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n2", "--dw-cluster=kind"]
    run(command, terminal, cwd=tmp_path)
    lines = terminal.all.splitlines()
    assert any(line.startswith("drainwatch: 4 trial(s), ") for line in lines), lines
    torn = [line for line in lines if "drainwatch: " in line and not line.startswith("drainwatch")]
    assert not torn


SHELL = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pytest_drainwatch.showing.progress import PlainProgress
from tests.showing.acted import act
progress = PlainProgress(trial="drain-delete")
progress.line("cluster c (asked for); results in r")
act(progress)
print("the report")
"""


def test_the_shells_commands_show_the_same_on_standard_error(tmp_path: Path) -> None:
    terminal = Terminal()
    assert run([sys.executable, "-c", SHELL], terminal, cwd=tmp_path) == 0
    assert ever(terminal, "drain-delete  observe  ")
    assert ever(terminal, "TCP 10 alive")
    assert ever(terminal, "trigger: delete")
    assert terminal.all.splitlines() == [
        "drainwatch: cluster c (asked for); results in r",
        "the report",
    ]


def test_where_standard_error_is_no_terminal_phases_are_lines(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TERM": "xterm"},
    )
    assert done.stderr.splitlines() == [
        "drainwatch: cluster c (asked for); results in r",
        "drainwatch: settle, about 0 s",
        "drainwatch: observe, about 1 s",
    ]
