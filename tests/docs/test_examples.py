"""What the pages show can be typed: each command, each option, each piece of Python."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from tests.docs import typed
from tests.docs.typed import GENERATED, PAGES, ROOT, Block, Line

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("test_*.py"))
name = attrgetter("name")
BLOCKS = [block for page in PAGES for block in typed.blocks(page)]
COOKBOOK = ROOT / "docs" / "cookbook.md"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=name)
def test_each_command_of_the_page_is_one(page: Path, pytestconfig: pytest.Config) -> None:
    found = {line: typed.problem(pytestconfig, line) for line in typed.lines(page)}
    assert not {line.text: problem for line, problem in found.items() if problem}


def test_commands_are_found_in_the_pages() -> None:
    found = {line.text for page in PAGES for line in typed.lines(page)}
    assert "drainwatch doctor --trial" in found
    assert "pytest scenarios/test_pre_stop.py" in found
    assert any("--dw-baseline=tests/drain/baseline" in text for text in found)
    assert len(found) > 60


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("pytest scenarios/ --dw-repeats 5", "pytest has no --dw-repeats"),
        ("pytest scenarios/ --dw-drain=long", "--dw-drain=long"),
        ("pytest scenarios/test_nothing.py", "scenarios/test_nothing.py is not there"),
        ("pytest scenarios/ --dw-cluster=kind --dw-kubeconfig x", "drop one of them"),
        ("drainwatch show", "RESULT"),
        ("drainwatch run --no-such-thing", "--no-such-thing"),
        ("drainwatch compares A B", "invalid choice"),
        ("drainwatch attach deployment/web --trigger reboot", "invalid choice"),
    ],
)
def test_a_wrong_command_is_told(pytestconfig: pytest.Config, command: str, said: str) -> None:
    assert said in (typed.problem(pytestconfig, Line("a page", command, whole=True)) or "")


def test_a_command_in_a_sentence_may_lack_what_it_is_about(pytestconfig: pytest.Config) -> None:
    told = {whole: Line("a page", "drainwatch show", whole) for whole in (True, False)}
    assert typed.problem(pytestconfig, told[True])
    assert typed.problem(pytestconfig, told[False]) is None
    assert typed.problem(pytestconfig, Line("a page", "drainwatch shows", whole=False))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("$ DW_CLUSTER=embedded .venv/bin/pytest tests/core   # quick", ["pytest tests/core"]),
        ("drainwatch rbac | kubectl apply -f -", ["drainwatch rbac"]),
        ("pytest a -k b; drainwatch show c    drainwatch doctor", 3),
        ("drainwatch aggregate DIR --markdown >> $OUT", ["drainwatch aggregate DIR --markdown"]),
        ("drainwatch: 32 trial(s)", []),
        ("---- drainwatch ----", []),
    ],
)
def test_commands_are_told_from_what_stands_around_them(line: str, found: list[str] | int) -> None:
    told = list(typed.commands(line))
    assert (len(told) if isinstance(found, int) else told) == found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_option_that_the_page_names_is_one(page: Path) -> None:
    assert not typed.options(page) - typed.known_options()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_link_of_the_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(), flags=re.M | re.S)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    named = [link for link in links if link and "://" not in link]
    assert not [link for link in named if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_each_make_target_of_the_page_is_one(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert not named - targets


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}-{block.number}")
def test_each_piece_of_python_without_a_test_runs(block: Block, tmp_path: Path) -> None:
    code = compile(block.text, f"{block.page}-{block.number}", "exec")
    if is_test(block.text):
        return  # collected, below
    imported = set(re.findall(r"^(?:import|from) (\w+)", block.text, re.MULTILINE))
    missing = [name for name in imported if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed here; it was compiled")
    exec(code, {})


def test_each_test_that_the_pages_show_is_collected(tmp_path: Path) -> None:
    # Those of the cookbook are the examples themselves.
    shown = [b for b in BLOCKS if is_test(b.text) and b.page != COOKBOOK.name]
    assert len(shown) >= 3
    for block in shown:
        file = tmp_path / f"test_{block.page.removesuffix('.md')}_{block.number}.py"
        file.write_text(block.imported + block.text)
    files = [*tmp_path.glob("test_*.py"), *EXAMPLES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Of files outside of the project pytest shows the tests alone.
    for test in (t for f in files for t in re.findall(r"^def (test_\w+)", f.read_text(), re.M)):
        assert re.search(rf"::{test}\b", done.stdout), f"{test} was not collected"


def test_the_cookbook_shows_the_examples_as_they_are() -> None:
    shown = [block.text for block in typed.blocks(COOKBOOK)]
    for example in EXAMPLES:
        assert example.read_text() in shown, f"{example.name} is not in {COOKBOOK.name} as it is"
    assert len(shown) == len(EXAMPLES)


def is_test(code: str) -> bool:
    return "def test_" in code
