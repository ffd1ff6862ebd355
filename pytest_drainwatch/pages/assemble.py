"""A page's data -> one HTML file, which needs nothing else: no network, no other file.

Names of pods and tests are anybody's text. The data stands in an element whose text no browser
runs, with every sign escaped that could end it; the script builds the page from it with
``textContent`` alone; and the policy in the head lets nothing be loaded or sent.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

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
    return file_of(
        title=page["title"],
        made_by=page["made_by"],
        styles=STYLES,
        scripts=SCRIPTS,
        data=packed(page),
        plainly=_plainly(page),
    )


def file_of(
    *,
    title: str,
    made_by: str,
    styles: Iterable[str],
    scripts: Iterable[str],
    data: Mapping[str, Any],
    plainly: Iterable[str],
) -> str:
    """The text of a file that needs no other one.

    ``styles`` and ``scripts`` are names of assets, ``data`` is what the scripts read, as JSON
    values, and ``plainly`` are the lines of HTML that are shown where no script runs.
    """
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta name="generator" content="{html.escape(made_by)}">',
        f"<title>{html.escape(title)}</title>",
        f"<style>\n{_joined(styles)}</style>",
        "</head>",
        "<body>",
        "<noscript>",
        *plainly,
        "</noscript>",
        f'<script type="application/json" id="data">{_json(data)}</script>',
        f"<script>\n{_joined(scripts)}</script>",
        "</body>",
        "</html>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _joined(names: Iterable[str]) -> str:
    folder = resources.files("pytest_drainwatch.pages") / "assets"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


def _json(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
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
    simulated = "SIMULATED: " if trial["simulated"] else ""
    yield f"<h2>{html.escape(simulated + trial['id'] + outcome)}</h2>"
    yield f"<p>{html.escape(trial['asked'])}</p>"
    for mark in trial["marks"]:
        yield f"<p>{html.escape(mark)}</p>"
    yield "<ul>"
    yield from (f"<li>{html.escape(said)}</li>" for said in trial["says"])
    if trial["hurt"] is not None:
        yield f"<li>What hurt most: {html.escape(trial['hurt']['text'])}</li>"
    yield "</ul>"
