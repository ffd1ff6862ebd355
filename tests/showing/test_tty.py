"""Drawing below whatever others write: nothing of theirs is lost, nothing of ours is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.showing import tty
from pytest_drainwatch.showing.tty import Style, Tty, style_of

COLUMNS, ROWS = 40, 8

pictures = st.lists(st.text("xyz", min_size=1, max_size=COLUMNS - 1), min_size=1, max_size=9)
others = st.sampled_from(
    [".", "F", "test_a.py ", "\r\n", "kept: a folder\r\n", "PASSED [ 50%]\r\n"]
)


class Emulated:
    """A terminal that takes all at once; ``Tty`` writes to a pipe."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(write, False)
        self.tty = Tty(write)
        self._theirs = os.dup(write)
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=1000)
        self._stream = pyte.ByteStream(self.screen)

    def others_write(self, text: str) -> None:
        os.write(self._theirs, text.encode())

    def shown(self) -> str:
        os.set_blocking(self._read, False)
        try:
            while part := os.read(self._read, 65536):
                self._stream.feed(part)
        except BlockingIOError:
            pass
        past = ["".join(row[n].data for n in range(COLUMNS)) for row in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*past, *self.screen.display]).rstrip()

    def close(self) -> None:
        self.tty.close()
        os.close(self._theirs)
        os.close(self._read)


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tty, "size", (COLUMNS, ROWS))


@given(st.lists(st.tuples(others, pictures | st.none()), max_size=12))
def test_what_others_write_is_what_there_is_in_the_end(
    written: list[tuple[str, list[str] | None]],
) -> None:
    """Pictures come and go between their writes, at the bottom of the screen too."""
    drawn, alone = Emulated(), Emulated()
    for text, picture in written:
        drawn.others_write(text)
        alone.others_write(text)
        if picture is not None:
            drawn.tty.draw(picture)
            drawn.tty.draw(picture[::-1])
            shown = drawn.shown()
            assert shown.endswith("\n".join(picture[::-1][: ROWS - 2]))
            drawn.tty.erase()
    assert drawn.shown() == alone.shown()
    column = drawn.screen.cursor.x
    assert column == alone.screen.cursor.x, "and they go on where they were"
    drawn.close()
    alone.close()


def test_a_picture_is_never_higher_than_the_terminal() -> None:
    drawn = Emulated()
    drawn.others_write("test_a.py .")
    drawn.tty.draw([f"line {n}" for n in range(50)])
    assert drawn.shown().splitlines() == ["test_a.py .", *(f"line {n}" for n in range(ROWS - 2))]
    drawn.close()


def test_a_terminal_that_takes_nothing_is_not_waited_for_and_gets_whole_pictures() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    mine = Tty(write)
    began = time.monotonic()
    for number in range(3000):
        mine.draw([f"picture {number}", "x" * 35])
    assert not mine.takes_more
    mine.erase()
    assert time.monotonic() - began < 30, "it would have waited for ever"
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    os.set_blocking(read, False)
    for number in range(3):
        while True:
            try:
                stream.feed(os.read(read, 65536))
            except BlockingIOError:
                break
        mine.draw([f"again {number}"])
    assert mine.takes_more
    stream.feed(os.read(read, 65536))
    assert [line.rstrip() for line in screen.display[:3]] == ["", "again 2", ""]
    mine.close()
    os.close(read)


def test_a_terminal_that_is_gone_is_drawn_on_no_more() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    mine = Tty(write)
    os.close(read)
    mine.draw(["x"])
    mine.draw(["x"])
    assert not mine.takes_more
    mine.close()


def test_what_is_no_terminal_or_a_simple_one_has_no_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with (tmp_path / "file").open("w") as file:
        assert Tty.of(file) is None
    assert Tty.of(None) is None
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        found = Tty.of(terminal)
        assert found is not None
        assert os.get_blocking(theirs), "everybody else's writes wait as they did"
        found.close()
        for name in ("dumb", None):
            monkeypatch.setenv("TERM", name) if name else monkeypatch.delenv("TERM")
            assert Tty.of(terminal) is None
    os.close(ours)


@pytest.mark.parametrize(
    ("encoding", "environ", "letters"),
    [
        ("utf-8", {}, True),
        ("utf-8", {"LANG": "de_DE.UTF-8"}, True),
        ("ascii", {"LANG": "de_DE.UTF-8"}, False),
        ("iso8859-1", {}, False),
        ("nonsense", {}, False),
        ("utf-8", {"LANG": "C"}, False),
        ("utf-8", {"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, False),
        ("utf-8", {"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),  # Python's own doing
        ("utf-8", {"LC_CTYPE": "C.UTF-8"}, True),
        ("utf-8", {"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, True),
    ],
)
def test_letters_beyond_ascii_are_for_terminals_that_have_them(
    encoding: str, environ: dict[str, str], letters: bool
) -> None:
    assert tty._has_letters(encoding, environ) is letters


def test_no_color_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert style_of(None).color
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style_of(None).color
    assert style_of(None, color=True) == Style(color=True)
