"""The simulator's interactive page: one self-contained file, with given inputs set."""

from __future__ import annotations

import html
from collections.abc import Iterator

from pytest_drainwatch import __version__
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.pages.assemble import file_of
from pytest_drainwatch.render.simulation_page import SimulationPage, simulation_data

STYLES = ("page.css", "picture.css", "simulation/simulation.css")
SCRIPTS = (
    "say.js",
    "scale.js",
    "simulation/data.js",
    "simulation/time.js",
    "simulation/life.js",
    "simulation/requests.js",
    "simulation/steps.js",
    "simulation/says.js",
    "simulation/document.js",
    "simulation/command.js",
    "simulation/words.js",
    "simulation/view.js",
    "simulation/tips.js",
    "simulation/timeline.js",
    "simulation/numbers.js",
    "simulation/trace.js",
    "simulation/fields.js",
    "simulation/page.js",
)


def simulation_page(inputs: Inputs) -> str:
    """The page's text, its inputs set to these; the same inputs give the same bytes."""
    page = simulation_data(inputs, made_by=f"pytest-drainwatch {__version__}")
    return file_of(
        title=page["title"],
        made_by=page["made_by"],
        styles=STYLES,
        scripts=SCRIPTS,
        data=page,
        plainly=_plainly(page),
    )


def _plainly(page: SimulationPage) -> Iterator[str]:
    """For readers without scripts: what it is, what these inputs give, and how to go on."""
    yield f"<h1>{html.escape(page['title'])}</h1>"
    yield f"<p>{html.escape(page['marked'])}</p>"
    yield "<p>This page computes with a script, which does not run here. For its first inputs:</p>"
    yield "<ul>"
    yield from (f"<li>{html.escape(said)}</li>" for said in page["says"])
    yield "</ul>"
    yield "<p>The same in a terminal: drainwatch simulate --help</p>"
