"""What is written holds what is known, and no two texts of the picture cover each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_drainwatch.render.page.data import Page
from tests.page.browser import made
from tests.page.browser.conftest import Open
from tests.page.browser.test_real import ARMS, sample  # noqa: F401 (a fixture)
from tests.page.browser.test_trial_view import ready

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

# Every way to say an interval, over widths and places of all sizes: those which leave a part out.
UNTRUE = """() => {
  const units = { "µs": 1, ms: 1e3, s: 1e6 };
  const number = (text) => Number(text.replace("\\u2212", "-").replace("+", ""));
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const wrong = [];
  for (let n = 0; n < 20_000; n += 1) {
    const lo = Math.floor((random() - 0.3) * 10 ** (random() * 9.5));
    const at = [lo, lo + 1 + Math.floor(10 ** (random() * 8))];
    for (const say of ["at", "duration", "instant", "exactly"]) {
      const text = dw.say[say](at);
      const [, said, unit] = /^(.*) (\\S+)$/.exec(text);
      const [low, high] = said.split(/\\u2013| to /).map((part) => number(part) * units[unit]);
      const digits = (said.split(".")[1] ?? "").split(/[^0-9]/)[0].length;
      const last = units[unit] / 10 ** digits;
      const fits = high === undefined
        ? at[1] - at[0] <= last && low >= at[0] - last && low <= at[1] + last
        : low <= at[0] + 1e-3 && high >= at[1] - 1e-3;
      if (!fits) wrong.push([say, at, text]);
    }
  }
  return wrong.slice(0, 5);
}"""

# Draws at many places and scales, and collects the texts that lie on each other.
COVERED = """() => {
  const picture = dw.trial.picture();
  const { view } = picture;
  const { write } = dw.paint;
  let texts = [];
  dw.paint.write = (ink, text, x, y, colour) => {
    texts.push({ lane: ink.canvas, text, x, y, end: x + ink.measureText(text).width });
    write(ink, text, x, y, colour);
  };
  const wrong = new Set();
  let many = 0;
  for (let zoom = 0; zoom < 8; zoom += 1) {
    const span = (view.fitted[1] - view.fitted[0]) / 5 ** zoom;
    for (const share of [0, 0.3, 1]) {
      view.lo = share * 1_200_000 - span / 3;
      if (zoom === 0) view.lo = view.fitted[0];
      view.hi = view.lo + span;
      texts = [];
      picture.draw();
      many += texts.length;
      for (const a of texts) for (const b of texts) {
        const beside = a.lane !== b.lane || Math.abs(a.y - b.y) > 11 || a.end <= b.x;
        if (a !== b && a.x <= b.x && !beside) wrong.add(`${a.text} | ${b.text}`);
      }
    }
  }
  dw.paint.write = write;
  return { many, wrong: [...wrong] };
}"""


def test_what_is_said_of_an_interval_holds_it(open_page: Open) -> None:
    tab = open_page(made.page(scenarios=1, repeats=1))
    assert tab.evaluate(UNTRUE) == []


@pytest.fixture
def tab(sample: Page, open_page: Open) -> Tab:  # noqa: F811
    return ready(open_page(sample, f"#/trial/{ARMS[0]}%2Fr00", reduced_motion="reduce"))


def test_no_text_covers_another(tab: Tab) -> None:
    seen = tab.evaluate(COVERED)
    assert seen["many"] > 200
    assert seen["wrong"] == []


def test_texts_that_cover_each_other_are_found(tab: Tab) -> None:
    tab.evaluate("() => { dw.scale.place = (wanted) => wanted.map(() => 0); }")
    assert tab.evaluate(COVERED)["wrong"]
