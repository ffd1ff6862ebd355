// A tiny picture of a trial: connections alive over time, new ones failing, the SIGTERM line.
{
  const COLUMNS = 180; // a picture is some 200 pixels wide
  const MOST_ATTEMPT_ROWS = 3;
  const LOW = 0.25; // of a row: what is served; what fails is at least twice as high
  const { WORST_FIRST } = dw.fates;

  /** The time that the pictures of these trials share, so that repeats can be compared. */
  function spanOf(trials) {
    return [
      Math.min(...trials.map((trial) => trial.span[0])),
      Math.max(...trials.map((trial) => trial.span[1])),
    ];
  }

  /** Which columns a stretch covers: at least one, so that nothing short is lost. */
  function columns([from, to], span) {
    const per = (span[1] - span[0]) / COLUMNS || 1;
    const first = Math.max(0, Math.floor((from - span[0]) / per));
    const last = Math.min(COLUMNS - 1, Math.ceil((to - span[0]) / per) - 1);
    return [first, Math.max(first, last)];
  }

  /** How many flows are in which way in each column; `good moved`: another pod answers than first. */
  function census(flows, span) {
    const byWay = new Map();
    for (const flow of flows) {
      const first = flow.pieces.find((piece) => piece.by !== null);
      for (const piece of flow.pieces) {
        const [from, to] = columns(piece.at, span);
        if (piece.at[1] < span[0] || from >= COLUMNS) continue;
        const moved = piece.by !== null && piece.by !== first.by;
        const way = moved ? `${piece.tone} moved` : piece.tone;
        let steps = byWay.get(way);
        if (!steps) byWay.set(way, (steps = new Int32Array(COLUMNS + 1)));
        steps[from] += 1;
        steps[to + 1] -= 1;
      }
    }
    for (const steps of byWay.values()) {
      for (let at = 1; at < COLUMNS; at += 1) steps[at] += steps[at - 1];
    }
    return byWay;
  }

  /** The outline of stacked counts between two heights (0 bottom, 1 top), as an SVG path. */
  function outline(low, high, height) {
    const y = (share) => (height * (1 - Math.min(1, share))).toFixed(2);
    let path = "";
    for (let at = 0; at < COLUMNS; at += 1) {
      if (high[at] <= low[at]) continue;
      let end = at + 1;
      while (end < COLUMNS && high[end] === high[at] && low[end] === low[at]) end += 1;
      path += `M${at} ${y(low[at])}V${y(high[at])}H${end}V${y(low[at])}Z`;
      at = end - 1;
    }
    return path;
  }

  /** Flows of one protocol: who is served from the bottom up, who is not from the top down. */
  function aliveRow(flows, span, height) {
    const byWay = census(flows, span);
    const row = strip(height);
    const served = (way) => /^(good|neutral)/.test(way);
    const rank = (way) => WORST_FIRST.indexOf(way.split(" ")[0]);
    let low = new Float64Array(COLUMNS);
    for (const way of [...byWay.keys()].filter(served).sort((a, b) => rank(b) - rank(a) || a.length - b.length)) {
      const high = low.map((each, at) => each + byWay.get(way)[at] / flows.length);
      row.append(dw.svg("path", { class: `tone-${way}`, d: outline(low, high, height) }));
      low = high;
    }
    let high = new Float64Array(COLUMNS).fill(1);
    for (const way of [...byWay.keys()].filter((each) => !served(each)).sort((a, b) => rank(a) - rank(b))) {
      const under = high.map((each, at) => Math.max(0, each - byWay.get(way)[at] / flows.length));
      row.append(dw.svg("path", { class: `tone-${way}`, d: outline(under, high, height) }));
      high = under;
    }
    return row;
  }

  /** How many attempts of each tone fall into each column; a long run is spread over its columns. */
  function tries(attempts, span) {
    const byTone = new Map();
    for (const [from, to, result, count] of attempts.runs) {
      if (to < span[0] || from > span[1]) continue;
      const tone = attempts.results[result][1];
      if (!byTone.has(tone)) byTone.set(tone, new Float64Array(COLUMNS));
      const [first, last] = columns([from, to], span);
      for (let at = first; at <= last; at += 1) byTone.get(tone)[at] += count / (last - first + 1);
    }
    return byTone;
  }

  /** New connections of one prober: a low line where some are served, as high as many fail. */
  function attemptRow(attempts, span, height) {
    const byTone = tries(attempts, span);
    const all = new Float64Array(COLUMNS);
    for (const counts of byTone.values()) counts.forEach((count, at) => (all[at] += count));
    const row = strip(height);
    for (const tone of [...WORST_FIRST].reverse().filter((each) => byTone.has(each))) {
      const high = byTone.get(tone).map((count, at) => {
        if (count === 0) return 0;
        return tone === "good" ? LOW : Math.max(2 * LOW, count / all[at]);
      });
      const d = outline(new Float64Array(COLUMNS), high, height);
      row.append(dw.svg("path", { class: `tone-${tone}`, d }));
    }
    return row;
  }

  function strip(height) {
    return dw.svg("svg", {
      viewBox: `0 0 ${COLUMNS} ${height}`,
      preserveAspectRatio: "none",
      height: String(height),
      "aria-hidden": "true",
    });
  }

  /** A line through all rows at an instant, if it lies in the picture. */
  function line(at, span, kind) {
    const share = ((at[0] + at[1]) / 2 - span[0]) / (span[1] - span[0]);
    if (!(share >= 0 && share <= 1)) return null;
    return dw.el("i", { class: `small-line ${kind}`, style: `left:${(share * 100).toFixed(2)}%` });
  }

  /** The first SIGTERM of a trial; null if there was none, or none was seen. */
  function sigterm(trial) {
    const marks = trial.lanes.flatMap((lane) => lane.marks);
    const seen = marks.filter((mark) => mark.key === "sigterm_received");
    return seen.length ? seen.reduce((a, b) => (a.at[1] <= b.at[1] ? a : b)).at : null;
  }

  /** The rows of a picture: name and drawing. */
  function rows(trial, span) {
    const found = [];
    for (const proto of ["tcp", "udp"]) {
      const flows = trial.flows.filter((flow) => flow.proto === proto);
      if (flows.length) found.push([proto.toUpperCase(), aliveRow(flows, span, 22)]);
    }
    for (const attempts of trial.attempts.slice(0, MOST_ATTEMPT_ROWS)) {
      found.push([shortName(attempts), attemptRow(attempts, span, 14)]);
    }
    return found;
  }

  /** A prober's name where there is hardly room: over which connections its requests went. */
  function shortName({ lane, name }) {
    if (lane === "http" && /kept/.test(name)) return "kept";
    return lane === "http" && /idle/.test(name) ? "idle" : "new";
  }

  /** The whole picture without its frame: rows, lines, and the time below. */
  function drawing(trial, span) {
    const plot = dw.el("div", { class: "small-plot" });
    const labels = dw.el("div", { class: "small-labels", "aria-hidden": "true" });
    for (const [name, row] of rows(trial, span)) {
      labels.append(dw.el("span", { style: `height:${row.getAttribute("height")}px` }, name));
      plot.append(row);
    }
    const at = sigterm(trial);
    for (const each of [line([0, 0], span, "trigger"), at && line(at, span, "sigterm")]) {
      if (each) plot.append(each);
    }
    return dw.el("div", { class: "small-drawing", "aria-hidden": "true" }, labels, plot);
  }

  /** A trial as a link to itself. `span` is what its scenario's pictures share. */
  function picture(trial, span) {
    const name = trial.repeat === null ? trial.scenario : `r${String(trial.repeat).padStart(2, "0")}`;
    const hurt = trial.hurt ? trial.hurt.text : dw.scenarios.NO_HARM;
    return dw.el(
      "a",
      { class: `small outcome-${trial.outcome || "unknown"}`, href: dw.link(trial.id), title: trial.says.join(" ") },
      dw.el("span", { class: "small-head" }, dw.el("b", {}, name), trial.simulated ? " SIMULATED" : "", trial.outcome ? ` ${trial.outcome}` : "", flagged(trial)),
      drawing(trial, span),
      dw.el("span", { class: "small-hurt" }, hurt),
    );
  }

  function flagged(trial) {
    if (!trial.marks.length) return "";
    return dw.el("span", { class: "flagged", title: trial.marks.join("; ") }, ` ⚠ ${trial.marks.length}`);
  }

  dw.multiples = { picture, spanOf, columns, tries };
}
