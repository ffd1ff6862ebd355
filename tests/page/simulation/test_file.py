"""The simulator's page: one file that needs no other, and says what it is."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import fields
from typing import Any, cast

import pytest

from pytest_drainwatch.cli import main
from pytest_drainwatch.core.simulation.command import FLAGS, command
from pytest_drainwatch.core.simulation.document import dumped
from pytest_drainwatch.core.simulation.inputs import Inputs
from pytest_drainwatch.core.simulation.presets import PRESETS, Preset
from pytest_drainwatch.core.simulation.run import simulate
from pytest_drainwatch.core.simulation.says import says
from pytest_drainwatch.pages.assemble import POLICY
from pytest_drainwatch.pages.simulation import SCRIPTS, STYLES, simulation_page
from pytest_drainwatch.render.simulation_page import FIELDS
from tests.core.simulation import vectors
from tests.page.test_assemble import ASSETS, Elements, data_of

NAMES = [field.name for field in fields(Inputs)]


def test_every_asset_is_in_the_page_and_could_not_end_its_element() -> None:
    there = {f"simulation/{path.name}" for path in (ASSETS / "simulation").iterdir()}
    assert there < {*STYLES, *SCRIPTS}
    text = simulation_page(Inputs())
    for name in (*STYLES, *SCRIPTS):
        body = (ASSETS / name).read_text(encoding="utf-8")
        assert body in text
        assert not re.search(r"</(script|style)|<!--|innerHTML|\beval\b", body, re.I), name


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = simulation_page(Inputs())
    assert f'content="{POLICY}"' in text[: text.index("<style>")]
    elements = Elements()
    elements.feed(text)
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(elements.tags)
    assert not [value for name, value in elements.attributes if name in ("src", "href", "action")]


def test_the_same_inputs_give_the_same_bytes_and_others_do_not() -> None:
    assert simulation_page(Inputs()) == simulation_page(Inputs())
    assert simulation_page(Inputs()) != simulation_page(Inputs(nodes=4))


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_without_scripts_its_outcome_is_there_and_that_it_is_simulated(preset: Preset) -> None:
    text = simulation_page(preset.inputs)
    inside = text[text.index("<noscript>") : text.index("</noscript>")]
    assert "nothing of it was measured" in inside
    for said in says(simulate(preset.inputs)):
        assert html.escape(said) in inside


def test_each_input_has_a_field_and_a_flag() -> None:
    assert sorted(field["name"] for field in FIELDS) == sorted(NAMES)
    assert sorted(FLAGS) == sorted(NAMES)
    data: dict[str, Any] = data_of(simulation_page(Inputs(nodes=7)))
    assert list(data["inputs"]) == NAMES
    assert data["inputs"]["nodes"] == 7
    assert data["usual"]["nodes"] == Inputs().nodes


def test_a_field_takes_what_the_model_takes_and_not_more() -> None:
    for field in FIELDS:
        if field["kind"] not in ("duration", "whole"):
            continue
        # With one node and short times beside it, so that no sum of requests refuses it.
        for bound in (field["least"], field["most"]):
            asked: dict[str, Any] = {"nodes": 1, "keepalive": False, field["name"]: bound}
            if field["name"] in ("propagation_ns", "load_balancer_ns", "longest_ns"):
                bound = min(bound, 15_000 * 10**9)
                asked[field["name"]] = bound
            Inputs(**asked)
        for beyond in (field["least"] - 1, field["most"] + 1):
            with pytest.raises(ValueError, match=field["name"]):
                Inputs(**cast(dict[str, Any], {field["name"]: beyond}))


def test_the_command_names_what_differs_and_no_more() -> None:
    assert command(Inputs()) == "drainwatch simulate"
    asked = Inputs(pre_stop_ns=2_500_000_000, close_idle=False, load_balancer_ns=1, nodes=4)
    assert command(asked) == (
        "drainwatch simulate --pre-stop 2.5s --keep-idle-open --nodes 4 "
        "--load-balancer 0.000000001s"
    )


def test_the_command_on_the_page_prints_what_the_page_exports(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for kept in vectors.read():
        inputs = Inputs(**kept["inputs"])
        assert main([*shlex.split(command(inputs))[1:], "--json"]) == 0
        assert capsys.readouterr().out == dumped(simulate(inputs))


def test_the_page_is_small_enough_to_be_mailed() -> None:
    assert len(simulation_page(Inputs()).encode()) < 200_000
