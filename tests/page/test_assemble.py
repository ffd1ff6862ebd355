"""The file: nothing in it can run but its own script, and it is the same for the same page."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from pytest_drainwatch.core.derive import derive
from pytest_drainwatch.core.document import Report
from pytest_drainwatch.core.scenario import Scenario
from pytest_drainwatch.pages.assemble import POLICY, SCRIPTS, STYLES, assemble
from pytest_drainwatch.pages.packing import packed
from pytest_drainwatch.render.page.data import FORMAT, Flow, Page
from pytest_drainwatch.render.page.trial import trial
from tests.core.trials import recording_of

REPORT = derive(recording_of(Scenario()))
ASSETS = Path(__file__).resolve().parents[2] / "pytest_drainwatch" / "pages" / "assets"
HOSTILE = '</script><img src=x onerror="dw.hacked=1"><!--<script>\u2028&amp;'


def page_of(report: Report, **fields: Any) -> Page:
    return Page(
        format=FORMAT, title="a page", made_by="tests", run=None, trials=[trial(report, **fields)]
    )


def hostile() -> Page:
    """Every text that comes from elsewhere is an attack."""
    told = REPORT.trial
    entries = tuple(replace(each, detail=HOSTILE) for each in told.timeline)
    flows = tuple(
        replace(
            flow, detail=HOSTILE, history=tuple(replace(h, detail=HOSTILE) for h in flow.history)
        )
        for flow in told.flows
    )
    windows = tuple(replace(each, pod=HOSTILE) for each in told.windows)
    mine = replace(
        told, scenario=HOSTILE, test=HOSTILE, notes=(HOSTILE,), flags=(HOSTILE,),
        timeline=entries, flows=flows, windows=windows, degraded=(HOSTILE,),
        config={**told.config, "drain_behavior": HOSTILE, "grace_period_seconds": HOSTILE},
    )  # fmt: skip
    return {
        **page_of(replace(REPORT, trial=mine), id=HOSTILE),
        "title": HOSTILE,
        "made_by": HOSTILE,
    }


class Elements(HTMLParser):
    """What a browser would make of it: its elements, and the text within scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def test_names_from_elsewhere_are_text_and_nothing_else() -> None:
    text = assemble(hostile())
    elements = Elements()
    elements.feed(text)
    assert "img" not in elements.tags
    assert elements.tags.count("script") == 2
    assert not [name for name, _ in elements.attributes if name.startswith("on")]
    page = data_of(text)
    assert page["title"] == HOSTILE
    assert page["trials"][0]["id"] == HOSTILE
    assert html.escape(HOSTILE) in text


def test_the_data_element_holds_no_sign_that_could_end_it() -> None:
    found = re.search(r'id="data">(.*?)\n<script>', assemble(hostile()), re.S)
    assert found is not None
    body = found[1].removesuffix("</script>")
    assert not set("<>&\u2028\u2029") & set(body)


def test_every_asset_is_in_the_page_and_could_not_end_its_element() -> None:
    there = {path.name for path in ASSETS.iterdir() if path.is_file()}
    assert there == {*STYLES, *SCRIPTS}
    text = assemble(page_of(REPORT))
    for name in there:
        body = (ASSETS / name).read_text(encoding="utf-8")
        assert body in text
        assert not re.search(r"</(script|style)|<!--|innerHTML|\beval\b", body, re.I), name


def test_the_same_page_gives_the_same_bytes() -> None:
    page = page_of(REPORT)
    assert assemble(page) == assemble(page_of(REPORT))
    assert assemble(page) != assemble({**page, "title": "another"})


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = assemble(page_of(REPORT))
    head = text[: text.index("<body>")]
    assert f'content="{POLICY}"' in head
    assert head.index("Content-Security-Policy") < head.index("<style>")
    elements = Elements()
    elements.feed(text)
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(elements.tags)
    assert not [value for name, value in elements.attributes if name in ("src", "href", "action")]


def test_without_scripts_the_sentences_are_there() -> None:
    page = page_of(REPORT)
    text = assemble(page)
    inside = text[text.index("<noscript>") : text.index("</noscript>")]
    for said in page["trials"][0]["says"]:
        assert html.escape(said) in inside


def unpacked(trial: dict[str, Any]) -> list[dict[str, Any]]:
    """As assets/data.js does it."""
    texts = trial["flows"]["texts"]
    flows = []
    for name, proto, role, outcome, mechanism, tone, end, numbers, parts in trial["flows"]["rows"]:
        pieces = [
            {
                "at": (numbers[n], numbers[n] + numbers[n + 1]),
                "edge": numbers[n + 2],
                "state": texts[numbers[n + 3]],
                "tone": texts[numbers[n + 4]],
                "by": numbers[n + 5],
            }
            for n in range(0, len(numbers), 6)
        ]
        flows.append(
            {
                "id": name,
                "proto": texts[proto],
                "role": None if role is None else texts[role],
                "outcome": texts[outcome],
                "mechanism": texts[mechanism],
                "tone": texts[tone],
                "end": None if end is None else (end[0], end[0] + end[1]),
                "pieces": pieces,
                "story": "".join(texts[p] if isinstance(p, int) else p for p in parts),
                "rows": None,
            }
        )
    return flows


def copies(count: int) -> list[Flow]:
    (flow,) = trial(REPORT)["flows"]
    lone: Flow = {**flow, "role": None, "end": None, "pieces": [], "story": "12 or 3.5–4 s."}
    return [{**(flow if n % 3 else lone), "id": f"tcp-{n}", "rows": None} for n in range(count)]


def test_packed_flows_are_the_same_flows() -> None:
    page = page_of(REPORT)
    page["trials"][0]["flows"] = copies(300)
    (found,) = packed(page)["trials"]
    assert unpacked(found) == copies(300)


def test_flows_with_their_steps_stand_as_they_are() -> None:
    page = page_of(REPORT)
    assert packed(page)["trials"] == page["trials"]
    page["trials"][0]["flows"] = []
    assert packed(page)["trials"] == page["trials"]
