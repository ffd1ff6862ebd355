"""The job summary through GitHub's own renderer of Markdown (cmark-gfm): what a reader sees."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_drainwatch.render.markdown import Broken, show
from pytest_drainwatch.render.text import plain
from tests.render.test_markdown import summary

cmarkgfm = pytest.importorskip("cmarkgfm", reason="pip install cmarkgfm")
UNSAFE = 1 << 17  # CMARK_OPT_UNSAFE: HTML stays, as GitHub lets it until it has sanitized it
OURS = {"h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "pre"} | {
    *("details", "summary")
}


class Seen(HTMLParser):
    """Tags, cells of tables, and what stands in <pre>."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.rows: list[list[str]] = []
        self.pre = ""
        self._within: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":  # "a@b.c" becomes a link to itself, whatever it is written as
            assert [(name, (value or "").partition(":")[0]) for name, value in attrs] == [
                ("href", "mailto")
            ]
            return
        assert not attrs, f"{tag} {attrs}"
        self.tags[tag] += 1
        self._within.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert tag == "a" or self._within.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._within and self._within[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        if self._within and self._within[-1] == "pre":
            self.pre += data


def rendered(markdown: str) -> Seen:
    return Seen(cmarkgfm.github_flavored_markdown_to_html(markdown, options=UNSAFE))


def as_shown(said: str) -> str:
    """A cell is one line; what is no letter is shown as a question mark."""
    return plain(" ".join(said.split()))


WORDS = st.text() | st.sampled_from(
    [
        *("<img src=x onerror=alert(1)>", "a|b\\|c", "[x](javascript:y)", "``` ~~~", "</table>"),
        *(
            "| - | - |",
            "# heading",
            "1. one",
            "&amp;lt;",
            "https://a.b www.a.b a@b.c",
            "</details>",
        ),
    ]
)


@given(WORDS, WORDS, WORDS, WORDS)
def test_a_reader_sees_every_word_and_nothing_else(
    test: str, promise: str, hurt: str, advice: str
) -> None:
    broken = [Broken(test=test, promise=promise, hurt=hurt, advice=advice)]
    seen = rendered(show(summary(), broken=broken, facts={"page": promise}))
    assert set(seen.tags) <= OURS
    assert [as_shown(word) for word in (test, promise, hurt, advice)] in seen.rows


@given(WORDS)
def test_a_scenarios_name_is_a_name(name: str) -> None:
    seen = rendered(show(summary(name)))
    assert set(seen.tags) <= OURS
    assert seen.tags["table"] == 3
    assert sum(row[0] == as_shown(name) for row in seen.rows) == 3


@given(st.lists(WORDS, min_size=1))
def test_what_the_baseline_says_is_shown_as_it_is(lines: list[str]) -> None:
    seen = rendered(show(summary(), compared="\n".join(["it says", *lines])))
    assert set(seen.tags) <= OURS
    assert seen.tags["pre"] == 1
    said = "\n".join(["it says", *lines]).splitlines()
    # HTML drops the line feed that <pre> begins with.
    assert [line.strip() for line in seen.pre.strip("\n").split("\n")] == [
        line.strip() for line in "\n".join(plain(line) for line in said).strip("\n").split("\n")
    ]
