// A metric's distribution: each repeat's interval, the median, and where the true one lies.
{
  const ROW = 8; // pixels of one repeat
  const EDGE = 2; // its outline, half of which lies outside
  const LEAST_WIDTH = 0.3; // percent: a box that is exact is seen, too
  const MOST_ROWS = 12; // further repeats share the rows
  const TICKS = 4;

  /** Bounds of everything that is drawn, with a little room; null if nothing was measured. */
  function domain(measures) {
    const known = measures
      .flatMap((one) => [...one.values, one.interval, ...(one.baseline || [])])
      .filter((at) => at !== null);
    if (!known.length) return null;
    const lo = Math.min(...known.map((at) => at[0]));
    const hi = Math.max(...known.map((at) => at[1]));
    const room = Math.max((hi - lo) * 0.04, 500);
    return [lo - room, hi + room];
  }

  function percent(at, [lo, hi]) {
    return `${(((at - lo) / (hi - lo)) * 100).toFixed(3)}%`;
  }

  /** An interval as a box. One without a width would not be drawn, so it has the least one. */
  function box(at, within, kind, y, height) {
    const width = ((at[1] - at[0]) / (within[1] - within[0])) * 100;
    return dw.svg("rect", {
      class: kind,
      x: percent(at[0], within),
      width: `${Math.max(width, LEAST_WIDTH).toFixed(3)}%`,
      y: String(y),
      height: String(height),
    });
  }

  /** Values as boxes as wide as they are uncertain, one row a repeat. */
  function bars(values, within, top, kind) {
    return values.flatMap((at, index) => {
      const y = top + (index % MOST_ROWS) * ROW + EDGE;
      return at === null ? [] : [box(at, within, kind, y, ROW - 2 * EDGE - 1)];
    });
  }

  function heightOf(values) {
    return Math.min(values.length, MOST_ROWS) * ROW;
  }

  /** The true median lies here: a bracket below the repeats. */
  function bracket(interval, within, y) {
    const [lo, hi] = interval.map((at) => percent(at, within));
    const end = (x) => dw.svg("line", { class: "bracket", x1: x, x2: x, y1: String(y - 3), y2: String(y + 3) });
    return [dw.svg("line", { class: "bracket", x1: lo, x2: hi, y1: String(y), y2: String(y) }), end(lo), end(hi)];
  }

  function axis(within, y) {
    const parts = [dw.svg("line", { class: "axis", x1: "0", x2: "100%", y1: String(y), y2: String(y) })];
    const ticks = dw.scale.ticks(within[0], within[1], TICKS);
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : within[1] - within[0];
    for (const tick of ticks) {
      const share = (tick - within[0]) / (within[1] - within[0]);
      const anchor = share < 0.06 ? "start" : share > 0.94 ? "end" : "middle";
      const x = percent(tick, within);
      parts.push(
        dw.svg("line", { class: "axis", x1: x, x2: x, y1: String(y), y2: String(y + 4) }),
        dw.svg("text", { x, y: String(y + 15), "text-anchor": anchor }, dw.scale.label(tick, step)),
      );
    }
    return parts;
  }

  /** The plot of one measure; `within` is the axis. It repeats what `words` say. */
  function plot(measure, within, withAxis) {
    const run = heightOf(measure.values);
    const base = measure.baseline ? heightOf(measure.baseline) + 6 : 0;
    const below = run + 8 + base;
    const height = below + (withAxis ? 20 : 4);
    const drawn = dw.svg("svg", { class: "strip-plot", height: String(height), "aria-hidden": "true" });
    drawn.append(...bars(measure.values, within, 2, "of-run"));
    if (measure.median) drawn.append(box(measure.median, within, "median", 0, run + 1));
    if (measure.interval) drawn.append(...bracket(measure.interval, within, run + 4));
    if (measure.baseline) drawn.append(...bars(measure.baseline, within, run + 12, "of-baseline"));
    if (withAxis) drawn.append(...axis(within, below));
    return drawn;
  }

  /** The same for whoever reads: the median, where it really is, and what is missing. */
  function words(measure) {
    const known = measure.values.filter((at) => at !== null).length;
    if (known === 0) return "not measured in any repeat";
    const said = [];
    if (measure.median) said.push(`median ${dw.say.duration(measure.median)}`);
    if (measure.interval && measure.coverage !== null) {
      const sure = (measure.coverage * 100).toFixed(2).replace(/\.?0+$/, "");
      said.push(`with ${sure} % confidence the true one is ${dw.say.duration(measure.interval)}`);
    } else {
      said.push(known === 1 ? "one repeat: no telling how far others lie" : "too few repeats to say where the true one lies");
    }
    if (known < measure.values.length) said.push(`measured in ${known} of ${measure.values.length}`);
    return said.join("; ");
  }

  function baselineWords(measure) {
    if (!measure.baseline) return "";
    const known = measure.baseline.filter((at) => at !== null);
    if (!known.length) return "baseline: not measured";
    const lo = Math.min(...known.map((at) => at[0]));
    const hi = Math.max(...known.map((at) => at[1]));
    return `baseline: ${dw.say.duration([lo, hi])} in ${known.length} of ${measure.baseline.length}`;
  }

  /** A line of a list: name, words, plot. */
  function row(name, measure, within, withAxis) {
    return dw.el(
      "div",
      { class: "measure", "data-measure": measure.key },
      dw.el(
        "div",
        { class: "measure-words" },
        dw.el("b", {}, name),
        dw.el("span", {}, words(measure)),
        dw.el("span", { class: "muted" }, baselineWords(measure)),
      ),
      within ? plot(measure, within, withAxis) : dw.el("span", { class: "muted" }, "—"),
    );
  }

  /** What the signs mean; the baseline's only where there is one. */
  function signs(measures) {
    const entry = (name, text) => dw.el("li", {}, dw.el("span", { class: `key ${name}`, "aria-hidden": "true" }), text);
    return dw.el(
      "ul",
      { class: "small-legend" },
      entry("of-run", "a repeat, as wide as it is uncertain"),
      measures.some((one) => one.baseline) ? entry("of-baseline", "a repeat of the baseline") : null,
      entry("median", "the median"),
      measures.some((one) => one.interval) ? entry("bracket", "where the true median lies") : null,
    );
  }

  /** All metrics of one scenario, each on its own axis. */
  function ofScenario(scenario) {
    const measured = scenario.measures.filter((one) => one.values.some((at) => at !== null));
    const never = scenario.measures.filter((one) => !measured.includes(one));
    const found = [signs(measured), ...measured.map((one) => row(one.name, one, domain([one]), true))];
    if (never.length) {
      const names = never.map((one) => one.name).join(", ");
      found.push(dw.el("p", { class: "muted" }, `Not measured in any repeat: ${names}.`));
    }
    return found;
  }

  /** One metric of all scenarios that have it, on one axis. */
  function acrossScenarios(scenarios, key) {
    const having = scenarios.flatMap((scenario) => {
      const measure = scenario.measures.find((one) => one.key === key);
      return measure ? [[scenario.id, measure]] : [];
    });
    const within = domain(having.map(([, measure]) => measure));
    const last = having.length - 1;
    const rows = having.map(([id, measure], index) => row(id, measure, within, index === last));
    return rows.length ? [signs(having.map(([, measure]) => measure)), ...rows] : [];
  }

  dw.strips = { ofScenario, acrossScenarios, domain, words };
}
