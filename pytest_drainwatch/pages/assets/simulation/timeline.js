/*
 * The timeline: the pod's life, how long each source routes here, and what became of each request.
 *
 * Everything is placed in percent, so that it fits a telephone, a desk and paper alike.
 */
{
  const { el, svg } = dw;
  const NS_PER_US = 1e3;
  const ROW_PX = 11;
  const TOP_PX = 16;
  const MARK_SHARE = 0.01; // of the whole time: what a mark covers, so that none hides another
  const ROOM = 0.04; // beside the first and the last thing
  const EVENT_ROWS = 3;
  const EVENT_ROW_PX = 15;
  const LETTER_PX = 6.6;
  // A browser draws more, but nobody looks at more.
  const MOST_MARKS = 2000;
  const MOST_SOURCES = 16;
  // In a busier lane requests share rows: where they lie over each other, the numbers tell more.
  const MOST_ROWS = 30;

  const SHAPES = {
    dot: () => svg("circle", { cx: 8, cy: 8, r: 4, fill: "currentColor" }),
    ring: () =>
      svg("circle", { cx: 8, cy: 8, r: 4, fill: "none", stroke: "currentColor", "stroke-width": 2 }),
    cross: () =>
      svg("path", { d: "M4 4 12 12M12 4 4 12", stroke: "currentColor", "stroke-width": 3 }),
    diamond: () => svg("path", { d: "M8 2 14 8 8 14 2 8Z", fill: "currentColor" }),
    square: () => svg("rect", { x: 3, y: 3, width: 10, height: 10, fill: "currentColor" }),
    triangle: () => svg("path", { d: "M8 3 14 13 2 13Z", fill: "currentColor" }),
  };

  /** The sign of an outcome, as the timeline and the legend show it. */
  function sign(outcome) {
    const { shape } = dw.simulation.outcome(outcome);
    return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, SHAPES[shape]());
  }

  class Scale {
    constructor(end) {
      const room = end * ROOM;
      this.lo = -room;
      this.hi = end + room;
    }

    /** What began before the picture begins there. */
    x(ns) {
      return `${(100 * (Math.max(ns, this.lo) - this.lo)) / (this.hi - this.lo)}%`;
    }

    width(from, to) {
      return `${(100 * Math.max(0, to - Math.max(from, this.lo))) / (this.hi - this.lo)}%`;
    }
  }

  function placed(element, styles) {
    Object.assign(element.style, styles);
    return element;
  }

  function bar(scale, from, to, kind, tone, text) {
    return placed(
      el("div", { class: `bar ${kind} tone-${tone}`, title: text || null }, text),
      { left: scale.x(from), width: scale.width(from, to) },
    );
  }

  /**
   * The row of each request of a source: those at the same time lie below each other, and those
   * that failed at once below all others, where they make a line of their own.
   */
  function rowsOf(requests, scale) {
    const around = ((scale.hi - scale.lo) * MARK_SHARE) / 2;
    const row = new Array(requests.length);
    let rows = 0;
    for (const atOnce of [false, true]) {
      const chosen = requests.flatMap(({ start_ns, end_ns }, n) =>
        (start_ns === end_ns) === atOnce ? [n] : [],
      );
      const packed = dw.scale.pack(
        chosen.map((n) => [
          Math.max(scale.lo, requests[n].start_ns) - around,
          requests[n].end_ns + around,
        ]),
      );
      chosen.forEach((n, each) => {
        row[n] = (rows + packed.row[each]) % MOST_ROWS;
      });
      rows += packed.rows;
    }
    return { row, rows: Math.min(rows, MOST_ROWS) };
  }

  function marksOf(requests, scale, tip) {
    const { row, rows } = rowsOf(requests, scale);
    const pieces = [];
    const marks = [];
    requests.forEach((request, n) => {
      const { tone } = dw.simulation.outcome(request.outcome);
      const y = TOP_PX + row[n] * ROW_PX;
      if (request.end_ns > request.start_ns) {
        pieces.push(
          placed(el("i", { class: `tail tone-${tone}` }), {
            left: scale.x(request.start_ns),
            width: scale.width(request.start_ns, request.end_ns),
            top: `${y - 1}px`,
          }),
        );
      }
      const mark = placed(
        el(
          "button",
          {
            type: "button",
            class: `mark tone-${tone}`,
            "data-outcome": request.outcome,
            "aria-label": dw.simulation.story(request),
            tabindex: "-1",
          },
          sign(request.outcome),
        ),
        // Where its fate was known: what led there is its tail.
        { left: scale.x(request.end_ns), top: `${y}px` },
      );
      tip.on(mark, dw.simulation.story(request));
      marks.push(mark);
    });
    roving(marks);
    return { elements: [...pieces, ...marks], height: TOP_PX + (rows - 1) * ROW_PX + TOP_PX };
  }

  /** One stop for Tab in each lane; arrows go from mark to mark. */
  function roving(marks) {
    // The first failure is what one looks for.
    const first = Math.max(
      0,
      marks.findIndex((mark) => dw.simulation.outcome(mark.dataset.outcome).failed),
    );
    if (marks.length) marks[first].tabIndex = 0;
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    marks.forEach((mark, n) => {
      mark.addEventListener("keydown", (event) => {
        const to = { Home: 0, End: marks.length - 1 }[event.key] ?? n + (moves[event.key] ?? NaN);
        if (!(to in marks)) return;
        event.preventDefault();
        mark.tabIndex = -1;
        marks[to].tabIndex = 0;
        marks[to].focus();
      });
    });
  }

  function lane(name, about, elements, height) {
    const track = el("div", { class: "track" }, elements);
    if (height) track.style.minHeight = `${height}px`;
    return el(
      "div",
      { class: "lane", role: "group", "aria-label": `${name}. ${about}` },
      el("div", { class: "name" }, el("h3", {}, name), el("p", { class: "about" }, about)),
      track,
    );
  }

  /** Axis: ticks below, and the names of what happens above them, where they find room. */
  function axis(scale, events, width) {
    const ticks = dw.scale.ticks(
      scale.lo / NS_PER_US,
      scale.hi / NS_PER_US,
      Math.max(3, Math.floor(width / 70)),
    );
    const step = dw.scale.stepOf(ticks);
    const inWidth = (ns) => (width * (ns - scale.lo)) / (scale.hi - scale.lo);
    const rows = dw.scale.place(
      events.map(({ at, text }) => {
        const size = text.length * LETTER_PX + 8;
        const x = inWidth(at);
        return { x: x + size > width ? x - size : x, width: size };
      }),
      EVENT_ROWS,
      4,
    );
    const names = events.map(({ at, text, kind }, n) => {
      const over = inWidth(at) + text.length * LETTER_PX + 8 > width;
      return placed(el("span", { class: `event ${kind}${over ? " left" : ""}` }, text), {
        left: scale.x(at),
        top: `${Math.max(0, rows[n]) * EVENT_ROW_PX}px`,
        visibility: rows[n] < 0 ? "hidden" : "",
      });
    });
    const labels = ticks.map((us) =>
      placed(el("span", { class: "at" }, dw.scale.label(us, step)), {
        left: scale.x(us * NS_PER_US),
      }),
    );
    const high = Math.max(...rows, 0) + 1;
    const made = el(
      "div",
      { class: "lane axis", "aria-hidden": "true" },
      el("div", { class: "name" }, el("p", { class: "about" }, "since the deletion")),
      el("div", { class: "track" }, names, labels),
    );
    made.lastChild.style.minHeight = `${high * EVENT_ROW_PX + 20}px`;
    return { element: made, ticks };
  }

  dw.simulation.sign = sign;

  /** The timeline of a document; `seen(at)` veils what comes after `at` in the trace. */
  dw.simulation.timeline = () => {
    const tip = dw.simulation.tips();
    const box = el("div", { class: "timeline" });
    const left = el("p", { class: "about", hidden: true });
    let scale = null;
    let until = null;
    let over = null;
    let drawn = null;

    function veil() {
      over?.querySelectorAll(".now, .unseen-yet").forEach((each) => each.remove());
      if (until === null || !over) return;
      over.append(
        placed(el("i", { class: "unseen-yet" }), { left: scale.x(until) }),
        placed(el("i", { class: "now" }), { left: scale.x(until) }),
      );
    }

    function draw(view) {
      drawn = view;
      tip.hide();
      scale = new Scale(view.to);
      const lanes = view.lanes.slice(0, MOST_SOURCES + view.fixed);
      let budget = MOST_MARKS;
      let undrawn = 0;
      const made = lanes.map((each) => {
        // Where there are too many, those that failed are the ones to see.
        const failed = each.requests.filter(({ outcome }) => dw.simulation.outcome(outcome).failed);
        const wanted = each.requests.length > budget ? failed.slice(0, budget) : each.requests;
        budget -= wanted.length;
        undrawn += each.requests.length - wanted.length;
        const marks = marksOf(wanted, scale, tip);
        return lane(
          each.name,
          each.about,
          [
            ...each.bars.map((one) => bar(scale, one.from, one.to, one.kind, one.tone, one.text)),
            ...marks.elements,
          ],
          wanted.length ? marks.height : 0,
        );
      });
      const hidden = view.lanes.length - lanes.length;
      left.hidden = !undrawn && !hidden;
      left.textContent =
        `Not drawn, for want of room: ${dw.say.plural(hidden, "source")}, ` +
        `${dw.say.plural(undrawn, "request")} of those shown. The numbers and the export have all.`;
      const names = parseFloat(getComputedStyle(box).getPropertyValue("--names"));
      const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
      const width = Math.max(200, box.clientWidth - (names || 0) * rem - 1.5 * rem);
      const { element, ticks } = axis(scale, view.events, width);
      over = el(
        "div",
        { class: "over", "aria-hidden": "true" },
        ticks.map((us) => placed(el("i", {}), { left: scale.x(us * NS_PER_US) })),
        view.events.map(({ at, kind }) => placed(el("i", { class: kind }), { left: scale.x(at) })),
      );
      box.replaceChildren(element, ...made, over);
      veil();
    }

    // Labels find room by the width that there is.
    addEventListener("resize", () => drawn && draw(drawn));
    return {
      elements: [box, left, tip.box],
      draw,
      seen(at) {
        until = at;
        veil();
      },
    };
  };
}
