/*
 * The same as the picture, to read aloud, to copy and to print: tables.
 */
{
  /**
   * A plain table.
   *
   * @param {{head: string[], rows: string[][], left?: number, caption?: string}} content
   */
  dw.table = ({ head, rows, left, caption }) =>
    dw.el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": caption ?? head.join(", ") },
      dw.el(
        "table",
        {},
        caption ? dw.el("caption", { class: "unseen" }, caption) : null,
        dw.el(
          "thead",
          {},
          dw.el(
            "tr",
            {},
            head.map((cell) => dw.el("th", { scope: "col" }, cell)),
          ),
        ),
        dw.el(
          "tbody",
          {},
          rows.map((row) =>
            dw.el(
              "tr",
              {},
              row.map((cell, n) => dw.el("td", { "data-label": head[n] }, cell)),
            ),
          ),
        ),
      ),
      left ? dw.el("p", { class: "about" }, `… and ${dw.say.count(left)} more`) : null,
    );

  /** All marks and bands of a trial in order of time. */
  dw.eventsTable = (trial) => {
    const lines = trial.lanes.flatMap((lane) => [
      ...lane.marks.map((mark) => ({
        order: dw.shownAt(mark)[1],
        cells: [dw.evidence.when(mark), lane.name, mark.text, mark.source, mark.detail],
      })),
      ...lane.bands.map((band) => ({
        order: (band.opens ?? band.closes ?? [0, Infinity])[1],
        cells: [
          dw.evidence.stretch(band),
          lane.name,
          band.met ? `${band.text}: ${band.met}` : band.text,
          "",
          band.detail,
        ],
      })),
    ]);
    lines.sort((a, b) => a.order - b.order);
    return dw.table({
      caption: "Events in order of time",
      head: ["When", "Lane", "What", "Seen by", "Evidence"],
      rows: lines.map((each) => each.cells),
    });
  };

  /** Pairs of a name and a value. */
  dw.pairs = (pairs) =>
    dw.el(
      "dl",
      { class: "pairs" },
      pairs.map(([name, value]) => dw.el("div", {}, dw.el("dt", {}, name), dw.el("dd", {}, value))),
    );
}
