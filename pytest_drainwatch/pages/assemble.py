"""A page's data -> one HTML file, which needs nothing else: no network, no other file.

Names of pods and tests are anybody's text. The data stands in an element whose text no browser
runs, with every sign escaped that could end it; the script builds the page from it with
``textContent`` alone; and the policy in the head lets nothing be loaded or sent.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from importlib import resources

from pytest_drainwatch.pages.packing import packed
from pytest_drainwatch.render.page.data import Page, Run, Trial

# All scripts share one object, `dw`, which the first one makes.
STYLES = ("page.css", "picture.css", "run.css")
SCRIPTS = (
    "say.js",
    "data.js",
    "scale.js",
    "view.js",
    "paint.js",
    "ends.js",
    "axis.js",
    "lanes.js",
    "attempts.js",
    "flows.js",
    "density.js",
    "flowstrip.js",
    "gestures.js",
    "evidence.js",
    "tables.js",
    "list.js",
    "legend.js",
    "picture.js",
    "trial.js",
    "fates.js",
    "filter.js",
    "multiples.js",
    "strips.js",
    "compared.js",
    "scenarios.js",
    "overview.js",
    "run.js",
    "main.js",
)
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
# Within a script element: what could end it, begin a comment in it, or end a line of JavaScript.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def assemble(page: Page) -> str:
    """The file's text; the same page gives the same bytes."""
    return "".join(f"{line}\n" for line in _lines(page))


def _lines(page: Page) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f'<meta name="generator" content="{html.escape(page["made_by"])}">'
    yield f"<title>{html.escape(page['title'])}</title>"
    yield f"<style>\n{_joined(STYLES)}</style>"
    yield "</head>"
    yield "<body>"
    yield "<noscript>"
    yield from _plainly(page)
    yield "</noscript>"
    yield f'<script type="application/json" id="data">{_data(page)}</script>'
    yield f"<script>\n{_joined(SCRIPTS)}</script>"
    yield "</body>"
    yield "</html>"


def _joined(names: tuple[str, ...]) -> str:
    folder = resources.files("pytest_drainwatch.pages") / "assets"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


def _data(page: Page) -> str:
    text = json.dumps(packed(page), ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _plainly(page: Page) -> Iterator[str]:
    """What matters most, for readers without scripts and for search."""
    yield f"<h1>{html.escape(page['title'])}</h1>"
    yield "<p>This page draws its pictures with a script, which does not run here. In words:</p>"
    if page["run"] is not None:
        yield from _of_run(page["run"])
    for trial in page["trials"]:
        yield from _of_trial(trial)


def _of_run(run: Run) -> Iterator[str]:
    for why in run["incomplete_because"]:
        yield f"<p>Incomplete: {html.escape(why)}</p>"
    compared = run["comparison"]
    if compared is not None:
        against = f"{compared['verdict']} against the baseline {compared['baseline']}"
        yield f"<p>{html.escape(against)}: {html.escape(compared['text'])}</p>"


def _of_trial(trial: Trial) -> Iterator[str]:
    outcome = "" if trial["outcome"] is None else f" ({trial['outcome']})"
    yield f"<h2>{html.escape(trial['id'] + outcome)}</h2>"
    yield f"<p>{html.escape(trial['asked'])}</p>"
    for mark in trial["marks"]:
        yield f"<p>{html.escape(mark)}</p>"
    yield "<ul>"
    yield from (f"<li>{html.escape(said)}</li>" for said in trial["says"])
    if trial["hurt"] is not None:
        yield f"<li>What hurt most: {html.escape(trial['hurt']['text'])}</li>"
    yield "</ul>"
